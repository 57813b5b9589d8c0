"""What a person sees while a run goes on: a line per step, and on a terminal a moving line with the time left."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from hydra.events.event import Event
from hydra.events.steps import StepMeasured
from hydra.events.warnings import HydraWarning, StepNotMeasured
from hydra.events.words import describe, duration
from hydra.model import StepPlan, StepResult
from hydra.run.moment import Moment


class _Tolerant:
    """A stream that drops what cannot be written: its terminal is closed, its reader gone, its disk full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes it, or not."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Writes what is left, or not."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Observer:
    """Shows a run on standard error: plain lines when that is piped, a progress line on a terminal.

    A reader that goes away, or a disk that is full, ends the display and not the run.

    Args:
        stream: where to write; None is standard error.
        quiet: show warnings only.
        redact: hides secrets in a text.
        label: what the run is a part of, before its steps.
        clock_s: a clock that never goes back, in seconds.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        redact: Callable[[str], str] = str,
        label: str = "",
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = Console(file=cast("TextIO", _Tolerant(stream or sys.stderr)), highlight=False, soft_wrap=True)
        self._quiet = quiet
        self._redact = redact
        self._clock_s = clock_s
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._steps = 0
        self._of = ""
        self._varied: tuple[str, ...] = ()
        self._left_until_s = 0.0
        if self._console.is_terminal and not quiet:
            self._progress = Progress(
                TextColumn(f"{label}{{task.description}}"),
                BarColumn(bar_width=10),
                TextColumn("{task.fields[rate]}"),
                TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )

    def show(self, event: Event) -> None:
        """One line about what happens; of a quiet run, warnings only."""
        if isinstance(event, HydraWarning):
            self._print(f"warning: {event}", "yellow")
        elif not self._quiet:
            self._print(str(event))

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(self._redact(text), markup=False, style=style)

    def sweep_begins(self, steps: int | None, done: int, varied: Sequence[str]) -> None:
        """A sweep begins, or goes on.

        Args:
            steps: how many it has; None where that is not known before.
            done: how many of them were measured earlier.
            varied: the settings that tell its steps from each other.
        """
        self._steps, self._varied = done, tuple(varied)
        self._of = f" of {steps}" if steps is not None else ""

    def step_begins(self, plan: StepPlan, left_s: float) -> None:
        """A step is being prepared; ``left_s`` is about how long the run still takes."""
        self._steps += 1
        self._left_until_s = self._clock_s() + left_s
        if self._progress is not None:
            self._progress.start()
            self._task = self._progress.add_task(self._description(plan), total=1.0, rate="preparing", left="")
            self._tell_what_is_left()

    def _description(self, plan: StepPlan) -> str:
        return f"step {self._steps}{self._of}: {describe(plan, self._varied)}"

    def _tell_what_is_left(self) -> None:
        if self._progress is not None:
            left_s = max(self._left_until_s - self._clock_s(), 1.0)
            self._progress.update(self._task, left=f"about {duration(left_s)} left")

    def tick(self, moment: Moment) -> None:
        """The step's window is open, or what was stored is being read."""
        if self._progress is not None and moment.elapsed_s > 0:
            self._progress.update(self._task, completed=moment.share, rate=_doing(moment))
            self._tell_what_is_left()

    def step_ended(self, result: StepResult) -> None:
        """A step is stored."""
        if self._progress is not None:
            self._progress.remove_task(self._task)
            self._progress.stop()
        if result.status == "ok":
            self.show(StepMeasured(self._description(result.plan), result.plan, result.figures))
        else:
            self.show(StepNotMeasured(self._description(result.plan), result.status, result.reason))

    def close(self) -> None:
        """Leaves the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()


def _doing(moment: Moment) -> str:
    """What a step does, at which rates and for how long still."""
    rates = []
    if moment.sent_pps:
        rates.append(f"{moment.sent_pps:,.0f}/s sent")
    if moment.received_pps:
        rates.append(f"{moment.received_pps:,.0f}/s per subscriber")
    left = f"{duration(moment.left_s)} left" if moment.left_s is not None else ""
    return ", ".join(filter(None, ["reading" if moment.reading else "", *rates, left])) or "running"
