"""The servers' counters over a window, read on a thread of its own; the end of the growth of their log."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Final

from hydra.errors import HydraError
from hydra.measure.observation import ServerFigures, ServerSample, between
from hydra.model import Settings
from hydra.run.context import RunContext
from hydra.system import System, Waiting
from hydra.system.worker_thread import WorkerThread

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
            figures = self._run.system.server_counters()
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


def settled(system: System, settings: Settings, wait: Waiting, expected: int | None = None) -> int | None:
    """The messages in the log when it has stopped growing; None: there is no log.

    The wait is needed because a flush without acknowledgements does not wait for the log, and followers learn the end
    of a leader's log a moment later.

    Args:
        system: the system with the log.
        settings: the settings of the step.
        wait: waits for a condition with a time limit.
        expected: the number of messages at which the log is complete; None: not known.

    Raises:
        StepError, ServerError: as for :meth:`hydra.system.System.log_end`.
    """
    end = system.log_end(settings)
    looks = 1 if expected is None else _LOOKS_WHERE_MISSING
    alike, deadline = 0, time.monotonic() + _SETTLE_AT_MOST_S
    while end is not None and end != expected and alike < looks and time.monotonic() < deadline:
        wait(lambda: False, _SETTLE_S)
        before, end = end, system.log_end(settings)
        alike = alike + 1 if before == end else 0
    return end
