"""Runs nats-py, which needs an event loop, in a client with one thread that also serves a control channel.

The loop runs only inside the methods of this module, while a client waits for data or hands over messages. The
library's own work (reading, flushing, pings) happens then, so nothing needs a lock, and a command of the
controller ends a wait for data, as with every other system.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import nats
import nats.errors
import nats.js
from nats.aio.client import Client

from hydra.control.control_client import ControlClient
from hydra.natstest.settings import NatsTrouble

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 5.0
CLOSE_TIMEOUT_S: Final = 1.0
LOOK_EVERY_S: Final = 0.001
TURNS: Final = 5
"""Turns of the loop that the library needs to write messages if the socket accepts them at once."""
OUTBOUND_BYTES: Final = 256 * 1024 * 1024
"""The library's limit for bytes that wait to be written.

No client reaches this limit: a client stops at a lower limit, because at this one the library would wait forever.
"""

_T = TypeVar("_T")


class NatsConnection:
    """A connection to the servers, with counts of its errors.

    Arguments:
        name: the connection's name in the server's list.
        control: the control channel, whose messages end :meth:`wait`; None if there is none.
    """

    def __init__(self, name: str, control: ControlClient | None = None) -> None:
        self._name = name
        self._control = control
        self._loop = asyncio.new_event_loop()
        # Errors of the library's own tasks reach :meth:`_on_error`; they are not printed.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._stirred = asyncio.Event()
        if control is not None:
            self._loop.add_reader(control.socket.FD, self._look_at_control)
        self._client: Client | None = None
        self._servers: list[str] = []
        self._error: Exception | None = None
        self._slow = False
        self._slow_consumers = self._dropped = self._disconnects = 0

    # --- the connection --------------------------------------------------------------------------------------------

    def open(self, servers: Sequence[str]) -> bool:
        """Connects unless it is connected to these servers already; returns whether the connection is new.

        Raises:
            OSError: no server accepts the connection.
        """
        for _ in range(TURNS if self._client is not None else 0):
            # The loop may not have run for a long time: these turns detect a connection that was lost meanwhile.
            self.turn()
        if self.connected and self._servers == list(servers):
            return False
        self.close()
        self._servers = list(servers)
        self._error = None
        try:
            self.do(self._somebody_listens(), CONNECT_TIMEOUT_S)
            client = self._client = Client()
            self.do(self._connect(client), CONNECT_TIMEOUT_S)
        except OSError as e:
            self.close()
            raise OSError(f"NATS at {','.join(servers)} does not answer: {self._error or _reason(e)}") from None
        return True

    async def _connect(self, client: Client) -> None:
        await client.connect(
            [f"nats://{server}" for server in self._servers],
            name=self._name,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnect,
            max_reconnect_attempts=-1,
            connect_timeout=round(CONNECT_TIMEOUT_S),
            pending_size=OUTBOUND_BYTES,
        )

    async def _somebody_listens(self) -> None:
        """Checks first that a server listens, because the library would try to connect forever.

        Raises:
            OSError: no server listens.
        """
        for number, server in enumerate(self._servers, start=1):
            host, _, port = server.rpartition(":")
            try:
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            except OSError:
                if number == len(self._servers):
                    raise
            else:
                writer.close()
                return

    @property
    def client(self) -> Client:
        """The library's client.

        Raises:
            OSError: there is no connection yet.
        """
        if self._client is None:
            raise OSError("the NATS client is not configured")
        return self._client

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._client is not None and self._client.is_connected

    def close(self) -> None:
        """Closes the connection; may be called twice."""
        client, self._client = self._client, None
        if client is not None:
            # A disconnect by this close does not count for the step.
            disconnects = self._disconnects
            with contextlib.suppress(OSError):
                self.do(client.close(), CLOSE_TIMEOUT_S)
            self._disconnects = disconnects

    def end(self) -> None:
        """Closes the connection and the loop; afterwards only this method may be called."""
        if self._loop.is_closed():
            return
        self.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        left = set(tasks)
        if tasks:
            _, left = self._loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_S))
        if not left:
            self._loop.close()

    # --- running the loop ------------------------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, _T], timeout_s: float) -> _T:
        """Runs a coroutine and returns its result.

        Raises:
            OSError: the coroutine failed, or took too long.
        """
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, timeout_s))
        except (TimeoutError, nats.errors.TimeoutError):
            raise OSError(f"no answer within {timeout_s:g} s") from None
        except nats.js.errors.APIError as e:
            raise OSError(f"{e.description} (error {e.err_code})") from None
        except (nats.errors.Error, nats.js.errors.Error) as e:
            raise OSError(str(e) or type(e).__name__) from None

    def task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a task that continues whenever the loop runs."""
        return self._loop.create_task(work)

    def turn(self) -> None:
        """Runs one turn of the loop, in which the library does what it can do at once."""
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

    def stir(self) -> None:
        """Ends :meth:`wait`."""
        self._stirred.set()

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

    # --- troubles --------------------------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Resets the counts for the next step."""
        self._slow = False
        self._slow_consumers = self._dropped = self._disconnects = 0

    def caught_up(self) -> None:
        """Notes that a message was delivered: the next dropped one counts as a new slow-consumer event."""
        self._slow = False

    def trouble(self) -> NatsTrouble:
        """The counts since :meth:`begin_step`."""
        return NatsTrouble(slow_consumers=self._slow_consumers, dropped=self._dropped, disconnects=self._disconnects)

    async def _on_error(self, error: Exception) -> None:
        if isinstance(error, nats.errors.SlowConsumerError):
            self._dropped += 1
            self._slow_consumers += not self._slow
            self._slow = True
        else:
            self._error = error

    async def _on_disconnect(self) -> None:
        self._disconnects += 1
        self._stirred.set()


def _reason(error: OSError) -> str:
    """Returns why a connection failed, without the address that asyncio repeats."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
