"""A server of no system: it greets each client with a given word."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_GREETER = """\
import pathlib, socketserver, sys
class Greet(socketserver.BaseRequestHandler):
    def handle(self): self.request.sendall(pathlib.Path("word").read_bytes())
if pathlib.Path("word").read_bytes() == b"die": sys.exit("no such word")
socketserver.ThreadingTCPServer.allow_reuse_address = True  # connections of a killed one may linger at the port
socketserver.ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Greet).serve_forever()
"""


class Toy:
    kind = "toy-server"
    title = "toy"
    ports = int(os.environ.get("TOY_PORTS", "1"))

    def find(self) -> Mapping[str, str]:
        return {"toy": "1.0"}

    def prepare(self) -> Mapping[str, str]:
        return self.find()

    def sources(self) -> Mapping[str, str]:
        return {}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        if not join or "word" not in join:
            raise ValueError("nobody told it a word")
        (folder / "word").write_text(join["word"])
        return [sys.executable, "-c", _GREETER, *endpoint.split(":")]


class ToyCluster:
    """Every server has one word."""

    def __init__(self, word: str = "") -> None:
        self._word = word
        self.warmed: list[str] = []

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        self._word = self._word or secrets.token_hex(4)
        return [{"word": self._word} for _ in endpoints]

    def address(self, endpoints: Sequence[str]) -> str:
        return ",".join(endpoints)

    def up(self, address: str) -> bool:
        return all(greeting(endpoint) == self._word for endpoint in address.split(","))

    def warm_up(self, address: str) -> None:
        self.warmed.append(address)


def greeting(endpoint: str) -> str:
    """The greeting of the server there; "" without one."""
    host, port = endpoint.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1.0) as connection:
        return connection.recv(100).decode()
    return ""


if __name__ == "__main__":
    from hydra.client.server_group import main

    sys.exit(main(Toy()))
