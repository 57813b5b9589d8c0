"""Several implementations by one command, in turns: what is measured when, and how it continues."""

from __future__ import annotations

import json
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from hydra.events.group_events import Launched
from hydra.report.run_catalog import catalog
from hydra.store import interleaved_record
from hydra.store.database import RunStore
from tests.integration.command import all_ended, background, events, hydra, steps
from tests.suite.waiting import LONG_S, TIME_FACTOR, wait_until

pytestmark = [pytest.mark.tier("all"), pytest.mark.timeout(600 * TIME_FACTOR)]  # up to eight deployments each

SMALL = ("zmqfixed", "--rate", 500, "--duration", 0.2, "--set", "warmup_s=0")
SAME = "pyzmq,pyzmq"


def windows(run: Path) -> list[int]:
    """When each step of a run began."""
    with RunStore.open(run) as store:
        return [store.window_ns(result.epoch)[0] for result in store.results()]


def test_repeats_take_turns_each_with_clients_of_its_own(tmp_path: Path, run: Path) -> None:
    done = hydra(
        *SMALL, "--clients", "1,2", "--repeat", 2, "--compare", SAME, "--out", run, "--json",
        "--fail-if", "avg_rx_rate_pps < 0.01 * base", within_s=3 * LONG_S,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert (found["paired"], [run["name"] for run in found["runs"]]) == (True, ["pyzmq", "pyzmq-2"])
    assert [each["repeats"] for each in found["comparisons"] if each["primary"]] == [[2, 2], [2, 2]]
    assert found["environment"] == []
    assert [run["setup"]["subscribers"] for run in found["runs"]] == [[1, 2], [1, 2]]
    record = interleaved_record.read_record(run)
    assert record.ended == "finished"
    sides = [run / name for name in record.sides]
    assert [steps(side) for side in sides] == [[(epoch, "ok") for epoch in range(1, 5)]] * 2
    # No implementation begins a repeat before all have had the previous one.
    both = [windows(side) for side in sides]
    for first, then in pairwise(range(4)):
        assert max(its[first] for its in both) < min(its[then] for its in both)
    turns = [(turn.block, turn.part, turn.repeat) for turn in record.turns[::2]]
    assert turns == [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]
    for side in sides:
        launched = [text for text in events(side, Launched) if "publisher" in text]
        assert len(launched) == 4, "each turn has a deployment of its own"
        assert json.loads((side / "rows.json").read_text())["rows"][0]["repeats"] == 2
    (entry,) = catalog(tmp_path)
    texts = [entry[name] for name in ("scenario", "client", "steps", "ended")]
    assert texts == ["zmqfixed", "pyzmq, pyzmq-2", 8, "finished"]


def test_what_was_interrupted_goes_on_in_the_same_order(run: Path) -> None:
    words = (*SMALL, "--clients", "1", "--repeat", 3, "--compare", SAME, "--out", run)
    with background(*words) as command:
        command.until(lambda: len(steps(run / "pyzmq-2")) >= 1, "a step of the second run")
        family = command.family()
        command.process.send_signal(signal.SIGINT)
        assert command.wait() == 130
        wait_until(lambda: all_ended(family), "the end of every process")
        assert f"continue with --resume {run}" in command.output()
    before = interleaved_record.read_record(run)
    assert before.ended == "interrupted"
    kept = {name: steps(run / name) for name in before.sides}
    assert sum(map(len, kept.values())) < 6
    done = hydra("zmqfixed", "--resume", run, "--json", "--fail-if", "clients == 1", expect=3, within_s=3 * LONG_S)
    assert "--fail-if: pyzmq, row 1 (1 subscriber): clients == 1 holds" in done.stderr
    assert [each["repeats"] for each in json.loads(done.stdout)["comparisons"] if each["primary"]] == [[3, 3]]
    after = interleaved_record.read_record(run)
    assert (after.seed, after.ended) == (before.seed, "finished")
    assert after.turns[: len(before.turns)] == before.turns
    for name, its in kept.items():
        assert steps(run / name)[: len(its)] == its
        assert len(steps(run / name)) == 3
    refused = hydra("zmqfixed", "--resume", run, "--compare", "pyzmq,native", expect=2)
    assert "compares pyzmq, pyzmq-2" in refused.stderr


def test_without_turns_one_is_measured_after_the_other(run: Path) -> None:
    words = ("--clients", "1", "--repeat", 2, "--compare", SAME, "--no-interleave", "--out", run)
    done = hydra(*SMALL, *words, "--json", within_s=3 * LONG_S)
    assert json.loads(done.stdout)["paired"] is False
    first, second = (windows(run / name) for name in ("pyzmq", "pyzmq-2"))
    assert max(first) < min(second)


def test_two_systems_take_turns_and_the_head_names_what_differs(run: Path) -> None:
    commands = [f"{name} --clients 1 --rate 200 --duration 0.2" for name in ("zmqfixed", "nats-fixed --mode jetstream")]
    words = [word for text in commands for word in ("--run", text)]
    done = hydra("compare", *words, "--repeat", 2, "--set", "warmup_s=0", "--out", run, "--json", within_s=3 * LONG_S)
    found = json.loads(done.stdout)
    assert (found["paired"], [each["system"] for each in found["runs"]]) == (True, ["zmq", "nats"])
    assert found["differs"] == [
        "What differs: system: zmq (zmqfixed), nats (nats-fixed); "
        "mode: the default (zmqfixed), jetstream (nats-fixed).",
        "zmqfixed acknowledges nothing and keeps nothing; beyond the high-water mark messages are dropped. "
        "nats-fixed acknowledges each message and keeps one copy in memory.",
    ]
    assert [each["repeats"] for each in found["comparisons"] if each["primary"]] == [[2, 2]]
    same = {"row": "1 subscriber", "clients": 1, "publishers": 1, "rate": 200.0, "message_size": 128}
    assert [row | same for row in found["rows"]] == found["rows"]
    record = interleaved_record.read_record(run)
    assert record.commands == dict(zip(("zmqfixed", "nats-fixed"), commands, strict=True))
    again = hydra("compare", "--resume", run, "--json", "--fail-if", "clients == 1", expect=3, within_s=LONG_S)
    assert json.loads(again.stdout)["differs"] == found["differs"]
    refused = hydra("zmqfixed", "--resume", run, expect=2)
    assert f"continue it with hydra compare --resume {run}" in refused.stderr
