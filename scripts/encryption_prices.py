#!/usr/bin/env python3
"""Prints the lines of the table in docs/encryption.md from folders that --compare has written.

    hydra nats-fixed --subscribers 30 --repeat 3 --compare tls=false,true --out runs/nats
    scripts/encryption_prices.py runs/nats

A line is one run: the rate, CPU time for each message of the publisher, of all subscribers and of the servers, and the
latency p99; each is the median of the repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from statistics import median

from hydra.measure.step_result import StepResult
from hydra.model import Role, number
from hydra.store.database import RunStore


def line(run: Path) -> str:
    """The line of a run in the table."""
    with RunStore.open(run) as store:
        steps = [step for step in store.results() if step.status == "ok"]
        used = [[*_used(store, step)] for step in steps]
        cpu = [_text(median(values)) for values in zip(*used, strict=True)]
        p99_ms = median(number(step.figures["latency_p99_us"]) or 0.0 for step in steps) / 1000
    return f"| {run.parent.name} | {steps[0].plan.settings.rate} | {run.name} | {' | '.join(cpu)} | {p99_ms:.2f} |"


def _used(store: RunStore, step: StepResult) -> Iterator[float]:
    """CPU time in µs for each message: of the publisher, of a subscriber, and of the servers for each copy."""
    clients = store.clients(step.epoch)
    cpu: dict[Role, float] = {"publisher": 0.0, "subscriber": 0.0}
    messages: dict[Role, int] = {"publisher": 0, "subscriber": 0}
    for client in clients:
        cpu[client["role"]] += 1e6 * (client["cpu_user_s"] + client["cpu_system_s"])
        messages[client["role"]] += client["messages"]
    yield cpu["publisher"] / messages["publisher"]
    yield cpu["subscriber"] / messages["subscriber"]
    server = number(step.figures.get("server_cpu_pct"))
    yield float("nan") if server is None else 1e4 * server * step.plan.duration_s / messages["subscriber"]


def _text(value: float) -> str:
    return "—" if isnan(value) else f"{value:.1f}"


def main(folders: Sequence[str]) -> None:
    """Prints a line for each run in each folder."""
    for folder in folders:
        for run in sorted(path.parent for path in Path(folder).glob("*/run.db")):
            sys.stdout.write(f"{line(run)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
