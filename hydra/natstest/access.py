"""How the user's servers are reached: addresses, logins and files of a scenario, and a check of each server."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hydra.client.tls import AccessError, ClientTls, access_error
from hydra.config.plugins import greetings
from hydra.errors import ConfigError, RefusedKeyError
from hydra.natstest.connection import NatsConnection
from hydra.natstest.server_demands import host_and_port
from hydra.natstest.settings import TABLE, NatsAccess, NatsLogin, NatsSpec
from hydra.system import Refusal
from hydra.system.listener import explained, together
from hydra.system.server_access import (
    AddressError,
    AddressForm,
    ServerAddress,
    client_tls,
    file_text,
    first_line,
    key_secrets,
)
from hydra.system.worker_thread import at_once

_NO_WEBSOCKET: Final = "Hydra does not use WebSocket with NATS", "name the port for clients: nats:// or tls://"
FORM: Final = AddressForm(
    ports={"": 0, "nats": 4222, "tls": 4222},
    refused={scheme: (f"{scheme}://: {_NO_WEBSOCKET[0]}", _NO_WEBSOCKET[1]) for scheme in ("ws", "wss")},
    example="write host:port, several with commas; ports are 1 to 65535",
)
_LOGINS: Final = ("username", "token", "token_file", "nkey_file", "creds_file")
"""The keys of which only one can be given, because each names a login."""
_SEED: Final = re.compile(r"\bSU[A-Z2-7]{56}\b")
_JWT: Final = re.compile(r"BEGIN NATS USER JWT-+\s+(\S+)\s+-+END")


def addresses(spec: NatsSpec) -> list[ServerAddress]:
    """The user's servers; [] if Hydra starts servers.

    Raises:
        AddressError: an address is invalid, or the addresses have several logins.
    """
    found = [FORM.read(text.strip()) for text in spec.servers.split(",")] if spec.servers else []
    if len({(each.username, each.password) for each in found if each.username}) > 1:
        raise AddressError("the addresses have several logins", "give one login, which holds for all servers")
    return found


def refusals(spec: NatsSpec) -> Iterator[Refusal]:
    """What is wrong with the addresses and the login, before any file is read."""
    try:
        named = any(each.username for each in addresses(spec))
    except AddressError as e:
        yield (TABLE, "servers"), e.what, e.remedy
        return
    logins = [*(["servers"] if named else []), *(name for name in _LOGINS if getattr(spec, name))]
    if len(logins) > 1:
        yield (TABLE, logins[1]), f"{' and '.join(logins[:2])} both name a login", "leave one out"
    if spec.password and spec.password_file:
        yield (TABLE, "password"), "the password is named twice, here and by password_file", "leave one out"


def access_of(spec: NatsSpec) -> NatsAccess:
    """How the user's servers are reached.

    Raises:
        RefusedKeyError: a file cannot be read, or has no seed or no JWT.
        UsageError: a file has no certificate or key, or the key is not that of the certificate.
    """
    servers = addresses(spec)
    demanded = spec.ca_file or spec.cert_file or any(each.scheme == "tls" for each in servers)
    tls = client_tls(TABLE, spec) if demanded else None
    return NatsAccess(servers=[each.endpoint for each in servers], login=_login(spec, servers), tls=tls)


def _login(spec: NatsSpec, servers: list[ServerAddress]) -> NatsLogin | None:
    named = next((each for each in servers if each.username), None)
    if named is not None:
        if named.password is None:
            return NatsLogin(token=named.username)
        return NatsLogin(username=named.username, password=named.password)
    if spec.username:
        return NatsLogin(username=spec.username, password=spec.password or _line("password_file", spec.password_file))
    if spec.token or spec.token_file:
        return NatsLogin(token=spec.token or _line("token_file", spec.token_file))
    if spec.nkey_file:
        seed = _part("nkey_file", spec.nkey_file, _SEED, "seed of a user (SU…)")
        return NatsLogin(nkey=_public("nkey_file", spec.nkey_file, seed), seed=seed)
    if spec.creds_file:
        seed = _part("creds_file", spec.creds_file, _SEED, "seed of a user (SU…)")
        return NatsLogin(seed=seed, jwt=_part("creds_file", spec.creds_file, _JWT, "JWT of a user"))
    return None


def _line(key: str, path: str) -> str:
    return first_line(f"{TABLE}.{key}", path) if path else ""


def _part(key: str, path: str, pattern: re.Pattern[str], what: str) -> str:
    """The part of a file that a pattern finds.

    Raises:
        RefusedKeyError: the file cannot be read, or has no such part.
    """
    found = pattern.search(file_text(f"{TABLE}.{key}", path))
    if found is None:
        raise RefusedKeyError("", f"{TABLE}.{key}", f"{path} has no {what}", "name another file")
    return found[found.re.groups]


def _public(key: str, path: str, seed: str) -> str:
    """The public name of an NKEY.

    Raises:
        RefusedKeyError: the seed is damaged.
    """
    from hydra.natstest.nkey import UserKey

    try:
        return UserKey(seed).public
    except ValueError as e:
        raise RefusedKeyError("", f"{TABLE}.{key}", f"{path}: {e}", "name another file") from e


def secrets_of(spec: NatsSpec) -> Iterator[str]:
    """Passwords, tokens, keys and credentials that can be read."""
    with contextlib.suppress(ConfigError, AddressError):  # the error is reported when the run begins
        login = _login(spec, addresses(spec)) or NatsLogin()
        yield from filter(None, (login.password, login.token, login.seed, login.jwt))
    yield from key_secrets(TABLE, spec)


_LET_IN_WITHIN_S: Final = 2.0
_ADVERTISED_WITHIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Reached:
    """How the user's servers let clients in.

    Attributes:
        access: the addresses that answer, with the TLS that clients need.
        silent: why each other address does not answer.
        advertised: likewise for each address to which these servers send clients that lose their connection.
    """

    access: NatsAccess
    silent: Mapping[str, AccessError] = field(default_factory=dict)
    advertised: Mapping[str, AccessError] = field(default_factory=dict)


def reached(access: NatsAccess) -> Reached:
    """How the servers let clients in: a client of Hydra has connected to each address.

    Raises:
        AccessError: a server rejects the client, or none answers.
    """
    answers = dict(zip(access.servers, at_once(lambda each: _let_in(access, each), access.servers), strict=True))
    errors = {server: answer for server, answer in answers.items() if isinstance(answer, AccessError)}
    if len(errors) == len(answers) or any(error.layer != "network" for error in errors.values()):
        raise together(errors, "NATS at")
    greeted = [answer for answer in answers.values() if not isinstance(answer, AccessError)]
    tls = next((tls for tls, _ in greeted if tls), None)
    named = [server for server in access.servers if server not in errors]
    further = dict.fromkeys(each for _, info in greeted for each in info.get("connect_urls") or () if each not in named)
    unseen = zip(further, at_once(_unreachable, further), strict=True)
    return Reached(
        replace(access, servers=named, tls=tls), errors, {address: error for address, error in unseen if error}
    )


def _let_in(access: NatsAccess, server: str) -> tuple[ClientTls | None, Mapping[str, Any]] | AccessError:
    """The TLS and the INFO of a server, or why it does not let a client in."""
    connection = NatsConnection("hydra-check")
    try:
        connection.open(replace(access, servers=[server]), _LET_IN_WITHIN_S)
    except AccessError as e:
        return explained(e, host_and_port(server), "NATS", greetings(), f"NATS at {server}")
    else:
        return connection.tls, connection.info
    finally:
        connection.end()


def _unreachable(server: str) -> AccessError | None:
    host, port = host_and_port(server)
    try:
        socket.create_connection((host, port), _ADVERTISED_WITHIN_S).close()
    except OSError as e:
        return access_error(e, host, None)
    return None
