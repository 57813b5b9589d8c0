"""What the servers count in a window, asked on a thread of its own; their log as a count of messages."""

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
"""How long the sample of the window's end is waited for."""


class ServerCounters:
    """The samples at the begin and at the end of one window.

    Arguments:
        run: whose system's servers are asked.
    """

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._thread = WorkerThread(run.controller.wait_until)
        self._samples: list[Future[ServerSample]] = []

    def sample(self) -> None:
        """Has the servers asked; waits for nothing."""
        self._samples.append(self._thread.submit(self._ask))

    def _ask(self) -> ServerSample:
        before_ns = self._run.clock_ns()
        try:
            figures = self._run.system.server_counters()
        except HydraError:
            figures = {}  # servers that cannot be asked tell nothing
        return ServerSample((before_ns + self._run.clock_ns()) // 2, figures)

    def figures(self) -> ServerFigures:
        """Between the first sample and the last; nothing where one is missing."""
        if len(self._samples) < 2:
            return {}
        first, last = self._samples
        # Whoever told nothing by the end of the window is not waited for.
        if not first.done() or not first.result().figures or not self._run.controller.wait_until(last.done, _WITHIN_S):
            return {}
        return between(first.result(), last.result())

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()


_SETTLE_S: Final = 0.2
_LOOKS_WHERE_MISSING: Final = 10
"""So often alike where messages are known to be missing: a broker on a busy machine rests for longer than 0.2 s."""
_SETTLE_AT_MOST_S: Final = 5.0


def settled(system: System, settings: Settings, wait: Waiting, expected: int | None = None) -> int | None:
    """The messages in the log once it has stopped growing, None where there is no log.

    Without acknowledgements a flush waits for no log, and followers know a moment later than a leader what it has.

    Args:
        system: whose log.
        settings: the step's.
        wait: how to wait.
        expected: with so many in it, nothing more comes; None: nobody knows.

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
