"""Servers that let in whom they know: one mosquitto with a port for each, and one nats-server for WebSocket."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hydra.client.server_interface import accepts, free_ports
from hydra.client.supervised_process import SupervisedProcess
from hydra.mqtttest.program import find
from tests.servers.access_cases import HOST, PASSWORD, USER, Certificates, SecureServers
from tests.suite.waiting import wait_until

_ROUNDS: Final = 101
_SALT: Final = b"of the tests"


@contextlib.contextmanager
def secure_servers(folder: Path, password: str = PASSWORD) -> Iterator[SecureServers]:
    """Runs a mosquitto; see :data:`tests.servers.access_cases.CASES`."""
    files = Certificates.write(folder, password)
    users = folder / "users"
    users.touch(mode=0o600)
    users.write_text(_user(password))
    right, expired = (["certfile " + pair[0], "keyfile " + pair[1]] for pair in (files.right, files.expired))
    demands = [f"cafile {folder / 'ca.pem'}", "require_certificate true"]
    listeners = {
        "user": [*right, "allow_anonymous false", f"password_file {users}"],
        "expired": [*expired, "allow_anonymous true"],
        "client": [*right, *demands, "allow_anonymous true"],
        "plain": ["allow_anonymous true"],
    }
    ports = dict(zip(listeners, free_ports(HOST, len(listeners)), strict=True))
    lines = ["per_listener_settings true", *(["user root"] if os.geteuid() == 0 else [])]
    for name, own in listeners.items():
        lines += [f"listener {ports[name]} {HOST}", *own]
    (folder / "secure.conf").write_text("\n".join([*lines, ""]))
    command = [find().path, "-c", str(folder / "secure.conf")]
    with _running(command, folder, [*ports.values()]):
        yield SecureServers({name: f"{HOST}:{port}" for name, port in ports.items()}, folder)


@contextlib.contextmanager
def websocket_server(program: str, folder: Path, certificate: Sequence[str] = ()) -> Iterator[str]:
    """Runs a nats-server that speaks MQTT over WebSocket, with TLS if it has a certificate; the value is its address.

    Debian's mosquitto has no WebSocket.
    """
    folder.mkdir()
    ports = free_ports(HOST, 3)
    tls = dict(zip(("cert_file", "key_file"), certificate, strict=True)) if certificate else {}
    configuration = {
        "server_name": "test",
        "listen": f"{HOST}:{ports[0]}",
        "mqtt": {"listen": f"{HOST}:{ports[1]}"},
        "websocket": {"listen": f"{HOST}:{ports[2]}", **({"tls": tls} if tls else {"no_tls": True})},
        "jetstream": {"store_dir": str(folder / "streams")},
        "authorization": {"user": USER, "password": PASSWORD},
    }
    (folder / "server.conf").write_text(json.dumps(configuration))
    with _running([program, "-c", str(folder / "server.conf")], folder, ports):
        yield f"{HOST}:{ports[2]}"


@contextlib.contextmanager
def _running(command: list[str], folder: Path, ports: list[int]) -> Iterator[None]:
    running = SupervisedProcess(command, folder, folder / "log", grace_s=0.0)
    try:
        wait_until(lambda: all(accepts(HOST, port) for port in ports), command[0], saw=(folder / "log").read_text)
        yield
    finally:
        running.stop()


def _user(password: str) -> str:
    """The line of a password file, as mosquitto_passwd writes it."""
    key = hashlib.pbkdf2_hmac("sha512", password.encode(), _SALT, _ROUNDS)
    salt, encoded = (base64.b64encode(part).decode() for part in (_SALT, key))
    return f"{USER}:$7${_ROUNDS}${salt}${encoded}\n"
