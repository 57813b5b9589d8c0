"""What the servers count in a window, asked on a thread of its own."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Final

from hydra.errors import HydraError
from hydra.measure.servers import ServerFigures, ServerSample, between
from hydra.run.context import RunContext
from hydra.system.worker_thread import Background

_WITHIN_S: Final = 5.0
"""How long the sample of the window's end is waited for."""


class ServerCounters:
    """The samples at the begin and at the end of one window.

    Arguments:
        run: whose system's servers are asked.
    """

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._thread = Background(run.controller.wait_until)
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
