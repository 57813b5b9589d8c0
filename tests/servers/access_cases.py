"""Logins and certificates with which a test's servers let clients in or not: the same cases for every system."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import msgspec

from hydra.client.tls import ServerTls
from hydra.system import run_certificates
from hydra.system.run_certificates import RunAuthority

HOST: Final = "127.0.0.1"
USER: Final = "me"
PASSWORD: Final = "right/and@with:signs"


@dataclass(frozen=True)
class SecureServers:
    """Addresses by what the server demands, and the files that let clients in, by their names."""

    addresses: Mapping[str, str]
    folder: Path

    def file(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True)
class Certificates:
    """A folder with ca.pem, stranger.pem (another CA), client.pem and .key, unknown.pem and .key, and a password."""

    right: tuple[str, str]
    """Files of a server's certificate and key."""
    expired: tuple[str, str]

    @classmethod
    def write(cls, folder: Path, password: str = PASSWORD) -> Certificates:
        """Makes the folder and all files."""
        counted, stranger = RunAuthority(), RunAuthority()
        folder.mkdir()
        right = _of_server(folder / "right", counted)
        with patch.object(run_certificates, "_VALID", -dt.timedelta(days=1)):
            expired = _of_server(folder / "expired", counted)
        (folder / "ca.pem").write_text(counted.client.ca)
        (folder / "stranger.pem").write_text(stranger.client.ca)
        for name, authority in (("client", counted), ("unknown", stranger)):
            own: ServerTls = authority.server("client:1")
            (folder / f"{name}.pem").write_text(own.certificate)
            (folder / f"{name}.key").write_text(own.key)
        (folder / "password").write_text(f"{password}\n")
        return cls(right, expired)


def _of_server(folder: Path, authority: RunAuthority) -> tuple[str, str]:
    folder.mkdir()
    return authority.server(f"{HOST}:1").write(folder)


@dataclass(frozen=True)
class Case:
    """Which server is tried and how: a system's table without the address; {NAME} is a file of the test.

    In ``address``, ``{at}`` is the server, ``{none}`` is an address where no server is, and any other name a server.
    ``reason`` is what the controller reports, "" if it is let in; a native client names only its layer.
    """

    server: str
    reason: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    address: str = "{secure}://{at}"

    @property
    def layer(self) -> str:
        return self.reason.partition(":")[0]

    def table(self, key: str, secure: str, addresses: Mapping[str, str], files: Path) -> dict[str, str]:
        """The keys of the system's table.

        Args:
            key: the key of the address.
            secure: the scheme with TLS.
            addresses: the servers' addresses by their names.
            files: the folder of the files.
        """
        none = f"{HOST}:1"  # a free port may be taken by another test
        at = addresses.get(self.server, none)
        if "wrong host" in self.reason:
            at = at.replace(HOST, "localhost")
        given = {name: str(files / v[1:-1]) if v.startswith("{") else v for name, v in self.given.items()}
        return {key: self.address.format(secure=secure, at=at, none=none, **addresses), **given}


def one_clear_line(text: str, reason: str, *secrets: str) -> None:
    assert reason in text
    assert "\n" not in text
    assert [secret for secret in (PASSWORD, *secrets) if secret in text] == []


def given(table: str, spec: Any) -> dict[str, object]:
    """The keys of a system's table that differ from its defaults, as a scenario names them."""
    own, usual = msgspec.to_builtins(spec), msgspec.to_builtins(type(spec)())
    return {f"{table}.{key}": value for key, value in own.items() if value != usual[key]}


CA: Final = {"ca_file": "{ca.pem}"}
LOGIN: Final = {**CA, "username": USER, "password": PASSWORD}
CLIENT: Final = {**CA, "cert_file": "{client.pem}", "key_file": "{client.key}"}
UNKNOWN: Final = {**CA, "cert_file": "{unknown.pem}", "key_file": "{unknown.key}"}
ENCODED: Final = "right%2Fand%40with%3Asigns"
CASES: Final = {
    "user": Case("user", "", LOGIN),
    "user, password file": Case("user", "", {**CA, "username": USER, "password_file": "{password}"}),
    "user in the address": Case("user", "", CA, f"{{secure}}://{USER}:{ENCODED}@{{at}}"),
    "client certificate": Case("client", "", CLIENT),
    "wrong password": Case("user", "login: the server rejects this user or password", {**LOGIN, "password": "wrong"}),
    "no password": Case("user", "login: the server demands a password, and none is given", {**CA, "username": USER}),
    "no login": Case("user", "login: the server demands a login, and none is given", CA),
    "expired": Case("expired", "TLS: the server's certificate has expired", CA),
    "unknown CA": Case("user", "TLS: unknown CA: ", {**LOGIN, "ca_file": "{stranger.pem}"}),
    "no CA": Case("user", "TLS: unknown CA: ", {"username": USER, "password": PASSWORD}),
    "wrong host": Case("user", "TLS: wrong host name: the server's certificate is not for localhost", LOGIN),
    "no client certificate": Case("client", "TLS: the server requires a client certificate", CA),
    "unknown client certificate": Case("client", "TLS: the server rejects the client certificate", UNKNOWN),
    "no TLS": Case("plain", "TLS: the server ", CA),
    "no server": Case("", "network: Connection refused", LOGIN),
}
"""The servers: "user" demands a login, "client" a client certificate; "expired" has an old one, "plain" no TLS."""
