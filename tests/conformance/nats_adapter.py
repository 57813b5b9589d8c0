"""NATS' data ends: its text protocol on a socket (https://docs.nats.io/reference/reference-protocols/nats-protocol)."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from tests.conformance.data_ends import DataEnds
from tests.suite.waiting import SOON_S


class NatsEnds(DataEnds):
    """A connection that has subscribed to the subject of a step. A stream acknowledges what it has taken."""

    def __init__(self, step: Mapping[str, Any], topics: int = 1) -> None:
        super().__init__(step, topics)
        host, _, port = step["servers"][0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), SOON_S)
        self._lines = self._socket.makefile("rb")
        self._lines.readline()  # INFO
        self._heard: list[tuple[int, bytes]] = []
        self._answers = 0
        subject = f"{step['subject']}.*" if topics > 1 else step["subject"]
        self._send(b'CONNECT {"verbose":false,"pedantic":false}\r\n', f"SUB {subject} 1\r\nSUB answers 2\r\n".encode())
        self._flush()

    def _send(self, *lines: bytes) -> None:
        self._socket.sendall(b"".join(lines))

    def _flush(self) -> None:
        """Reads until the server has answered a ping; it has then obeyed, and sent, everything before."""
        self._send(b"PING\r\n")
        while (line := self._lines.readline()) != b"PONG\r\n":
            assert not line.startswith(b"-ERR"), line
            if line == b"PING\r\n":
                self._send(b"PONG\r\n")
            elif line:
                self._take(line)

    def _take(self, line: bytes) -> None:
        _, subject, number, *_, size = line.split()  # MSG subject sid [reply] bytes
        message = self._lines.read(int(size) + 2)[:-2]
        if number == b"2":
            assert b'"error"' not in message, message
            self._answers += 1
        else:
            self._heard.append((int(subject.rpartition(b".")[2]) if self.topics > 1 else 0, message))

    def write(
        self,
        messages: Sequence[bytes],
        publisher: int,
        topics: Sequence[int] | None = None,
        *,
        signals: bool = False,
    ) -> None:
        subject, reply, due = self.step["subject"], "answers " if self.step["stream"] else "", len(messages)
        for message, topic in zip(messages, topics or repeat(None), strict=False):
            where = subject if topic is None else f"{subject}.{topic}"
            self._send(f"PUB {where} {reply}{len(message)}\r\n".encode(), message, b"\r\n")
        self._answers = 0 if reply else due
        self._flush()
        while self._answers < due:
            self._take(self._lines.readline())

    def read(self) -> Sequence[tuple[int, bytes]]:
        self._flush()
        return self._heard

    def close(self) -> None:
        self._lines.close()
        self._socket.close()
