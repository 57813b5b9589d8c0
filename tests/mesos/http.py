"""Just enough HTTP/1.1 for a master and its agents: keep-alive, fixed bodies, and chunked streams of records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, urlsplit

REASONS = {
    200: "OK",
    202: "Accepted",
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    415: "Unsupported Media Type",
    503: "Service Unavailable",
}
TEXT = "text/plain; charset=utf-8"


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
        return Response(status, body.encode(), {**headers, "Content-Type": TEXT})

    @staticmethod
    def json(body: Any) -> Response:
        return Response(200, json.dumps(body, separators=(",", ":")).encode(), {"Content-Type": "application/json"})


class Stream:
    """A response that goes on: each record is a chunk of its own, its length before it (RecordIO)."""

    def __init__(self, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> None:
        self._writer = writer
        head = {"Date": formatdate(usegmt=True), "Transfer-Encoding": "chunked", **headers}
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in head.items())]
        writer.write("\r\n".join((*lines, "", "")).encode())
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

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        connections = dict(self._connections)
        for writer in connections.values():
            writer.transport.abort()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            while (request := await _read(reader)) is not None:
                answer = await self._handler(request, writer)
                if isinstance(answer, Stream):
                    # The reader ends when the peer hangs up; nothing more is expected from it.
                    await reader.read()
                    answer.close()
                    return
                head = {"Date": formatdate(usegmt=True), **answer.headers, "Content-Length": str(len(answer.body))}
                lines = [f"HTTP/1.1 {answer.status} {REASONS[answer.status]}", *(f"{k}: {v}" for k, v in head.items())]
                writer.write("\r\n".join((*lines, "", "")).encode() + answer.body)
                await writer.drain()
                if request.headers.get("connection", "").lower() == "close":
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            del self._connections[task]
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    method, target, _ = line.decode().split(" ", 2)
    headers = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
