"""The client of the library nats-py, with what Hydra checks and notes of its connection."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import nats.errors
from nats.aio.client import Client


class CheckedClient(Client):
    """A client of the library that sends no login and no data without TLS, also if the server leaves out TLS later.

    Attributes:
        requires_tls: whether a connection must have TLS.
        tcp_ns, secured_ns: when the last attempt had its TCP connection, and its TLS; CLOCK_MONOTONIC.
        lost_why: why the last connection was lost, "" if it is not known; the library clears its error before it calls
            back.
        was_silent: whether the server ended it because its pings had no answer.
    """

    requires_tls = False
    tcp_ns = secured_ns = 0
    lost_why = ""
    was_silent = False
    _server_error = False

    async def _process_err(self, err_msg: str) -> None:
        self._server_error = True
        await super()._process_err(err_msg)
        self._server_error = False

    async def _process_op_err(self, e: Exception) -> None:
        if not (self.is_closed or self.is_reconnecting):
            # An unexpected end is a subclass; the library has the same error for a server that does not answer.
            stale = isinstance(e, nats.errors.StaleConnectionError) and not isinstance(e, nats.errors.UnexpectedEOF)
            self.was_silent = stale and self._server_error
            self.lost_why = str(e) or type(e).__name__
            if stale:
                self.lost_why = _CLIENT_SILENT if self._server_error else _SERVER_SILENT
        await super()._process_op_err(e)

    async def ping(self) -> asyncio.Future[bool]:
        """Sends a ping behind everything that was published; the result is done when the server has answered it.

        The library's ``flush`` cancels this result after its time limit: then a later answer ends the task that reads.
        """
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        await self._send_ping(answered)
        return answered

    async def _process_connect_init(self) -> None:
        self.tcp_ns = time.monotonic_ns()
        await super()._process_connect_init()

    def _connect_command(self) -> bytes:
        if self.requires_tls and not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server does not use TLS any more")
        self.secured_ns = time.monotonic_ns()
        return super()._connect_command()


_CLIENT_SILENT: Final = "this client did not answer the server's pings"
_SERVER_SILENT: Final = "the server did not answer pings"
