"""What is wrong with the flags for others' eyes, told before anything that takes long is imported."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from typing import Final

from hydra.errors import MissingDependencyError, UsageError

_INSTALL: Final = {
    "--prometheus": "pip install prometheus-client",
    "--otlp": "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
}
"""What brings the library of each flag, however Hydra itself was installed; the extra ``metrics`` names all of them."""


def family_of(host: str, port: int) -> int:
    """The kind of address that a host's name or address is, for a socket.

    Raises:
        OSError: it is none.
    """
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]


def refuse_address(host: str, port: int) -> None:
    """Refuses an address at which nobody can listen.

    Raises:
        UsageError: it is in use, or not of this machine.
    """
    try:
        with socket.socket(family_of(host, port), socket.SOCK_STREAM) as it:
            # As the server will: a connection that has ended a moment ago is no hindrance.
            it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            it.bind((host, port))
    except UnicodeError as e:  # no name of a host
        raise cannot_listen(host, port, OSError(0, "it is no name of a host")) from e
    except OSError as e:
        raise cannot_listen(host, port, e) from e


def cannot_listen(host: str, port: int, error: OSError) -> UsageError:
    """What is said where nobody can listen."""
    return UsageError(
        f"--prometheus: nothing can listen at {written(host, port)}: {error.strerror}",
        "name a free port and an address of this machine, or port 0 for any",
    )


def refuse_missing(flag: str, library: str) -> None:
    """Refuses a flag whose library is not installed.

    Raises:
        MissingDependencyError: it is not.
    """
    try:
        found = find_spec(library)
    except ImportError:
        found = None
    if found is None:
        raise missing(flag, library)


def missing(flag: str, library: str | None) -> MissingDependencyError:
    """What is said where a library is not installed."""
    return MissingDependencyError(f"{flag} needs a library that is not installed ({library})", _INSTALL[flag])


def written(host: str, port: int) -> str:
    """An address as URLs have it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
