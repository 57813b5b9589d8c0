"""How a server is named."""

from __future__ import annotations

from typing import Final

PORT: Final = 1883
"""Where a server listens that is named without a port."""


def split(address: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``host``.

    Raises:
        ValueError: it is neither; the text says what is wrong.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        host, port = address, str(PORT)
    host = host.removeprefix("[").removesuffix("]")
    fine = bool(host) and host.isprintable() and not any(c in host for c in " @/,")
    if not fine or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{address!r} is no HOST:PORT")
    return host, int(port)
