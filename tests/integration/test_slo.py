"""``hydra slo`` as a user would run it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hydra.serve.html_pages import run_list_page
from hydra.serve.overview import Overview
from hydra.store.database import DATABASE, RunStore
from tests.integration.command import answer_of, background, hydra, refusal
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")

HOLDS = ("zmqfixed", "--rate", "400", "--clients", "3", "--p50", "10s", "--stall", "10ms", "--loss", "0")

SCENARIO = """
system = "zmq"
client = "pyzmq"
table = "fixed"
[settings]
rate = 300.0
[sweep]
clients = [4]
duration_s = 6.0
[load]
shape = "ramp"
low = 0.5
[[events]]
at_s = 1.0
kind = "burst"
for_s = 0.5
factor = 3.0
[[events]]
at_s = 3.0
kind = "gone"
for_s = 1.0
fraction = 0.25
[slo]
loss_pct = 0.0
recovery_s = 6.0
"""


@pytest.mark.tier("test")
def test_a_workload_that_holds_is_a_yes_with_its_margins(run: Path) -> None:
    answer = answer_of(*HOLDS, "--duration", "1s", out=run)
    objectives = {o["name"]: o for o in answer["objectives"]}
    assert objectives["p50_ms"]["margin"] == 10_000 - objectives["p50_ms"]["measured"]
    assert 0 < objectives["loss_pct"]["limit"] < 20
    assert answer["complete"] is True
    # Those of its row, as any table has them.
    output = json.loads((run / "rows.json").read_text())["warnings"]
    assert [w["text"] for w in answer["warnings"]] == [w["text"] for w in output if w["row"] is not None]
    assert (run / "slo.md").read_text().startswith(f"# zmqfixed: {answer['answer']}")


@pytest.mark.tier("test")
def test_one_that_does_not_is_a_no_in_the_last_line_in_lists_and_at_the_top_of_the_report(run: Path) -> None:
    # Other tests may use the CPU, which alone would make it unknown: what the run does on purpose is no such reason.
    event = 'events=[{kind="gone", at_s=0.5, for_s=0.1, fraction=0.3}]'
    requests = (*HOLDS, "--p99", "1us", "--duration", "1s", "--set", event)
    done = hydra("slo", *requests, "--quiet", "--out", run, expect=3)
    assert "no: the workload does not hold" in done.stdout
    line = done.stdout.splitlines()[-1]
    # The rate may be missed, too, where other tests took the CPU.
    assert re.fullmatch(r"no: (rate .*; )?p99_ms \S+ ms \(95 % interval: .*\), target <= 0.001 ms(; rate .*)?", line)
    (listed,) = json.loads(hydra("runs", run.parent, "--json").stdout)
    assert (listed["slo"], listed["why"].startswith(f"objectives: {line}")) == ("no", True)
    (entry,) = Overview(run.parent, run.parent / "cache").entries()
    top, *_ = entry.numbers
    assert (top.label, top.value, top.clean, f"no: {top.detail}") == ("objectives kept", "no", False, line)
    assert '<span class="mark">⚠ finished</span>' in run_list_page("runs", "", [entry])


@pytest.mark.tier("test")
def test_one_of_which_a_second_tells_too_little_is_unknown(tmp_path: Path) -> None:
    done = hydra("slo", *HOLDS, "--p99", "10s", "--duration", "1s", "--json", "--out", tmp_path / "run", expect=3)
    assert "the answer yes takes at least" in done.stderr
    answer = json.loads(done.stdout)
    (p99,) = (o for o in answer["objectives"] if o["name"] == "p99_ms")
    assert (p99["answer"], p99["holds"], p99["measure_s"] > 1) == ("unknown", None, True)
    assert answer["answer"] != "yes"


def test_a_recorded_load_is_sent_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("t,rate\n0,100\n2,300\n4,100\n")
    load = ("--load", "recorded", "--set", f"load.file={tmp_path / 'l.csv'}", "--clients", "2")
    answer_of("zmqfixed", *load, "--max", "10s", "--duration", "4s", out=tmp_path / "run")
    with RunStore.open(tmp_path / "run") as store:
        found = store.course(store.results()[-1].epoch)
        assert found is not None
        assert [i.due for i in found[2]][:4] == [150, 250, 250, 150]
        assert 400 < sum(i.sent for i in found[2]) <= 800


def test_a_load_with_events_tells_what_each_of_them_did(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    answer = answer_of(tmp_path / "s.toml", out=tmp_path / "run")
    assert [event["kind"] for event in answer["events"]] == ["burst", "gone"]
    with RunStore.open(tmp_path / "run") as store:
        (result,) = store.results()
        found = store.course(result.epoch)
    assert found is not None
    plan, facts, series = found
    assert sum(i.due for i in series) == pytest.approx(300 * 0.75 * 6 + 2 * 0.5 * 180, rel=0.05)
    assert sum(i.received for i in series) == 3 * sum(i.sent for i in series)
    # The disconnected subscriber has missed about a second.
    ended = sum(i.sent for i in series) - sum(i.cohort_received for i in series)
    assert 100 < ended < 600
    assert facts.complete is True
    assert plan.load[1][0] == 1.0


def test_the_seconds_outlive_a_killed_controller(run: Path) -> None:

    def seconds() -> int:
        if not (run / DATABASE).is_file():
            return 0
        with RunStore.open(run) as store:
            return sum(
                i.received > 0 for e in store.time_series_epochs() if (found := store.course(e)) for i in found[2]
            )

    with background("slo", *HOLDS, "--duration", "600s", "--out", run) as command:
        wait_until(lambda: seconds() >= 3, "three seconds of the step", LONG_S)
        command.process.kill()
        command.process.wait()
    assert seconds() >= 3
    with RunStore.open(run) as store:
        assert store.results() == []


RATE, ONE = ("--rate", "900"), ("--rate", "900", "--clients", "1")


@pytest.mark.tier("quick")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--rate", "20", "--clients", "1", "--duration", "1s", "--p99", "20ms"), "p99_ms of 20 messages cannot be"),
        (ONE, "no objective is set"),
        ((*ONE, "--p99", "1s", "--repeat", "3"), "one step without repeats"),
        (("--rate", "max", "--clients", "1", "--p99", "20ms"), "with rate 'max' messages have no due times"),
        ((*RATE, "--clients", "1,2", "--p99", "20ms"), "several subscriber counts: 1, 2"),
        ((*ONE, "--p99", "soon"), "'soon' is no time"),
        ((*ONE, "--recovery", "5s"), "the scenario has no event"),
        ((*ONE, "--p99", "1s", "--load", "recorded"), "needs a CSV"),
        ((*ONE, "--p99", "1s", "--set", 'events=[{at_s=99.0,kind="burst"}]'), "is after the end of the step"),
        ((*ONE, "--p99", "1s", "--set", 'events=[{at_s=9.0,kind="kill_server"}]'), "is no event of system zmq"),
    ],
)
def test_what_no_step_could_answer_is_refused_in_one_line(words: tuple[str, ...], text: str, tmp_path: Path) -> None:
    assert text in refusal("slo", "zmqfixed", "--duration", "20s", *words, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
