"""Runs nats-py, which needs an event loop, in a client with one thread that also serves a control channel.

The loop runs only inside the methods of this module, while a client waits for data or hands over messages. The
library's own work (reading, flushing, pings) happens then, so nothing needs a lock, and a command of the
controller ends a wait for data, as with every other system.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import nats.errors
import nats.js

from hydra.control.control_client import ControlClient

LOOK_EVERY_S: Final = 0.001
TURNS: Final = 5
"""Turns of the loop that the library needs to write messages if the socket accepts them at once."""
_SILENT: Final = logging.NullHandler()

_T = TypeVar("_T")


class JetStreamError(OSError):
    """The servers rejected a request about streams, or none answers such requests.

    Arguments:
        code: the server's code of the error, 0 if no server answered.
        description: the server's text.
    """

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} (error {code})" if code else description)
        self.code, self.description = code, description


NO_RESPONDERS: Final = "no server answers requests for JetStream, which is off (nats-server -js turns it on)"


class LibraryLoop:
    """The event loop of the library's tasks.

    Arguments:
        control: the control channel, whose messages end :meth:`wait`; None if there is none.
    """

    def __init__(self, control: ControlClient | None) -> None:
        self._control = control
        self._loop = asyncio.new_event_loop()
        # The library calls back with errors of its own tasks; they are not printed. With TLS, asyncio warns of what
        # the library's protocol returns.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        logging.getLogger("asyncio").addHandler(_SILENT)
        self._stirred = asyncio.Event()
        if control is not None:
            self._loop.add_reader(control.socket.FD, self._look_at_control)
        self._ran_s = time.monotonic()  # when the loop last ran

    def do(self, work: Coroutine[Any, Any, _T], timeout_s: float) -> _T:
        """Runs a coroutine and returns its result.

        Raises:
            OSError: the coroutine failed, or took too long.
        """
        self._ran_s = time.monotonic()
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, timeout_s))
        except (TimeoutError, nats.errors.TimeoutError):
            raise OSError(f"no answer within {timeout_s:g} s") from None
        except nats.js.errors.APIError as e:
            raise JetStreamError(e.err_code or 0, e.description or NO_RESPONDERS) from None
        except (nats.errors.Error, nats.js.errors.Error) as e:
            raise OSError(str(e) or type(e).__name__) from None

    def _await(self, answer: asyncio.Future[bool], timeout_s: float) -> bool:
        self._loop.run_until_complete(asyncio.wait([answer], timeout=timeout_s))
        self._ran_s = time.monotonic()
        return answer.done() and not answer.cancelled()

    def task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a task that continues whenever the loop runs."""
        return self._loop.create_task(work)

    def turn(self) -> None:
        """Runs one turn of the loop, in which the library does what it can do at once."""
        self._ran_s = time.monotonic()
        self._loop.call_soon(self._loop.stop)
        self._loop.run_forever()

    def wait(self, timeout_s: float) -> None:
        """Runs the loop until :meth:`stir` is called, a message of the controller arrives, or ``timeout_s`` is over."""
        self._stirred.clear()
        if self._control is not None and self._control.socket.poll(0):
            self.turn()
            return
        timer = self._loop.call_later(timeout_s, self._stirred.set)
        self._loop.run_until_complete(self._stirred.wait())
        timer.cancel()
        self._ran_s = time.monotonic()

    def stir(self) -> None:
        """Ends :meth:`wait`."""
        self._stirred.set()

    def soon(self, do: Callable[[], object]) -> None:
        """Does this in the next turn of the loop."""
        self._loop.call_soon(do)

    def run_while(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Runs the loop until the condition is false, for at most ``timeout_s``; returns whether it is false."""
        deadline = time.monotonic() + timeout_s
        for _ in range(TURNS):
            if not condition():
                return True
            self.turn()
        while condition():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            self._loop.call_later(min(left_s, LOOK_EVERY_S), self._loop.stop)
            self._loop.run_forever()
        return True

    def _look_at_control(self) -> None:
        # The poll also makes the descriptor unreadable until the next message.
        if self._control is not None and self._control.socket.poll(0):
            self._stirred.set()
