"""The servers during a step: their planned ends and returns, their counters, and the growth of their log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from hydra.errors import HydraError, StepError
from hydra.events.run_events import ServerRestarted
from hydra.measure.observation import ServerFigures, ServerSample, between
from hydra.model import ServerRestart, Settings
from hydra.run.context import RunContext
from hydra.system import KilledServer, RunServers, Waiting
from hydra.system.worker_thread import WorkerThread

_BACK_WITHIN_S: Final = 60.0


class ServerRestarts:
    """Kills the server of a step when it is due, and starts it again.

    Arguments:
        run: the run of the step.
        planned: when, in the order of time.

    Attributes:
        down_ns: when a server was killed, ns on the step's clock.
    """

    def __init__(self, run: RunContext, planned: tuple[ServerRestart, ...]) -> None:
        self.down_ns: list[int] = []
        self._run = run
        self._planned = deque(planned)
        self._killed: KilledServer
        self._return_s: float | None = None
        self._returning = False

    def look(self, elapsed_s: float, now_ns: Callable[[], int]) -> None:
        """Does what is due; returns at once.

        Args:
            elapsed_s: seconds since the window began.
            now_ns: reads the step's clock.
        """
        if self._returning:
            self._returning = not self._killed.is_back()
        elif self._return_s is not None and elapsed_s >= self._return_s:
            self._start()
        elif self._return_s is not None:
            # Not yet: but it repeats what was lost, and notices another failure.
            self._killed.is_back()
        elif self._planned and elapsed_s >= self._planned[0].at_s:
            due = self._planned.popleft()
            # Read before the kill: a client that notices it at once must not seem to have been disconnected before.
            self.down_ns.append(now_ns())
            self._killed = self._run.system.servers.kill()
            self._return_s = elapsed_s + due.for_s
            self._run.journal.note(ServerRestarted(self._killed.address, elapsed_s, due.for_s))

    def end(self) -> None:
        """Waits until a server that was killed is back, so the step can end.

        Raises:
            StepError: it did not come back, or the window ended before it was killed.
        """
        if self._planned:
            raise StepError("the server was not killed: the window ended before that was due")
        if self._return_s is not None:
            self._start()
        if self._returning and not self._run.controller.wait_until(self._killed.is_back, _BACK_WITHIN_S):
            raise StepError(f"the server did not answer within {_BACK_WITHIN_S:g} s after it was started again")
        self._returning = False

    def _start(self) -> None:
        self._killed.start()
        self._return_s, self._returning = None, True


_WITHIN_S: Final = 5.0
"""The longest wait for the sample at the end of the window."""


class ServerCounters:
    """The samples at the begin and at the end of one window.

    Arguments:
        run: the run of the servers.
    """

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._thread = WorkerThread(run.controller.wait_until)
        self._samples: list[Future[ServerSample]] = []

    def sample(self) -> None:
        """Starts to read the servers' counters; does not wait."""
        self._samples.append(self._thread.submit(self._ask))

    def _ask(self) -> ServerSample:
        before_ns = self._run.clock_ns()
        try:
            figures = self._run.system.servers.counters()
        except HydraError:
            figures = {}  # servers that cannot be reached have no figures
        return ServerSample((before_ns + self._run.clock_ns()) // 2, figures)

    def figures(self) -> ServerFigures:
        """The figures between the two samples; empty if one is missing."""
        if len(self._samples) < 2:
            return {}
        first, last = self._samples
        # Servers that had not answered by the end of the window will not do so now.
        if not first.done() or not first.result().figures or not self._run.controller.wait_until(last.done, _WITHIN_S):
            return {}
        return between(first.result(), last.result())

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()


_SETTLE_S: Final = 0.2
_LOOKS_WHERE_MISSING: Final = 10
"""If messages are missing, the log must be unchanged this many times: a broker on a busy host may pause for 0.2 s."""
_SETTLE_AT_MOST_S: Final = 5.0


def settled(servers: RunServers, settings: Settings, wait: Waiting, expected: int | None = None) -> int | None:
    """The messages in the log when it has stopped growing; None: there is no log.

    The wait is needed because a flush without acknowledgements does not wait for the log, and followers learn the end
    of a leader's log a moment later.

    Args:
        servers: the servers with the log.
        settings: the settings of the step.
        wait: waits for a condition with a time limit.
        expected: the number of messages at which the log is complete; None: not known.

    Raises:
        StepError, ServerError: as for :meth:`hydra.system.RunServers.log_end`.
    """
    end = servers.log_end(settings)
    looks = 1 if expected is None else _LOOKS_WHERE_MISSING
    alike, deadline = 0, time.monotonic() + _SETTLE_AT_MOST_S
    while end is not None and end != expected and alike < looks and time.monotonic() < deadline:
        wait(lambda: False, _SETTLE_S)
        before, end = end, servers.log_end(settings)
        alike = alike + 1 if before == end else 0
    return end
