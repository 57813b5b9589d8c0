"""A control channel that loses one message in twenty costs a run time, and nothing else.

Three seeds in the usual tests; ``make soak`` asks for more with HYDRA_SOAK_SEEDS, and for one message in five.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest

from hydra.events.run_events import StartUnacknowledged
from hydra.native import build
from hydra.store.database import RunStore
from tests.integration import lossy
from tests.integration.command import assert_all_arrived, background, table
from tests.suite.waiting import LONG_S, TIME_FACTOR

pytestmark = pytest.mark.tier("all")

SOAK = os.environ.get("HYDRA_SOAK_SEEDS")
SEEDS = range(int(SOAK or 3))
AT_ONCE = 3
"""Nearly all of the time is spent waiting for what was lost to be sent again."""
CLIENTS = (2, 4, 6)
DUE = 100
ARGUMENTS = (
    "zmqfixed", "--clients", ",".join(map(str, CLIENTS)), "--rate", DUE, "--duration", 1,
    "--set", "warmup_s=0", "--set", "settings.sndhwm=0", "--set", "settings.rcvhwm=0",
)  # fmt: skip


@pytest.mark.timeout(600 * TIME_FACTOR)
@pytest.mark.parametrize("loss", [0.05, 0.2] if SOAK else [0.05])
@pytest.mark.parametrize("first", SEEDS[::AT_ONCE])
def test_a_lossy_control_channel_changes_no_row(tmp_path: Path, first: int, loss: float) -> None:
    implementations = ["pyzmq", *(["native"] if build.find() else [])]
    with ExitStack() as stack:
        commands = {}
        for implementation, seed in product(implementations, SEEDS[first : first + AT_ONCE]):
            run = tmp_path / f"{implementation}-{seed}"
            program = lossy.command(loss, seed)
            started = background(*ARGUMENTS, "--client", implementation, "--out", run, program=program)
            commands[run] = stack.enter_context(started)
        for run, command in commands.items():
            assert command.wait(4 * LONG_S) == 0, f"{run.name}: {command.output()}"
            assert lossy.lost(command.output()) > 0
            check(run)


def check(run: Path) -> None:
    """Every row is there once; every client's account is complete, exact, and its only one."""
    assert [(row["clients"], row["status"]) for row in table(run)] == [(str(n), "ok") for n in CLIENTS]
    with RunStore.open(run) as store:
        results = store.results()
        clients = {r.epoch: store.clients(r.epoch) for r in results}
        repeated = {e.data.fields["epoch"] for e in store.events() if e.kind == StartUnacknowledged.kind}
    assert [r.plan.clients for r in results] == list(CLIENTS)
    for result in results:
        figures = result.figures
        assert_all_arrived(figures, DUE)
        # A publisher sends from a start until it hears that the start is repeated: only then are there stale messages.
        stale = () if result.epoch - 1 in repeated else ("stale",)
        exact = ("lost", "unknown", "undrained", "duplicates", "extra", *stale, "failed_clients")
        assert {name: figures[name] for name in exact} == dict.fromkeys(exact, 0)
        accounts = [(c["role"], c["client"], c["messages"]) for c in clients[result.epoch]]
        sent = figures["total_tx"]
        ids = range(1, 1 + result.plan.clients)
        assert sorted(accounts) == [("publisher", 0, sent), *(("subscriber", c, sent) for c in ids)]
