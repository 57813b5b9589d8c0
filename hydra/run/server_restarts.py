"""The planned ends of the servers in a step, and their returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from hydra.errors import StepError
from hydra.events.run_events import ServerRestarted
from hydra.model import ServerRestart
from hydra.run.context import RunContext

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
        self._return_s: float | None = None
        self._returning = False

    def look(self, elapsed_s: float, now_ns: Callable[[], int]) -> None:
        """Does what is due; returns at once.

        Args:
            elapsed_s: seconds since the window began.
            now_ns: reads the step's clock.
        """
        if self._returning:
            self._returning = not self._run.system.server_is_back()
        elif self._return_s is not None and elapsed_s >= self._return_s:
            self._start()
        elif self._return_s is not None:
            # Not yet: but it repeats what was lost, and notices another failure.
            self._run.system.server_is_back()
        elif self._return_s is None and self._planned and elapsed_s >= self._planned[0].at_s:
            due = self._planned.popleft()
            # Read before the kill: a client that notices it at once must not seem to have been disconnected before.
            self.down_ns.append(now_ns())
            address = self._run.system.kill_server()
            self._return_s = elapsed_s + due.for_s
            self._run.journal.note(ServerRestarted(address, elapsed_s, due.for_s))

    def end(self) -> None:
        """Waits until a server that was killed is back, so the step can end.

        Raises:
            StepError: it did not come back, or the window ended before it was killed.
        """
        if self._planned:
            raise StepError("the server was not killed: the window ended before that was due")
        if self._return_s is not None:
            self._start()
        if self._returning and not self._run.controller.wait_until(self._run.system.server_is_back, _BACK_WITHIN_S):
            raise StepError(f"the server did not answer within {_BACK_WITHIN_S:g} s after it was started again")
        self._returning = False

    def _start(self) -> None:
        self._run.system.start_server()
        self._return_s, self._returning = None, True
