"""A connection to the servers of NATS with the library nats-py, and the counts of its errors."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import nats
import nats.errors
import nats.js
from msgspec import UNSET
from nats.aio.client import Client

from hydra.client.subscriber_connection import ConnectPhases
from hydra.client.tls import AccessError, ClientTls, access_error, certificate_error
from hydra.control.control_client import ControlClient
from hydra.model.system_reports import MOST_DISCONNECTIONS, Disconnection
from hydra.natstest.checked_client import CheckedClient
from hydra.natstest.library_loop import TURNS, LibraryLoop
from hydra.natstest.server_demands import LONGEST_LINE, error_in, host_and_port, info_of, login_error, tls_for
from hydra.natstest.settings import NatsAccess, NatsLogin, NatsTrouble

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 5.0
CLOSE_TIMEOUT_S: Final = 1.0
REJECTED_CLOSE_TIMEOUT_S: Final = 0.05
"""How long a connection may take to close that no server has accepted."""
SERVED_EVERY_S: Final = 1.0
"""Seconds after which the loop must have run: a server that pings without an answer ends the connection."""
OUTBOUND_BYTES: Final = 256 * 1024 * 1024
"""The library's limit for bytes that wait to be written.

No client reaches this limit: a client stops at a lower limit, because at this one the library would wait forever.
"""

_SECOND_LINE_WITHIN_S: Final = 0.5


_VIOLATION: Final = "permissions violation"
"""The beginning of the server's error for a subject that the client may not use: it has no code."""
_NOT_PERMITTED: Final = "permissions violation for publish"
"""The beginning of the server's error for a message that the client may not publish: it has no code."""


class NatsConnection(LibraryLoop):
    """A connection to the servers, with counts of its errors.

    Arguments:
        name: the connection's name in the server's list.
        control: the control channel, whose messages end :meth:`wait`; None if there is none.

    Attributes:
        tls: the TLS of the connection; None: it has none. A server can demand TLS that the access does not name.
        phases: what is known of how the connection was made.
    """

    def __init__(self, name: str, control: ControlClient | None = None) -> None:
        super().__init__(control)
        self._name = name
        self._client: CheckedClient | None = None
        self._access = NatsAccess(servers=[])
        self.tls: ClientTls | None = None
        self._opening = self._verified = False
        self._error: Exception | None = None
        self._slow = False
        self._slow_consumers = self._dropped = self._disconnects = self._silent = 0
        self._lost_why = ""
        # A ping without an answer yet, and the number of messages that were published before it.
        self._flush: tuple[int, asyncio.Future[bool]] | None = None
        self.not_permitted = ""
        """The server's text for a message that this client may not publish, "" if there was none in the step."""
        self.forbidden: list[str] = []
        """The server's texts for subjects that this client may not use, since the connection was made."""
        self._limit_s = 0.0  # the time limit of a single attempt; 0: the library may try again
        self.phases = ConnectPhases()
        # Of each disconnection: when it began and ended (0: not yet), CLOCK_MONOTONIC, and the attempts that failed.
        self._losses: list[list[int]] = []

    # --- the connection --------------------------------------------------------------------------------------------

    def open(self, access: NatsAccess, timeout_s: float = CONNECT_TIMEOUT_S) -> bool:
        """Connects unless it is connected to these servers already; returns whether the connection is new.

        Raises:
            AccessError: no server answers, or one rejects this client.
        """
        timeout_s = self._limit_s or timeout_s
        for _ in range(TURNS if self._client is not None else 0):
            # The loop may not have run for a long time: these turns detect a connection that was lost meanwhile.
            self.turn()
        if self.connected and self._access == access:
            return False
        self.close()
        self._access, self._error, self._opening = access, None, True
        try:
            if self._limit_s:
                self.tls, self._verified = access.tls, False
            else:
                info = self.do(self._greeting(), timeout_s)
                self.tls, self._verified = tls_for(info, access.tls), bool(info.get("tls_verify"))
            client = self._client = CheckedClient()
            client.requires_tls = self.tls is not None
            began_ns = time.monotonic_ns()
            self.do(self._connect(client), timeout_s)
            if not client.is_connected:
                raise self._refusal(nats.errors.UnexpectedEOF()) or OSError("the server closed the connection")
            self._note_phases(client, began_ns)
        except OSError as e:
            self.close()
            # If the time was over, the library's last error is the reason.
            last = e if isinstance(e, AccessError) else self._error or e
            error = last if isinstance(last, OSError) else OSError(str(last))
            if isinstance(error, ConnectionError) and not self._limit_s and (error_text := self._first_error()):
                error = OSError(error_text)
            raise access_error(error, self._hosts, self.tls).at(f"NATS at {','.join(access.servers)}") from None
        finally:
            self._opening = False
        return True

    @contextlib.contextmanager
    def single_attempt(self, limit_s: float) -> Iterator[None]:
        """Within it, :meth:`open` makes one connection, without the one for the server's greeting, and tries once.

        Args:
            limit_s: the time limit of the attempt in seconds.
        """
        self._limit_s = limit_s
        try:
            yield
        finally:
            self._limit_s = 0.0

    def _note_phases(self, client: CheckedClient, began_ns: int) -> None:
        now_ns = time.monotonic_ns()
        login_from_ns = client.secured_ns if self.tls else client.tcp_ns
        self.phases = ConnectPhases(
            connected_ns=now_ns,
            subscribed=True,
            tcp_us=(client.tcp_ns - began_ns) // 1000,
            tls_us=(client.secured_ns - client.tcp_ns) // 1000 if self.tls else None,
            login_us=(now_ns - login_from_ns) // 1000,
        )

    async def _connect(self, client: Client) -> None:
        login = self._access.login or NatsLogin()
        further: dict[str, Any] = {"tls": self.tls.context()} if self.tls else {}
        if login.seed:
            from hydra.natstest.nkey import UserKey  # of logins only this needs cryptography

            further["signature_cb"] = UserKey(login.seed).sign
            if login.jwt:
                further["user_jwt_cb"] = lambda: bytearray(login.jwt.encode())
            else:
                client._public_nkey = login.nkey  # the library sets it only if it signs by itself
        elif login.token:
            further["token"] = login.token
        elif login.username:
            further |= {"user": login.username, "password": login.password}
        await client.connect(
            [f"nats://{server}" for server in self._access.servers],
            **further,
            name=self._name,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnect,
            reconnected_cb=self._on_reconnect,
            max_reconnect_attempts=-1,
            connect_timeout=round(CONNECT_TIMEOUT_S),
            pending_size=OUTBOUND_BYTES,
        )

    async def _greeting(self) -> dict[str, Any]:
        """The INFO of the first server that listens, because the library would try to connect forever.

        Raises:
            OSError: no server listens.
        """
        for number, server in enumerate(self._access.servers, start=1):
            try:
                reader, writer = await asyncio.open_connection(*host_and_port(server), limit=LONGEST_LINE)
            except OSError:
                if number == len(self._access.servers):
                    raise
            else:
                with contextlib.closing(writer):
                    return info_of(await reader.readline())
        return {}

    def _first_error(self) -> str:
        """The error that a server sends to each new client before it ends the connection, "" if there is none.

        The library may write to this connection before it reads the error, and then it knows only that it has ended.
        """

        async def second_line() -> bytes:
            server = host_and_port(self._access.servers[-1])
            reader, writer = await asyncio.open_connection(*server, limit=LONGEST_LINE)
            with contextlib.closing(writer):
                await reader.readline()
                return await reader.readline()

        with contextlib.suppress(OSError, ValueError):
            return error_in(self.do(second_line(), _SECOND_LINE_WITHIN_S))
        return ""

    @property
    def _hosts(self) -> str:
        return ", ".join(server.rpartition(":")[0] for server in self._access.servers)

    def _refusal(self, error: Exception) -> AccessError | None:
        """Why no further attempt of this client will succeed; None if one may."""
        if isinstance(error, ssl.SSLError):
            return access_error(error, self._hosts, self.tls)
        if isinstance(error, nats.errors.Error) and "auth" in str(error).lower():
            return login_error(self._access.login)
        ended = isinstance(error, ConnectionError | nats.errors.UnexpectedEOF)
        return certificate_error(self.tls) if self.tls and self._verified and ended else None

    @property
    def client(self) -> Client:
        """The library's client.

        Raises:
            OSError: there is no connection yet.
        """
        return self._checked()

    def _checked(self) -> CheckedClient:
        if self._client is None:
            raise OSError("the NATS client is not configured")
        return self._client

    @property
    def info(self) -> Mapping[str, Any]:
        """The INFO of the server that accepted this client; {} before.

        The library's own version of a server is an object without a text.
        """
        return self._client._server_info if self._client is not None else {}

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._client is not None and self._client.is_connected

    @property
    def unwritten(self) -> bool:
        """Whether the connection has bytes that the socket has not accepted."""
        client = self._client
        if client is None or not client.is_connected:
            return False
        # The library hands its bytes to asyncio, and has no method for what waits there.
        written_by = getattr(client._transport, "_io_writer", None)
        return client.pending_data_size > 0 or (
            written_by is not None and written_by.transport.get_write_buffer_size() > 0
        )

    def close(self) -> None:
        """Closes the connection; may be called twice."""
        client, self._client = self._client, None
        self._flush = None
        if client is not None:
            # A disconnect by this close does not count for the step.
            disconnects, silent, why = self._disconnects, self._silent, self._lost_why
            # After a failed handshake the library waits for the end of a transport that has ended.
            within_s = CLOSE_TIMEOUT_S if client.is_connected or client.is_reconnecting else REJECTED_CLOSE_TIMEOUT_S
            losses = len(self._losses)
            with contextlib.suppress(OSError):
                self.do(client.close(), within_s)
            self._disconnects, self._silent, self._lost_why = disconnects, silent, why
            del self._losses[losses:]

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

    # --- answers of the server -------------------------------------------------------------------------------------

    def confirm(self, timeout_s: float) -> None:
        """Returns when the server has answered a ping behind everything that was written.

        Raises:
            OSError: it did not, in this time.
        """
        if not self._await(self.do(self._checked().ping(), timeout_s), timeout_s):
            raise OSError(f"no answer within {timeout_s:g} s")

    def flush(self, timeout_s: float) -> bool:
        """Whether within this time the server has answered a ping behind everything that was published.

        A ping without an answer is that of the next call, too: if each call sent another one, a server whose answer
        takes longer than a call would never answer in time.
        """
        deadline = time.monotonic() + timeout_s
        if not self.run_while(lambda: not self.connected, timeout_s):
            return False
        client = self._checked()
        while True:
            published = client.stats["out_msgs"]
            self._flush = self._flush or (published, self.do(client.ping(), ANSWER_TIMEOUT_S))
            before, answer = self._flush
            if not self._await(answer, max(deadline - time.monotonic(), 0)):
                return False
            self._flush = None
            if before == published:
                return True

    def keep_alive(self) -> None:
        """Runs some turns of the loop if it has not run for a while: the library answers pings, and sends its own."""
        if self.connected and not self._loop.is_closed() and time.monotonic() - self._ran_s >= SERVED_EVERY_S / 2:
            for _ in range(TURNS):
                self.turn()

    # --- troubles --------------------------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Resets the counts for the next step."""
        self._slow = False
        self._slow_consumers = self._dropped = self._disconnects = self._silent = 0
        self._losses.clear()
        self._lost_why = self.not_permitted = ""

    def caught_up(self) -> None:
        """Notes that a message was delivered: the next dropped one counts as a new slow-consumer event."""
        self._slow = False

    @property
    def disconnects(self) -> int:
        """How often the connection was lost since :meth:`begin_step`."""
        return self._disconnects

    def losses(self) -> tuple[int, str]:
        """The same, and why the connection was lost the first time."""
        return self._disconnects, self._lost_why

    def trouble(self) -> NatsTrouble:
        """The counts since :meth:`begin_step`."""
        return NatsTrouble(
            slow_consumers=self._slow_consumers,
            dropped=self._dropped,
            disconnects=self._disconnects,
            lost_by_silence=self._silent or UNSET,
        )

    async def _on_error(self, error: Exception) -> None:
        if isinstance(error, nats.errors.SlowConsumerError):
            self._dropped += 1
            self._slow_consumers += not self._slow
            self._slow = True
        else:
            self._error = error
            if _VIOLATION in str(error).lower():
                self.forbidden.append(str(error))
            if _NOT_PERMITTED in str(error).lower():
                self.not_permitted = self.not_permitted or str(error)
            if self._losses and not self._losses[-1][1]:
                self._losses[-1][2] += 1  # the library reports each attempt that failed
            if self._opening and (refusal := self._refusal(error)):
                raise refusal  # the library would try again until the time is over
            if self._opening and self._limit_s:
                raise OSError(str(error))

    def disconnections(self) -> list[Disconnection]:
        """The disconnections since :meth:`begin_step`, in readings of CLOCK_MONOTONIC."""
        return [(lost_ns, back_ns, failed + (back_ns > 0)) for lost_ns, back_ns, failed in self._losses]

    async def _on_disconnect(self) -> None:
        self._disconnects += 1
        if self._flush is not None:
            self._flush[1].cancel()  # no server answers it any more
            self._flush = None
        if (client := self._client) is not None:
            self._silent += client.was_silent
            why = client.lost_why or str(client.last_error or "")
            self._lost_why = self._lost_why or why or "no reason was given"
            client.lost_why, client.was_silent = "", False
        if len(self._losses) == MOST_DISCONNECTIONS:
            self._losses[-1][1] = 0
        else:
            self._losses.append([time.monotonic_ns(), 0, 0])
        self._stirred.set()

    async def _on_reconnect(self) -> None:
        if self._losses:
            self._losses[-1][1] = time.monotonic_ns()
