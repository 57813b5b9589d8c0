"""Several implementations by one command, in turns: what is measured when, and how it goes on."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from hydra.events.clients import Launched
from hydra.results import interleaved
from hydra.results.catalog import catalog
from hydra.results.store import RunStore
from tests.integration.command import background, events, gone, hydra, steps, wait_until

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]  # up to twelve deployments each

SMALL = ("zmqfixed", "--rate", 500, "--duration", 0.2, "--set", "warmup_s=0")
SAME = "pyzmq,pyzmq"


def told(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def windows(run: Path) -> list[int]:
    """When each step of a run began."""
    with RunStore.open(run) as store:
        return [store.window_ns(result.epoch)[0] for result in store.results()]


def test_repeats_take_turns_each_with_clients_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "both"
    done = hydra(
        *SMALL, "--clients", "1,2", "--repeat", 3, "--compare-implementations", SAME, "--out", folder, "--json",
        "--fail-if", "avg_rx_rate_pps < 0.01 * base", within_s=300,
    )  # fmt: skip
    found = told(done.stdout)
    assert (found["paired"], [run["name"] for run in found["runs"]]) == (True, ["pyzmq", "pyzmq-2"])
    assert [each["repeats"] for each in found["comparisons"] if each["primary"]] == [[3, 3], [3, 3]]
    assert found["environment"] == []
    record = interleaved.read(folder)
    assert record.ended == "finished"
    sides = [folder / name for name in record.sides]
    assert [steps(side) for side in sides] == [[(epoch, "ok") for epoch in range(1, 7)]] * 2
    # Nobody begins a repeat before everybody has had the one before.
    both = [windows(side) for side in sides]
    for first, then in zip(range(6), range(1, 6), strict=False):
        assert max(its[first] for its in both) < min(its[then] for its in both)
    assert [(turn.block, turn.part, turn.repeat) for turn in record.turns[::2]] == [
        (3 * part + repeat, part, repeat) for part in range(2) for repeat in range(3)
    ]
    for side in sides:
        launched = [text for text in events(side, Launched) if "publisher" in text]
        assert len(launched) == 6, "each turn has a deployment of its own"
        assert json.loads((side / "rows.json").read_text())["rows"][0]["repeats"] == 3
    (entry,) = catalog(tmp_path)
    assert (entry["scenario"], entry["client"], entry["steps"], entry["ended"]) == (
        "zmqfixed", "pyzmq, pyzmq-2", 12, "finished",
    )  # fmt: skip


def test_what_was_interrupted_goes_on_in_the_same_order(tmp_path: Path) -> None:
    folder = tmp_path / "both"
    words = (*SMALL, "--clients", "1", "--repeat", 4, "--compare-implementations", SAME, "--out", folder)
    with background(*words, log=tmp_path / "log") as command:
        wait_until(lambda: len(steps(folder / "pyzmq-2")) >= 1, 200, "a step of the second run")
        command.process.send_signal(signal.SIGINT)
        assert command.wait(200) == 130
        left = command.family()
        wait_until(lambda: gone(left), 20, "the end of every process")
        assert f"it goes on with --resume {folder}" in command.output()
    before = interleaved.read(folder)
    assert before.ended == "interrupted"
    kept = {name: steps(folder / name) for name in before.sides}
    assert sum(map(len, kept.values())) < 8
    done = hydra("zmqfixed", "--resume", folder, "--json", "--fail-if", "clients == 1", expect=3, within_s=300)
    assert "--fail-if: pyzmq, row 1 (1 clients): clients == 1 holds" in done.stderr
    assert [each["repeats"] for each in told(done.stdout)["comparisons"] if each["primary"]] == [[4, 4]]
    after = interleaved.read(folder)
    assert (after.seed, after.ended) == (before.seed, "finished")
    assert after.turns[: len(before.turns)] == before.turns
    for name, its in kept.items():
        assert steps(folder / name)[: len(its)] == its
        assert len(steps(folder / name)) == 4
    refused = hydra("zmqfixed", "--resume", folder, "--compare-implementations", "pyzmq,native", expect=2)
    assert "compares pyzmq, pyzmq-2" in refused.stderr


def test_without_turns_one_is_measured_after_the_other(tmp_path: Path) -> None:
    folder = tmp_path / "both"
    words = ("--clients", "1", "--repeat", 2, "--compare-implementations", SAME, "--no-interleave", "--out", folder)
    done = hydra(*SMALL, *words, "--json", within_s=300)
    assert told(done.stdout)["paired"] is False
    first, second = (windows(folder / name) for name in ("pyzmq", "pyzmq-2"))
    assert max(first) < min(second)
