"""Runs that start their brokers."""

from __future__ import annotations

from pathlib import Path

COMMON = ("--client", "confluent-kafka", "--rate", 200, "--set", "warmup_s=0")
TWO = ("--set", "server.count=2", "--replication-factor", 2)
FIXED = ("kafka-fixed", *COMMON, *TWO, "--set", "settings.acks=all")


def nothing_is_left_of(run: Path) -> bool:
    return not any(list(run.glob(each)) for each in ("sandbox/servers-*/server/", "server*/"))
