"""Servers that let in whom they know: with TLS, users, tokens, NKEYS and credentials of the test's own."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hydra.client.server_interface import accepts, free_ports
from hydra.client.supervised_process import SupervisedProcess
from hydra.natstest import nkey
from hydra.natstest.program import find_server
from tests.servers.access_cases import HOST, PASSWORD, USER, Certificates, SecureServers
from tests.suite.waiting import wait_until

TOKEN: Final = "a token of the test"


class Key:
    """A key of NATS of some kind: O (operator), A (account) or U (user)."""

    def __init__(self, kind: str) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._prefix = {"O": 14 << 3, "A": 0, "U": 20 << 3}[kind]

    @property
    def public(self) -> str:
        public = self._key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return _encoded(bytes([self._prefix]) + public)

    @property
    def seed(self) -> str:
        prefix = bytes([18 << 3 | self._prefix >> 5, (self._prefix & 31) << 3])
        return _encoded(prefix + self._key.private_bytes_raw())

    def jwt(self, name: str, subject: str, nats: Mapping[str, Any]) -> str:
        """A claim that this key signs."""
        claims = {
            "iss": self.public,
            "name": name,
            "sub": subject,
            "iat": 1_700_000_000,
            "nats": {"version": 2, **nats},
        }
        text = ".".join(map(_url, ({"typ": "JWT", "alg": "ed25519-nkey"}, claims)))
        return f"{text}.{_unpadded(self._key.sign(text.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.b32encode(data + nkey._checksum(data)).decode().rstrip("=")


def _url(value: object) -> str:
    return _unpadded(json.dumps(value).encode())


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@contextlib.contextmanager
def secure_servers(folder: Path, password: str = PASSWORD, only: Sequence[str] = ()) -> Iterator[SecureServers]:
    """Runs all of them, or only those with these names."""
    files, user = Certificates.write(folder, password), Key("U")
    tls, expired = (dict(zip(("cert_file", "key_file"), pair, strict=True)) for pair in (files.right, files.expired))
    login = {"users": [{"user": USER, "password": password}, {"nkey": user.public}]}
    configurations: dict[str, dict[str, Any]] = {
        "user": {"tls": tls, "authorization": login, "jetstream": {"store_dir": str(folder / "streams")}},
        "expired": {"tls": expired},
        "client": {"tls": {**tls, "ca_file": str(folder / "ca.pem"), "verify": True}},
        "plain": {"authorization": {"token": TOKEN}},
        "credentials": _operated(folder),
        "limited": {
            "authorization": {"users": [{"user": USER, "password": password, "permissions": {"publish": "orders.>"}}]},
        },
    }
    (folder / "user.nk").write_text(f"{user.seed}\n")
    (folder / "other.nk").write_text(f"{Key('U').seed}\n")
    (folder / "token").write_text(f"{TOKEN}\n")
    if only:
        configurations = {name: configurations[name] for name in only}
    ports = dict(zip(configurations, free_ports(HOST, len(configurations)), strict=True))
    with contextlib.ExitStack() as stack:
        for name, values in configurations.items():
            text = json.dumps({"listen": f"{HOST}:{ports[name]}", **values})
            # Of JSON's escapes the server does not know all; in single quotes it knows none.
            (folder / f"{name}.conf").write_text(text.replace(json.dumps(password), f"'{password}'"))
            command = [find_server().path, "-c", str(folder / f"{name}.conf")]
            running = SupervisedProcess(command, folder, folder / f"{name}.log", grace_s=0.0)
            stack.callback(running.stop)
        wait_until(lambda: all(accepts(HOST, port) for port in ports.values()), "the servers")
        yield SecureServers({name: f"{HOST}:{port}" for name, port in ports.items()}, folder)


def store_context(home: Path, name: str, values: Mapping[str, str]) -> None:
    """Stores a context as the command ``nats`` does in the folder that ``XDG_CONFIG_HOME`` names."""
    folder = home / "nats" / "context"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(values))


def _operated(folder: Path) -> dict[str, Any]:
    """A server with an operator, an account and a user, whose credentials file it writes."""
    operator, account, user = Key("O"), Key("A"), Key("U")
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    jwt = account.jwt("me", user.public, {"type": "user", "subs": -1, "data": -1, "payload": -1})
    (folder / "me.creds").write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    return {
        "operator": operator.jwt("op", operator.public, {"type": "operator"}),
        "resolver": "MEMORY",
        "resolver_preload": {
            account.public: operator.jwt("acc", account.public, {"type": "account", "limits": limits}),
        },
    }
