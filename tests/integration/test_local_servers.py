"""Commands with a server that Hydra starts: a rate is searched, and the end of a run whose server dies."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from hydra.events.group_events import ClientsConnected
from hydra.events.run_events import WindowOpened
from hydra.store.database import RunStore
from tests.integration.command import UNKNOWN, all_ended, background, events, measured, steps, table

pytestmark = pytest.mark.tier("test")

SMALL = ("--clients", 2, "--set", "warmup_s=0")
SEARCH = ("--interval", "--start-rate", 200, "--search-steps", 3, "--set", "sweep.search.max_doublings=1")
CARRIED = {"status": "ok", "failed_clients": "0", "client_loss_pct": "0.0"}
SEARCHED = {"status": "ok", "failed_steps": "1"}


@pytest.fixture(autouse=True)
def _installed(request: pytest.FixtureRequest) -> None:
    """Skips where the server is not installed."""
    system, _, _ = request.node.callspec.params["command"][0].partition("-")
    if system != "mqtt":
        request.getfixturevalue(f"needs_{system}")


@pytest.mark.parametrize(
    "command",
    [("nats-rate",), ("mqtt-rate",), ("kafka-rate", "--client", "confluent-kafka")],
    ids=" ".join,
)
def test_a_rate_is_searched(run: Path, command: tuple[str, ...]) -> None:
    (row,) = measured(run, *command, *SMALL, *SEARCH, "--duration", 0.3, expect=UNKNOWN)
    # Nothing is lost up to the highest rate that is tried, or the steps are too few: there is no figure. On a busy
    # machine each of the short steps may lose too much.
    assert (row["status"], row["failed_steps"]) == ("ok", "0")
    assert row["loss_answer"] in ("unknown", "none")
    assert row["loss_note"]
    assert [how for _, how in steps(run)] == ["ok"] * int(row["loss_steps"])


@pytest.mark.parametrize("command", [("nats-rate",), ("mqtt-rate",)], ids=" ".join)
def test_a_rate_is_held(run: Path, command: tuple[str, ...]) -> None:
    ends = ("--start-rate", 200, "--set", "sweep.search.max_doublings=1", "--set", "sweep.search.floor_rate=200")
    (row,) = measured(run, *command, *SMALL, *ends, "--duration", 0.3, expect=UNKNOWN)
    # On a busy machine each of the short steps may lose too much.
    assert row["status"] == "ok"
    assert row["loss_answer"] in ("held", "at_least", "unconfirmed", "none_held")
    assert [how for _, how in steps(run)] == ["ok"] * (int(row["loss_steps"]) + int(row["max_rate_steps"]))
    assert float(row["wall_s"]) < 60
    assert float(row["max_rate_with_drop_pps"]) > 200


@pytest.mark.parametrize(
    ("server", "command", "figures"),
    [
        ("nats-server", ("nats-fixed", "--mode", "jetstream", "--rate", 200), CARRIED),
        ("nats-server", ("nats-rate", *SEARCH), SEARCHED),
        ("mosquitto", ("mqtt-fixed", "--rate", 200), CARRIED),
        ("mosquitto", ("mqtt-rate", *SEARCH), SEARCHED),
    ],
    ids=["nats-fixed", "nats-rate", "mqtt-fixed", "mqtt-rate"],
)
def test_a_killed_server_fails_its_step_and_a_fresh_one_carries_the_row(
    run: Path, server: str, command: tuple[object, ...], figures: dict[str, str]
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    first, last = str(cpus[0]), str(cpus[-1])
    pins = ("--server-pin", first, "--publisher-pin", last, "--subscriber-pin", first)
    with background(*command, *SMALL, *pins, "--duration", 1, "--out", run) as it:
        it.until(lambda: events(run, ClientsConnected), "the clients")
        (process,) = it.named(server)
        system, _, _ = str(command[0]).partition("-")
        publishers, subscribers = it.clients(f"{system}-pub"), it.clients(f"{system}-sub")
        assert [cpus_of_threads(each) for each in ([process], publishers, subscribers)] == [{first}, {last}, {first}]
        it.until(lambda: events(run, WindowOpened), "the first step")
        process.kill()
        assert it.wait() in UNKNOWN, it.output()
    with RunStore.open(run) as store:
        failed, *others = store.results()
    assert (failed.status, {other.status for other in others}) == ("failed", {"ok"})
    # The first to miss it reports the cause: its owner, or one of its clients.
    assert {"server", "broker", server} & set(failed.reason.split())
    # It is offered again as it was.
    assert others[0].plan == failed.plan
    (row,) = table(run)
    assert {name: row[name] for name in figures} == figures
    pinned = f"publisher on CPUs {last}, subscriber on CPUs {first}, server on CPUs {first}"
    where = rf" · {server} [\d.]+ on this machine, \d+ cores?, {pinned} · steps of 1 s"
    assert re.search(where, (run / "table.md").read_text())
    assert all_ended([process])
    assert not [*run.glob("nats-*"), *run.glob("server*")]


def cpus_of_threads(processes: Iterable[psutil.Process]) -> set[str]:
    """The CPUs on which each thread of these processes may run."""
    found: set[str] = set()
    for process in processes:
        for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):  # a thread has ended
                found.update(re.findall(r"Cpus_allowed_list:\t(.*)", status.read_text()))
    return found
