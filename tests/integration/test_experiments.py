"""Published experiments in miniature, on real brokers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from hydra.kafkatest.presets import PRESETS
from tests.integration.command import hydra
from tests.suite.waiting import TEST_S, TIME_FACTOR

pytestmark = [pytest.mark.tier("all"), pytest.mark.timeout(600 * TIME_FACTOR)]

PRODUCER = r"^\d+ records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, .* ms 99\.9th\.$"
CONSUMER = r"^[\d-]+ [\d:]+, [\d-]+ [\d:]+, [\d.]+, [\d.]+, \d+, [\d.]+, \d+, \d+, [\d.]+, [\d.]+$"

FORMULA = "max(T/P, T/C)"
COMPRESSION = ("avg_cpu_pct", "network_kbytes_per_sec", "messages_per_sec_per_broker", "compression_ratio")
KILLED = ("killed_acknowledged", "killed_p999_ms", "ack_p99_ms")
SET_BY_PRESETS = sum(len(preset.values) for preset in PRESETS.values())
soak = pytest.mark.skipif("HYDRA_SOAK_SEEDS" not in os.environ, reason="takes minutes: make soak")
whole = pytest.mark.skipif(os.environ.get("HYDRA_EXPERIMENTS") != "whole", reason="takes minutes: make soak runs it")


@pytest.mark.parametrize(
    ("name", "more", "rows", "producers", "consumers"),
    [
        ("dcos-consumer", (), 4, 2, 2),
        ("message-size-sweep", (), 5, 5, 0),
        pytest.param("linkedin-2014", ("--stored-bytes", 1_000_000), 7 + 5 + 1 + 8, 23, 6, marks=whole),
        pytest.param("dcos-record-size", (), 6 + 15, 15, 0, marks=whole),
        pytest.param("dcos-tuning", (), 6 + 15, 15, 0, marks=whole),
    ],
)
def test_an_experiment_is_repeated(
    run: Path, name: str, more: tuple[object, ...], rows: int, producers: int, consumers: int
) -> None:
    command = ("kafka-perf", name, "--scale", 1e-6, "--implementation", "confluent-kafka", "--out", run, "--quiet")
    ran = hydra(*command, *more, within_s=TEST_S)
    tables = json.loads((run / "table.json").read_text())["tables"]
    measured = [row for table in tables for row in table["rows"]]
    assert len(measured) == rows
    assert {row["account"] for row in measured if "account" in row} == {"exact"}
    assert all(row["records_per_sec"] > 0 for row in measured if "records_per_sec" in row)
    compared = [row for row in measured if "records_per_sec_ratio" in row]
    assert all(row["records_per_sec_ratio"] for row in compared if row["records_per_sec_published"])
    assert len(re.findall(PRODUCER, ran.stdout, re.MULTILINE)) == producers
    assert len(re.findall(CONSUMER, ran.stdout, re.MULTILINE)) == consumers
    again = hydra("kafka-perf", "--resume", run, "--json")
    assert json.loads(again.stdout)["tables"] == tables, "everything is kept"


@pytest.mark.parametrize(
    ("name", "more", "rows", "figures"),
    [
        pytest.param(
            *("partition-formula", ("--target-rate", 1, "--brokers", 1), (3, 1, 2), ("records_per_sec",)),
            marks=pytest.mark.tier("test"),
        ),
        pytest.param("partitions-compression", ("--producers", 2), (20, 60), COMPRESSION, marks=soak),
        pytest.param("network-in-out", (), (20, 12 * 3 + 8 * 6), ("in_mb_s", "in_deviation_pct"), marks=soak),
        pytest.param("design-goals", (), (4, SET_BY_PRESETS), KILLED, marks=soak),
    ],
)
def test_an_experiment_looks_at_the_brokers(
    tmp_path: Path, name: str, more: tuple[object, ...], rows: tuple[int, ...], figures: tuple[str, ...]
) -> None:
    ran = hydra("kafka-perf", name, "--scale", 1e-6, "--out", tmp_path / "run", "--json", *more, within_s=2 * TEST_S)
    tables = json.loads(ran.stdout)["tables"]
    assert tuple(len(table["rows"]) for table in tables) == rows
    assert all(row[figure] is not None for row in tables[0]["rows"] for figure in figures)
    # The row of the formula itself is computed, not measured.
    measured = [row for table in tables for row in table["rows"] if "account" in row and row.get("what") != FORMULA]
    assert all(row["account"] for row in measured)
    if name == "design-goals":
        (durable,) = (row for row in tables[0]["rows"] if row["preset"] == "durability")
        assert durable["killed_lost"] == 0
