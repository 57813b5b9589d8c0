"""The one class of http-parser that pymesos uses."""

from __future__ import annotations

import httptools

PARSE_ERROR = 1
"""What ``get_errno`` returns once the bytes were no HTTP response."""


class HttpParser:
    """Reads one HTTP response, fed in pieces of any size.

    It has no attribute ``errno`` on purpose: pymesos takes that as the sign of another implementation, whose
    errors it then reads differently.
    """

    def __init__(self) -> None:
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._headers_complete = False
        self._message_complete = False
        self._errno = 0
        self._parser = httptools.HttpResponseParser(self)

    # --- what httptools calls ----------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps a header; one that comes again is joined with a comma."""
        key, text = name.decode("latin-1"), value.decode("latin-1")
        known = next((k for k in self._headers if k.lower() == key.lower()), None)
        self._headers[known or key] = f"{self._headers[known]}, {text}" if known else text

    def on_headers_complete(self) -> None:
        """All headers have been read."""
        self._headers_complete = True

    def on_body(self, body: bytes) -> None:
        """Keeps a piece of the body, without the framing of its chunks."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The response is over."""
        self._message_complete = True

    # --- what pymesos calls ------------------------------------------------------------------------------------------

    def execute(self, data: bytes, length: int) -> int:
        """Reads the first ``length`` bytes; returns how many were good: less than ``length`` after an error."""
        if self._errno or self._message_complete:
            return 0
        try:
            self._parser.feed_data(data[:length])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._message_complete:
                self._errno = PARSE_ERROR
                return 0
        return length

    def get_errno(self) -> int:
        """0, or ``PARSE_ERROR``."""
        return self._errno

    def is_headers_complete(self) -> bool:
        """Whether all headers have been read."""
        return self._headers_complete

    def is_message_complete(self) -> bool:
        """Whether the response is over."""
        return self._message_complete

    def is_partial_body(self) -> bool:
        """Whether ``recv_body`` has something."""
        return bool(self._body)

    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        found = (v for k, v in self._headers.items() if k.lower() == "transfer-encoding")
        return next(found, "").rpartition(",")[2].strip().lower() == "chunked"

    def get_status_code(self) -> int:
        """The status, 0 before it has been read."""
        return self._parser.get_status_code() if self._headers_complete else 0

    def get_headers(self) -> dict[str, str]:
        """The headers as they were spelt."""
        return dict(self._headers)

    def recv_body(self) -> bytes:
        """What has come of the body since the last call."""
        body = b"".join(self._body)
        self._body.clear()
        return body
