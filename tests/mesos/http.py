"""Just enough HTTP/1.1 for a master and its agents: keep-alive, fixed bodies, and chunked streams of records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_string
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def text(status: int, body: str, **headers: str) -> Response:
        return Response(status, body.encode(), {**headers, "Content-Type": "text/plain; charset=utf-8"})

    @staticmethod
    def json(body: Any) -> Response:
        return Response(200, json.dumps(body, separators=(",", ":")).encode(), {"Content-Type": "application/json"})


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    fields = (f"{name}: {value}" for name, value in {"Date": formatdate(usegmt=True), **headers}.items())
    return "\r\n".join((f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *fields, "", "")).encode()


class Stream:
    """A response that continues: each record is a chunk of its own, its length before it (RecordIO)."""

    def __init__(self, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> None:
        self._writer = writer
        writer.write(_head(200, {"Transfer-Encoding": "chunked", **headers}))
        self.closed = asyncio.Event()

    def send(self, event: Any) -> None:
        record = json.dumps(event, separators=(",", ":")).encode()
        data = b"%d\n%b" % (len(record), record)
        if not self.closed.is_set() and not self._writer.is_closing():
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def close(self) -> None:
        self.closed.set()
        self._writer.close()


Answer = Response | Stream
Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[Answer]]


class Server:
    """Serves one handler at 127.0.0.1."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        connections = dict(self._connections)
        for writer in connections.values():
            writer.transport.abort()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            while True:
                request = await _read(reader)
                answer = await self._handler(request, writer)
                if isinstance(answer, Stream):
                    # The reader ends when the peer hangs up; nothing more is expected from it.
                    await reader.read()
                    answer.close()
                    return
                head = {**answer.headers, "Content-Length": str(len(answer.body))}
                writer.write(_head(answer.status, head) + answer.body)
                await writer.drain()
                if request.headers.get("connection", "").lower() == "close":
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            del self._connections[task]
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    """The next request; IncompleteReadError if there is none."""
    line, _, fields = (await reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")
    method, target, _ = line.split(" ", 2)
    headers = {name.lower(): value for name, value in message_from_string(fields).items()}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
