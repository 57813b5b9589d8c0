"""What listens at an address that a user named for a server, and is no such server: it is known by its first bytes."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from hydra.client.tls import AccessError
from hydra.system.specification import Greeting
from hydra.system.worker_thread import at_once

_WITHIN_S: Final = 0.7
"""How long a connection, and the first bytes of an answer, may take."""
_MOST_BYTES: Final = 256
_MOST_SHOWN: Final = 40
"""The most characters of an answer in an error."""
OTHERS: Final = (
    Greeting("HTTP", "an HTTP server", rb"HTTP/\d", b"GET / HTTP/1.0\r\n\r\n"),
    Greeting("AMQP", "an AMQP server", rb"AMQP"),
    Greeting("TLS", "a server that demands TLS", rb"\x15\x03[\x00-\x04]\x00\x02"),
)
"""Servers of no system that a wrong address may name."""
_NO_SERVER: Final = b"\x00nobody"
"""In place of an answer: no connection was made."""
_OF_LISTENERS: Final = (None, errno.ECONNRESET, errno.EPIPE)
"""The kernel's numbers of errors with which something may listen."""
_REMEDY: Final = "check the host and port of --servers"


def explained(
    error: AccessError, where: tuple[str, int], protocol: str, known: Iterable[Greeting], server: str
) -> AccessError:
    """The error of a first contact, with what listens at the address as its reason if that is another program.

    Args:
        error: why a client was not let in.
        where: the host, without brackets, and the port.
        protocol: what the client has tried in vain.
        known: how further kinds of servers are known.
        server: the server, as the subject of a sentence.
    """
    if error.layer != "network" or error.errno not in _OF_LISTENERS:
        return error
    kinds = (*known, *OTHERS)
    questions = dict.fromkeys(kind.question for kind in kinds)
    why = in_words(at_once(lambda question: _answer(where, question), questions), protocol, kinds)
    return AccessError("network", why, _REMEDY, server) if why else error


def together(errors: Mapping[str, AccessError], servers: str) -> AccessError:
    """The error of several addresses, none of which lets a client in: a rejection, or the reason of each address.

    Args:
        errors: of each address.
        servers: the subject of a sentence before the addresses.
    """
    first = next((error for error in errors.values() if error.layer != "network"), None)
    if first is not None or len(errors) == 1:
        return first or next(iter(errors.values()))
    reasons = ", ".join(f"{address}: {error.reason}" for address, error in errors.items())
    return AccessError("network", reasons, _REMEDY, f"{servers} {','.join(errors)}")


def _answer(where: tuple[str, int], question: bytes) -> bytes | None:
    """The first bytes of an answer, or what :func:`in_words` takes in place of them."""
    try:
        connection = socket.create_connection(where, _WITHIN_S)
    except OSError:
        return _NO_SERVER
    with connection:
        try:
            connection.sendall(question)
            return connection.recv(_MOST_BYTES)
        except TimeoutError:
            return None
        except OSError:
            return b""


def in_words(answers: Iterable[bytes | None], protocol: str, kinds: Iterable[Greeting]) -> str:
    """What listens, as a clause; "" if nothing listens, or what listens speaks the protocol.

    Args:
        answers: for each question the first bytes; ``b""``: the connection was closed; None: nothing came in time.
        protocol: as above.
        kinds: how servers are known.
    """
    found = [answer for answer in answers if answer != _NO_SERVER]
    for kind in kinds:
        if any(answer and kind.matches(answer) for answer in found):
            return "" if kind.protocol == protocol else f"{kind.server} is at this port, and not {protocol}"
    text = next(filter(None, found), None)
    if text is not None:
        line = text.partition(b"\n")[0].strip()
        shown = f', and sends "{line.decode()[:_MOST_SHOWN]}"' if line.isascii() and line.decode().isprintable() else ""
        return f"what listens at this port does not speak {protocol}{shown}"
    if b"" in found:
        return f"what listens at this port closes connections without an answer as {protocol}"
    return f"the port accepts connections, but nothing answers as {protocol}" if found else ""
