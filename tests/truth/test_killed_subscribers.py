"""A part of a run's subscribers is killed in the window: every figure is what is computed by hand from the raw rows."""

from __future__ import annotations

import math
import random
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from hydra.events.group_events import ClientExit
from hydra.store.database import RunStore
from tests.integration.command import Background, await_clients, await_window, background
from tests.suite.waiting import wait_until
from tests.truth.scale import cases

pytestmark = pytest.mark.tier("all")

CLIENTS, KILLED = 60, 5
RATE, SECONDS = 50, 2.0

Row = dict[str, Any]


def last_word(row: Row) -> int:
    """What a subscriber is credited with: its report, else what is stored of its last word, else nothing."""
    return int(row["messages"] if row["messages"] is not None else row["more"].get("last_word", 0))


def subscriber_processes(command: Background) -> list[psutil.Process]:
    """The clients, without the parents of their groups and the relays, which each parent forks first."""
    parents = [p for p in command.clients("zmq-sub") if p.ppid() == command.process.pid]
    found: list[psutil.Process] = []
    for parent in parents:
        _relay, *clients = sorted(parent.children(), key=lambda p: (p.create_time(), p.pid))
        found += clients
    return found


def kill_some(command: Background, run: Path, seed: int) -> None:
    """SIGKILL to ``KILLED`` subscribers at once, well inside the window."""
    await_clients(run)
    victims = random.Random(seed).sample(subscriber_processes(command), KILLED)
    await_window(run)
    moment = time.monotonic() + 0.5 * SECONDS
    wait_until(lambda: time.monotonic() > moment, "the middle of the window")
    for victim in victims:
        victim.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("seed", cases([1], [2, 3]))
def test_every_figure_is_what_the_rows_give_by_hand(tmp_path: Path, zmq_implementation: str, seed: int) -> None:
    run = tmp_path / "run"
    arguments = (
        "zmqfixed", "--client", zmq_implementation, "--clients", CLIENTS, "--rate", RATE, "--duration", SECONDS,
        "--set", "warmup_s=0", "--out", run,
    )  # fmt: skip
    with background(*arguments, log=tmp_path / "log") as command:
        kill_some(command, run, seed)
        assert command.wait() == 3, command.output()
    with RunStore.open(run) as store:
        (result,) = store.results()
        rows = store.clients(result.epoch)
        deaths = [event.data.fields for event in store.events() if event.kind == ClientExit.kind]
    figures = result.figures
    (publisher,) = (row for row in rows if row["role"] == "publisher")
    subscribers = [row for row in rows if row["role"] == "subscriber"]
    alive = [row for row in subscribers if row["state"] == "ok"]
    dead = [row for row in subscribers if row["state"] == "dead"]

    # The dead are exactly those that the parents saw killed.
    assert len(dead) == KILLED
    assert {row["client"] for row in dead} == {death["client"] for death in deaths}
    assert {death["status"] for death in deaths} == {-signal.SIGKILL}
    assert figures["died_by"] == "SIGKILL"
    assert f"{KILLED} died (SIGKILL)" in command.output()
    assert len(alive) == CLIENTS - KILLED

    # What the survivors got, with loopback idle at this rate: all of it.
    tx = publisher["messages"]
    assert RATE * SECONDS * 0.5 <= tx <= RATE * SECONDS
    assert {row["messages"] for row in alive} == {tx}
    # No subscriber had more than was due when it was killed.
    assert all(last_word(row) <= 0.9 * tx for row in dead)

    received = [last_word(row) for row in subscribers]
    assert figures["clients"] == CLIENTS
    assert figures["total_tx"] == tx
    assert figures["total_rx"] == pytest.approx(sum(received) / CLIENTS)
    assert figures["client_loss_pct"] == pytest.approx(100 * (CLIENTS * tx - sum(received)) / (CLIENTS * tx))
    assert (figures["failed_clients"], figures["failed_dead"]) == (KILLED, KILLED)
    assert (figures["failed_lossy"], figures["failed_silent"]) == (0, 0)
    assert figures["avg_rx_rate_pps"] == pytest.approx(float(str(figures["aggregate_pps"] or 0)) / CLIENTS)
    # From the first batch to the last, of the clients that reported.
    rates = [(row["messages"] - row["first_batch"]) * 1e9 / (row["last_ns"] - row["first_ns"]) for row in alive]
    assert figures["rx_clients"] == len(rates)
    assert figures["rx_span_rate_pps"] == pytest.approx(sum(rates) / len(rates))
    assert figures["fairness_jain"] == pytest.approx(sum(received) ** 2 / (CLIENTS * sum(n * n for n in received)))
    ordered = sorted(received)
    for percent in (1, 50, 99):
        assert figures[f"rx_p{percent}"] == ordered[math.ceil(percent / 100 * CLIENTS) - 1]
    in_window = sum(row["in_window"] for row in alive)
    # Of the dead nothing is known but their last word; whatever is credited to them came inside the window.
    credited = sum(last_word(row) for row in dead)
    assert figures["loss_at_stop_pct"] == pytest.approx(100 * (CLIENTS * tx - in_window - credited) / (CLIENTS * tx))
    assert figures["aggregate_pps"] == pytest.approx((in_window + credited) / SECONDS, rel=1e-3)
    assert figures["passed"] is False
