"""A server between clients and a real one, which sees the pings of its clients."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import Counter

from hydra.mqtttest.address import split

PING = b"\xc0\x00"
_LARGEST = 1 << 16


class Relay:
    """Carries bytes both ways between whoever connects and the server at ``address``, until it is closed."""

    def __init__(self, address: str) -> None:
        self._server = split(address)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.pings: Counter[int] = Counter()
        """By the number of the connection, in the order in which they came."""
        self._connections = 0
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _carry(self) -> None:
        with contextlib.ExitStack() as open_ones, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._stopped:
                        return
                    if key.fileobj is self._listener:
                        client = open_ones.enter_context(self._listener.accept()[0])
                        server = open_ones.enter_context(socket.create_connection(self._server))
                        selector.register(client, selectors.EVENT_READ, (client, server, self._connections))
                        selector.register(server, selectors.EVENT_READ, (server, client, None))
                        self._connections += 1
                        continue
                    source, target, number = key.data
                    data = source.recv(_LARGEST)
                    if number is not None:
                        self.pings[number] += data == PING  # a ping comes alone, as nothing else is said
                    if data:
                        target.sendall(data)
                    else:
                        selector.unregister(source)
                        target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Ends all connections."""
        self._stop.close()
        self._thread.join()
        self._listener.close()
        self._stopped.close()
