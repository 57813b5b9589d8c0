"""Serves the agents' archive over HTTP."""

from __future__ import annotations

import http.server
import os
import secrets
import threading
from typing import Final

from hydra.engine.artifacts.archive import Artifact
from hydra.errors import ClusterError

_PIECE: Final = 1 << 18
"""The number of bytes read and sent at a time."""


class ArtifactServer:
    """Serves one archive at a secret path, in a thread of its own; answers 404 for every other path.

    Attributes:
        url: the archive's URL.
    """

    def __init__(self, artifact: Artifact, host: str) -> None:
        target = f"/{secrets.token_urlsafe(24)}/{artifact.name}"
        try:
            self._server = _Server((host, 0), _Handler, artifact, target)
        except OSError as e:
            raise ClusterError(
                f"the archive for agents cannot be served at {host}: {e.strerror}",
                "name an address of this machine that agents reach",
            ) from e
        self.url = f"http://{host}:{self._server.server_address[1]}{target}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="artifact", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.archive.close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[http.server.BaseHTTPRequestHandler],
        artifact: Artifact,
        target: str,
    ) -> None:
        self.artifact, self.target = artifact, target
        super().__init__(address, handler)
        # The file stays open, as a later run may delete it from the cache folder.
        self.archive = artifact.path.open("rb")
        self.size = os.fstat(self.archive.fileno()).st_size

    def handle_error(self, *_: object) -> None:
        """Does nothing: the agent of a fetcher that hangs up reports the error."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "hydra", ""

    def do_GET(self) -> None:
        """Sends the archive, or for HEAD only its length, by which a fetcher makes room in its cache."""
        if not secrets.compare_digest(self.path.encode(), self.server.target.encode()):
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", "application/x-tar")
        self.send_header("Content-Length", str(self.server.size))
        self.send_header("ETag", f'"{self.server.artifact.sha256}"')
        self.end_headers()
        if self.command != "HEAD":
            for offset in range(0, self.server.size, _PIECE):
                # pread() with an own offset, as several agents read at the same time.
                self.wfile.write(os.pread(self.server.archive.fileno(), _PIECE, offset))

    do_HEAD = do_GET  # noqa: N815  # the name that the library calls

    def log_message(self, *_: object) -> None:
        """Does nothing: the path is a secret, and the terminal shows the progress line."""
