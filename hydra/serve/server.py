"""The HTTP server on a loopback address: it reads requests and writes answers."""

from __future__ import annotations

import errno
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from hydra.errors import UsageError
from hydra.serve.request_handler import METHODS, HttpResponse, Site, refused

_IDLE_S: Final = 30.0
_REMEDIES: Final = {
    errno.EADDRINUSE: "choose another --port, or none for a free one",
    errno.EACCES: "choose a --port from 1024 on, or none for a free one",
    errno.EADDRNOTAVAIL: "use 127.0.0.1",
}


class Server(ThreadingHTTPServer):
    """An HTTP server with a thread for each connection; all threads end with the process.

    Attributes:
    site: makes the answers.
    """

    def __init__(self, address: str, port: int, site: Site) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.site = site
        super().__init__((address, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a browser that disconnected, and prints any other error, which is a fault of Hydra."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def bind(host: str, address: str, port: int, site: Site) -> Server:
    """Makes a server that listens.

    Args:
        host: the host as the user named it.
        address: the address of the host.
        port: the port; 0 for any free one.
        site: makes the answers.

    Raises:
        UsageError: the server cannot listen at this address.
    """
    try:
        return Server(address, port, site)
    except OSError as e:
        remedy = _REMEDIES.get(e.errno or 0, "choose another --port or --host")
        raise UsageError(f"cannot listen on port {port} of {host}: {e.strerror or e}", remedy) from e


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    server: Server

    def parse_request(self) -> bool:
        """Whether there is a request to answer; rejects every method except GET and HEAD."""
        if not super().parse_request():
            return False
        if self.command in METHODS:
            return True
        # The body of the request is not read, so the connection cannot be used again.
        self.close_connection = True
        allowed = {"Allow": ", ".join(METHODS), "Connection": "close"}
        self._write(refused(HTTPStatus.METHOD_NOT_ALLOWED, "Nothing can be changed here.", allowed))
        return False

    def do_GET(self) -> None:
        """Answers a GET request."""
        self._write(self.server.site.answer(self.path, self.headers.get_all("Host", [])))

    do_HEAD = do_GET  # noqa: N815  # the name that the library calls

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers a request that cannot be read."""
        self.close_connection = True
        self._write(refused(HTTPStatus(code), message or explain or "It cannot be read.", {"Connection": "close"}))

    def version_string(self) -> str:
        """A server name without a version."""
        return "hydra"

    def log_message(self, *_: object) -> None:
        """Prints nothing: the terminal shows no requests."""

    def _write(self, answer: HttpResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers().items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
