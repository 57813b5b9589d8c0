"""The controller's end of the keeper's connection, on which the keeper's Pod sends what it found."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

Hello = dict[str, Any]

_HELLO_S: Final = 5.0
_LONGEST: Final = 4096


class KeeperListener:
    """Listens for the keeper in threads of its own, until it is closed.

    Attributes:
        port: the TCP port on which it listens.
    """

    def __init__(self, address: str, came: Callable[[Hello], None]) -> None:
        """Opens the port.

        Args:
            address: the address of this machine.
            came: called from another thread with a keeper's first message; a message without the token is ignored.

        Raises:
            OSError: this process cannot listen at the address.
        """
        self.token = ""
        self._came = came
        self._closed = False
        self._inside: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((address, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._listen, name="door", daemon=True).start()

    def close(self) -> None:
        """Notifies the keeper that the run is over, and closes the port."""
        with self._lock:
            self._closed = True
            inside, self._inside = self._inside, set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # close() alone does not end accept()
        self._listener.close()
        for connection in inside:
            with contextlib.suppress(OSError):
                connection.sendall(b"bye")
                connection.shutdown(socket.SHUT_WR)

    def _listen(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._hear, args=(connection,), name="keeper", daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        with connection:
            hello = _hello(connection)
            if hello is None or not self.token or hello.get("token") != self.token:
                return
            with contextlib.suppress(OSError):
                connection.sendall(b"ok")  # shows the keeper that this is its controller
            with self._lock:
                if self._closed:
                    return
                self._inside.add(connection)
            self._came(hello)
            with contextlib.suppress(OSError):
                while connection.recv(64):  # until it hangs up
                    pass
            with self._lock:
                self._inside.discard(connection)


def _hello(connection: socket.socket) -> Hello | None:
    """The first line of a connection as a keeper's message; None if it is no such message."""
    connection.settimeout(_HELLO_S)
    line = b""
    try:
        while b"\n" not in line and len(line) < _LONGEST:
            piece = connection.recv(_LONGEST)
            if not piece:
                return None
            line += piece
        message = json.loads(line)
        connection.settimeout(None)
    except (OSError, ValueError):
        return None
    return message if isinstance(message, dict) else None
