"""What a server of NATS demands of a client: its greeting, and with which TLS and login it lets clients in. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from hydra.client.tls import AccessError, ClientTls, certificate_error, password_error
from hydra.natstest.settings import NatsLogin

LONGEST_LINE: Final = 65_536
"""The most bytes of a line of a server."""


def host_and_port(server: str) -> tuple[str, int]:
    """The host, without the brackets of an address of IPv6, and the port of ``host:port``."""
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def info_of(line: bytes) -> dict[str, Any]:
    """The object in the line INFO, with which a server greets each client; {} if the line is another one."""
    try:
        info = json.loads(line.removeprefix(b"INFO "))
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}


def error_in(line: bytes) -> str:
    """The text of the line -ERR; "" if the line is another one."""
    return line.decode(errors="replace").removeprefix("-ERR").strip().strip("'") if line.startswith(b"-ERR") else ""


def tls_for(info: Mapping[str, Any], wanted: ClientTls | None) -> ClientTls | None:
    """The TLS that a client uses with a server; None: none.

    Args:
        info: the server's INFO.
        wanted: what the client is to use.

    Raises:
        AccessError: the client and the server do not agree.
    """
    if not info.get("tls_required"):
        if wanted is None:
            return None
        if info.get("tls_available"):
            raise AccessError("TLS", "the server leaves TLS to its clients (allow_non_tls)", "make it demand TLS")
        raise AccessError("TLS", "the server does not use TLS at this port", "leave out TLS, or name another port")
    tls = wanted or ClientTls()
    if info.get("tls_verify") and not tls.certificate:
        raise certificate_error(tls)
    return tls


def login_error(login: NatsLogin | None) -> AccessError:
    """The error of a client whose login a server rejects."""
    if login is None:
        remedy = "add --username and --password-file, --token-file, --nkey-file, or --creds-file"
        return AccessError("login", "the server demands a login, and none is given", remedy)
    if login.jwt:
        return AccessError("login", "the server rejects the credentials", "check --creds-file")
    if login.seed:
        return AccessError("login", "the server rejects the NKEY", "check --nkey-file")
    if login.token:
        return AccessError("login", "the server rejects the token", "check --token-file")
    return password_error(login.username, login.password)
