"""The display of a run on standard error: a line for each step, starting servers, and a live view with keys."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TextIO, cast

from rich.console import Console, Group
from rich.live import Live

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.events.event import Event
from hydra.events.run_events import (
    LadderStepMeasured,
    SearchStepMeasured,
    ServersStarted,
    ServersStarting,
    StepMeasured,
)
from hydra.events.value_formatting import describe
from hydra.events.warnings import HydraWarning, StepNotMeasured
from hydra.measure.step_result import StepResult
from hydra.model import StepPlan
from hydra.monitor.step_progress import LiveViewState, ProgressDetails, SparklinePoint, StepProgress
from hydra.sweep.cleanness import why_not_clean
from hydra.sweep.interface import LadderProgress, SearchProgress
from hydra.system import Waiting

if TYPE_CHECKING:
    from hydra.monitor.keyboard import Keyboard

_COLUMNS: Final = 80
"""The width of a terminal that states none."""
_VIEWS_A_SECOND: Final = 4
_LOOK_EVERY_S: Final = 1.0
"""Seconds between two updates of the details beside the rates: clients report their progress no more often."""


class _Tolerant:
    """A stream that drops text that cannot be written: its terminal is closed, its reader ended, or its disk full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes the text, or drops it."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Writes buffered text, or drops it."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Observer:
    """Shows a run on standard error: plain lines, and on a terminal a live view below them.

    If the reader of the stream ends or the disk is full, the display ends and the run continues.

    Args:
        stream: the stream to write to; None is standard error.
        quiet: show warnings only.
        plain: show lines only, also on a terminal.
        redact: hides secrets in a text.
        label: the name of what the run is a part of, shown before its steps.
        keys: the keyboard of the live view.
        clock_s: a monotonic clock, in seconds.

    Attributes:
        ends: whether the user wants the run to end after this step.
        passes_over: whether the user wants to skip the row that is being measured.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        plain: bool = False,
        redact: Callable[[str], str] = str,
        label: str = "",
        keys: Keyboard | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ends = self.passes_over = False
        file = cast("TextIO", _Tolerant(stream or sys.stderr))
        # With COLUMNS=0 rich would print nothing.
        none = os.environ.get("COLUMNS") == "0"
        self._console = Console(file=file, highlight=False, soft_wrap=True, width=_COLUMNS if none else None)
        self._quiet = quiet
        self._redact = redact
        self._label = label
        self._keys: Keyboard | None = None
        self._clock_s = clock_s
        self._steps = 0
        self._of: int | None = None
        self._varied: tuple[str, ...] = ()
        self._again = self._asks = False
        self._tries = 1
        self._left_until_s: float | None = None
        self._look_again_s = 0.0
        self._snapshot = LiveViewState("")
        self._live: Live | None = None
        if self._console.is_terminal and not self._console.is_dumb_terminal and not quiet and not plain:
            from hydra.monitor.keyboard import Keyboard

            self._keys = keys or Keyboard()
            self._live = Live(
                console=self._console, get_renderable=self._view, refresh_per_second=_VIEWS_A_SECOND, transient=True
            )

    def show(self, event: Event) -> None:
        """Prints one line about an event; a quiet run prints warnings only."""
        if isinstance(event, HydraWarning):
            self._print(f"warning: {event}", "yellow")
        elif not self._quiet:
            self._print(str(event), "yellow" if isinstance(event, StepMeasured) and event.not_clean else None)

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(self._redact(text), markup=False, style=style)

    def sweep_begins(self, steps: int | None, done: Sequence[StepResult], varied: Sequence[str]) -> None:
        """A sweep begins or continues.

        Args:
            steps: the number of its steps; None if the results decide it.
            done: the steps that were measured before.
            varied: the settings that distinguish its steps.
        """
        self._steps, self._of, self._varied = len(done), steps, tuple(varied)
        self._snapshot = replace(self._snapshot, points=[SparklinePoint.of(result) for result in done])

    @property
    def is_live(self) -> bool:
        """Whether there is a live view, so passing states need no lines."""
        return self._live is not None

    def preparing(self, what: Event | None) -> None:
        """Shows in the live view only what is starting before or in a step; None: nothing is any more."""
        self._snapshot = replace(self._snapshot, preparing=self._redact(str(what)) if what else "")
        if self._live is not None and not self._live.is_started and what:
            self._live.start()

    def present(self, clients: int, of: int) -> None:
        """Shows in the live view only how many of the clients that a step needs have connected."""
        self._snapshot = replace(self._snapshot, clients=(clients, of))

    def step_begins(self, plan: StepPlan, left_s: float) -> None:
        """A step is being prepared; ``left_s`` is about how long the run still takes."""
        self._steps += not self._again
        self._tries = self._tries + 1 if self._again else 1
        self._left_until_s = self._clock_s() + left_s
        self._look_again_s = 0.0
        title = self._redact(f"{self._label}{self._description(plan)}")
        self._snapshot = replace(self._snapshot, title=title, moment=None, watched=ProgressDetails(), clients=None)
        if self._live is not None and self._keys is not None and not self._asks:
            self._asks = True
            self._snapshot = replace(self._snapshot, keys=self._keys.open())
            self._live.start()

    def _description(self, plan: StepPlan) -> str:
        # A resumed run retries failed steps, so there may be more steps than were counted.
        of = f" of {max(self._of, self._steps)}" if self._of is not None else ""
        tries = f", try {self._tries}" if self._tries > 1 else ""
        return f"step {self._steps}{of}{tries}: {describe(plan, self._varied)}"

    def tick(self, moment: StepProgress) -> None:
        """Shows the progress of a step; called a few times a second."""
        if self._live is None:
            return
        watched = self._snapshot.watched
        if moment.doing == "sending" and self._clock_s() >= self._look_again_s:
            self._look_again_s = self._clock_s() + _LOOK_EVERY_S
            watched = moment.watched()
        self._snapshot = replace(self._snapshot, moment=moment, watched=watched)

    def step_ended(
        self, result: StepResult, progress: SearchProgress | LadderProgress | None = None, *, again: bool = False
    ) -> None:
        """Shows the line of a step that is stored.

        Args:
            result: of the step.
            progress: what the search or the ladder of the step has shown so far; None: the step is of none.
            again: whether the step failed and is measured once more.
        """
        self._look_for_keys()
        self.passes_over = False
        self._snapshot = replace(self._snapshot, points=[*self._snapshot.points, SparklinePoint.of(result)])
        position = self._description(result.plan)
        if result.status != "ok":
            self.show(StepNotMeasured(position, result.status, result.reason, again))
        elif isinstance(progress, LadderProgress):
            self.show(LadderStepMeasured(position, *progress))
        elif progress is not None:
            self.show(SearchStepMeasured(position, *progress))
        else:
            # Steps of a search lose messages on purpose.
            why = why_not_clean(result.figures) if result.plan.series == "grid" else ""
            self.show(StepMeasured(position, result.plan, result.figures.cells, why))
        self._again = again

    def close(self) -> None:
        """Ends the live view and restores the terminal; may be called twice."""
        try:
            if self._live is not None and self._live.is_started:
                self._live.stop()
        finally:
            if self._keys is not None:
                self._keys.close()
            if self._live is not None:
                # An interrupted stop may have left the cursor hidden.
                self._console.show_cursor()

    def _view(self) -> Group:
        """The present live view; its thread calls this."""
        from hydra.monitor.live_view import lines

        self._look_for_keys()
        left_s = None if self._left_until_s is None else max(self._left_until_s - self._clock_s(), 1.0)
        shown = replace(self._snapshot, left_s=left_s, ends=self.ends, passes_over=self.passes_over)
        # One line is left free: the terminal would scroll.
        return Group(*lines(shown, self._console.width, self._console.height - 1))

    def _look_for_keys(self) -> None:
        if self._keys is None:
            return
        from hydra.monitor.live_view import END_KEY, SKIP_KEY

        pressed = self._keys.pressed().lower()
        self.ends = self.ends or END_KEY in pressed
        self.passes_over = self.passes_over or SKIP_KEY in pressed


_QUICK_S: Final = 2.0
"""Only a longer start is shown."""
_LINES_EVERY_S: Final = 5.0
"""The least seconds between two lines; a line that equals the last one is not repeated."""


class ServerStartup:
    """Shows the progress of the start of a run's servers while the run waits for it.

    Args:
        observer: the display.
        what: the servers, as in ``3 … servers``; "": there are none to start, and nothing is shown.
        waits: waits for a condition with a time limit.
        clock_s: a monotonic clock, in seconds.

    Attributes:
        doing: the progress, as in ``1 of 3 dialled in``; the code that starts the servers sets it.
    """

    def __init__(
        self, observer: Observer, what: str, waits: Waiting, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.doing = ""
        self._observer = observer
        self._what = what
        self._waits = waits
        self._clock_s = clock_s
        self._began_s: float | None = None
        self._shown: tuple[float, str] | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the waits in this context, by :meth:`wait`, as the start of servers."""
        if not self._what:
            yield
            return
        began_s = self._began_s = self._clock_s()
        self.doing, self._shown = "", None
        try:
            self._look()
            yield
        finally:
            self._began_s = None
            self._observer.preparing(None)
        if (took_s := self._clock_s() - began_s) >= _QUICK_S:
            self._observer.show(ServersStarted(self._what, took_s))

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """See :data:`hydra.system.Waiting`."""

        def looked() -> bool:
            self._look()
            return condition()

        return self._waits(looked, timeout_s)

    def _look(self) -> None:
        """Shows the progress, if a line is due."""
        if self._began_s is None:
            return
        now_s = self._clock_s()
        event = ServersStarting(self._what, self.doing, now_s - self._began_s)
        self._observer.preparing(event)
        since_s, shown_text = self._shown or (self._began_s + _QUICK_S - _LINES_EVERY_S, None)
        if now_s - since_s >= _LINES_EVERY_S and shown_text != self.doing and not self._observer.is_live:
            self._shown = (now_s, self.doing)
            self._observer.show(event)


def servers_of(resolved: ResolvedScenario) -> str:
    """The servers that a run of this scenario starts, in words; "" if it starts none."""
    count = resolved.servers
    return f"{count} {resolved.system.identity.name} server{'s' if count > 1 else ''}" if count else ""
