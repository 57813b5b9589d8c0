"""What a person sees while a run goes on: a line per step, servers that start, and a live view with keys to press."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TextIO, cast

from rich.console import Console, Group
from rich.live import Live

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.events.event import Event
from hydra.events.run_events import ServersStarted, ServersStarting, StepMeasured
from hydra.events.value_formatting import describe
from hydra.events.warnings import HydraWarning, StepNotMeasured
from hydra.model import StepPlan, StepResult
from hydra.monitor.keyboard import Keyboard
from hydra.monitor.live_view import END_KEY, SKIP_KEY, LiveViewState, SparklinePoint, lines
from hydra.monitor.step_progress import ProgressDetails, StepProgress
from hydra.system import Waiting

_VIEWS_A_SECOND: Final = 4
_LOOK_EVERY_S: Final = 1.0
"""How often more is asked about a moment than its rates: clients tell no oftener how far they are."""


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
    """Shows a run on standard error: plain lines when that is piped, and below them a live view on a terminal.

    A reader that goes away, or a disk that is full, ends the display and not the run.

    Args:
        stream: where to write; None is standard error.
        quiet: show warnings only.
        plain: show lines only, also on a terminal.
        redact: hides secrets in a text.
        label: what the run is a part of, before its steps.
        keys: where the user may press keys while there is a live view.
        clock_s: a clock that never goes back, in seconds.

    Attributes:
        ends: whether the user wants the run to end after this step.
        passes_over: whether the user wants no more of the row that is being measured.
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
        self._console = Console(file=cast("TextIO", _Tolerant(stream or sys.stderr)), highlight=False, soft_wrap=True)
        self._quiet = quiet
        self._redact = redact
        self._label = label
        self._keys = keys or Keyboard()
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
            self._live = Live(
                console=self._console, get_renderable=self._view, refresh_per_second=_VIEWS_A_SECOND, transient=True
            )

    def show(self, event: Event) -> None:
        """One line about what happens; of a quiet run, warnings only."""
        if isinstance(event, HydraWarning):
            self._print(f"warning: {event}", "yellow")
        elif not self._quiet:
            self._print(str(event))

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(self._redact(text), markup=False, style=style)

    def sweep_begins(self, steps: int | None, done: Sequence[StepResult], varied: Sequence[str]) -> None:
        """A sweep begins, or goes on.

        Args:
            steps: how many it has; None where that is not known before.
            done: those that were measured earlier.
            varied: the settings that tell its steps from each other.
        """
        self._steps, self._of, self._varied = len(done), steps, tuple(varied)
        self._snapshot = replace(self._snapshot, points=[SparklinePoint.of(result) for result in done])

    @property
    def is_live(self) -> bool:
        """Whether there is a live view, so that lines are for what stays true."""
        return self._live is not None

    def preparing(self, what: Event | None) -> None:
        """Before or in a step something is brought up that takes its time; None: no more. Shown by the view only."""
        self._snapshot = replace(self._snapshot, preparing=self._redact(str(what)) if what else "")
        if self._live is not None and not self._live.is_started and what:
            self._live.start()

    def present(self, clients: int, of: int) -> None:
        """So many clients have dialled in, of those that a step needs. Shown by the view only."""
        self._snapshot = replace(self._snapshot, clients=(clients, of))

    def step_begins(self, plan: StepPlan, left_s: float) -> None:
        """A step is being prepared; ``left_s`` is about how long the run still takes."""
        self._steps += not self._again
        self._tries = self._tries + 1 if self._again else 1
        self._left_until_s = self._clock_s() + left_s
        self._look_again_s = 0.0
        title = self._redact(f"{self._label}{self._description(plan)}")
        self._snapshot = replace(self._snapshot, title=title, moment=None, watched=ProgressDetails(), clients=None)
        if self._live is not None and not self._asks:
            self._asks = True
            self._snapshot = replace(self._snapshot, keys=self._keys.open())
            self._live.start()

    def _description(self, plan: StepPlan) -> str:
        # Steps that failed are tried again in a run that is resumed: there may be more than were counted.
        of = f" of {max(self._of, self._steps)}" if self._of is not None else ""
        tries = f", try {self._tries}" if self._tries > 1 else ""
        return f"step {self._steps}{of}{tries}: {describe(plan, self._varied)}"

    def tick(self, moment: StepProgress) -> None:
        """The step's window is open, or what follows it goes on; called a few times a second."""
        if self._live is None:
            return
        watched = self._snapshot.watched
        if moment.doing == "sending" and self._clock_s() >= self._look_again_s:
            self._look_again_s = self._clock_s() + _LOOK_EVERY_S
            watched = moment.watched()
        self._snapshot = replace(self._snapshot, moment=moment, watched=watched)

    def step_ended(self, result: StepResult, *, again: bool = False) -> None:
        """A step is stored; ``again`` is whether it has failed and is tried once more."""
        self._look_for_keys()
        self.passes_over = False
        self._snapshot = replace(self._snapshot, points=[*self._snapshot.points, SparklinePoint.of(result)])
        if result.status == "ok":
            self.show(StepMeasured(self._description(result.plan), result.plan, result.figures))
        else:
            self.show(StepNotMeasured(self._description(result.plan), result.status, result.reason, again))
        self._again = again

    def close(self) -> None:
        """Leaves the terminal as it was; may be called twice."""
        try:
            if self._live is not None and self._live.is_started:
                self._live.stop()
        finally:
            self._keys.close()
            if self._live is not None:
                # Also where stopping it was interrupted.
                self._console.show_cursor()

    def _view(self) -> Group:
        """What there is to see now; asked by the thread of the live view."""
        self._look_for_keys()
        left_s = None if self._left_until_s is None else max(self._left_until_s - self._clock_s(), 1.0)
        shown = replace(self._snapshot, left_s=left_s, ends=self.ends, passes_over=self.passes_over)
        # One line is left free: the terminal would scroll.
        return Group(*lines(shown, self._console.width, self._console.height - 1))

    def _look_for_keys(self) -> None:
        pressed = self._keys.pressed().lower()
        self.ends = self.ends or END_KEY in pressed
        self.passes_over = self.passes_over or SKIP_KEY in pressed


_QUICK_S: Final = 2.0
"""Nobody has to be told of a start that takes no longer."""
_LINES_EVERY_S: Final = 5.0
"""Between two lines at least; one that says the same as the last is not repeated."""


class ServerStartup:
    """Tells how far the start of a run's servers is, while somebody waits for it.

    Args:
        observer: shows it.
        what: the servers, as in ``3 … servers``; "": there are none to be started, and nothing is told.
        waits: how whoever starts them waits for them.
        clock_s: a clock that never goes back, in seconds.

    Attributes:
        doing: how far they are, as in ``1 of 3 dialled in``; set by whoever starts them.
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
        self._told: tuple[float, str] | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """What is waited for in here, by :meth:`wait_for`, is the start of servers."""
        if not self._what:
            yield
            return
        began_s = self._began_s = self._clock_s()
        self.doing, self._told = "", None
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
        """Tells how far they are, if that is due."""
        if self._began_s is None:
            return
        now_s = self._clock_s()
        event = ServersStarting(self._what, self.doing, now_s - self._began_s)
        self._observer.preparing(event)
        since_s, said = self._told or (self._began_s + _QUICK_S - _LINES_EVERY_S, None)
        if now_s - since_s >= _LINES_EVERY_S and said != self.doing and not self._observer.is_live:
            self._told = (now_s, self.doing)
            self._observer.show(event)


def servers_of(resolved: ResolvedScenario) -> str:
    """The servers that a run of this scenario starts, in words; "" if it starts none."""
    count = resolved.servers
    return f"{count} {resolved.system.name} server{'s' if count > 1 else ''}" if count else ""
