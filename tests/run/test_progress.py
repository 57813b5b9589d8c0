"""What a person sees while a run goes on, and a run that goes on when nobody can see it."""

from __future__ import annotations

import contextlib
import io
import os
import pty
from dataclasses import replace

import pytest

from hydra.events.runs import SystemFact
from hydra.model import Settings, StepPlan, StepResult
from hydra.run.keys import Keys
from hydra.run.moment import Moment
from hydra.run.progress import Observer

PLAN = StepPlan(clients=3, settings=Settings(rate=100.0, burst=100), duration_s=1.0)


def watch(observer: Observer) -> None:
    observer.show(SystemFact("begins", "now"))
    done = [StepResult(epoch, PLAN, "ok") for epoch in range(1, 5)]
    observer.sweep_begins(6, done, ("rate", "burst"))
    observer.step_begins(PLAN, 10.0)
    observer.tick(Moment(elapsed_s=0.5, share=0.5, received_pps=100.0))
    observer.step_ended(StepResult(1, PLAN, "ok"))
    observer.step_ended(StepResult(2, replace(PLAN, clients=6), "failed", reason="geheim was refused"))
    observer.close()


def test_steps_and_warnings_are_lines_without_secrets() -> None:
    stream = io.StringIO()
    watch(Observer(stream, redact=lambda text: text.replace("geheim", "***")))
    begins, first, second = stream.getvalue().splitlines()
    assert begins == "begins: now"
    assert first.startswith("step 5 of 6: 3 clients, 100/s, burst 100: Tx")
    assert second == "warning: step 5 of 6: 6 clients, 100/s, burst 100: FAILED: *** was refused"


@pytest.mark.parametrize(
    ("plain", "quiet", "term", "view"),
    [
        (False, False, "xterm", True),
        (True, False, "xterm", False),
        (False, True, "xterm", False),
        (False, False, "dumb", False),
    ],
)
def test_a_terminal_has_a_view_unless_that_is_not_wanted(
    plain: bool, quiet: bool, term: str, view: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    ours, end = pty.openpty()
    with os.fdopen(end, "w", buffering=1) as stream:
        # Nobody's keys are taken: the terminal is not the one that this test was started from.
        watch(Observer(stream, keys=Keys(end), plain=plain, quiet=quiet))
        shown = ""
        while "was refused" not in shown:
            shown += os.read(ours, 65_536).decode()
    os.close(ours)
    assert ("Ctrl-C ends the run now" in shown) is view
    assert ("\x1b[?25l" in shown) is view


@pytest.mark.parametrize("gone", ["a full disk", "a closed pipe", "a closed terminal"])
def test_a_display_that_cannot_be_written_ends_nothing(gone: str) -> None:
    if gone == "a full disk":
        end = os.open("/dev/full", os.O_WRONLY)
    elif gone == "a closed pipe":
        reader, end = os.pipe()
        os.close(reader)
    else:
        ours, end = pty.openpty()
        os.close(ours)
    stream = os.fdopen(end, "w", buffering=1)
    try:
        with pytest.raises(OSError, match=r"No space|Broken pipe|Input/output"):
            print("it cannot be written", file=stream)
        watch(Observer(stream))
    finally:
        with contextlib.suppress(OSError):
            stream.close()


def test_a_step_that_failed_is_tried_again_under_its_number() -> None:
    stream = io.StringIO()
    observer = Observer(stream)
    observer.sweep_begins(2, [], ())
    for again in (True, True, False, False):
        observer.step_begins(PLAN, 10.0)
        observer.step_ended(StepResult(1, PLAN, "failed", reason="why"), again=again)
    observer.close()
    assert stream.getvalue().splitlines() == [
        "warning: step 1 of 2: 3 clients, 100/s: FAILED, is tried once more: why",
        "warning: step 1 of 2, try 2: 3 clients, 100/s: FAILED, is tried once more: why",
        "warning: step 1 of 2, try 3: 3 clients, 100/s: FAILED: why",
        "warning: step 2 of 2: 3 clients, 100/s: FAILED: why",
    ]
