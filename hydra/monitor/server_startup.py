"""What is told of servers while they start: all the time on a terminal's view, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final

from hydra.config.resolved import ResolvedScenario
from hydra.events.runs import ServersStarted, ServersStarting
from hydra.monitor.progress import Observer
from hydra.system import Waiting

_QUICK_S: Final = 2.0
"""Nobody has to be told of a start that takes no longer."""
_LINES_EVERY_S: Final = 5.0
"""Between two lines at least; one that says the same as the last is not repeated."""


class Starting:
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
        """What is waited for in here, by :meth:`wait`, is the start of servers."""
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
