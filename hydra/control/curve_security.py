"""CURVE on the control channel: the key pairs of a run, and the authentication by them (ZAP, ZeroMQ RFC 27)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import zmq
from zmq.utils import z85

ENDPOINT: Final = "HYDRA_CONTROL"
SERVER_KEY: Final = "HYDRA_CONTROL_SERVER_KEY"
CLIENT_KEY: Final = "HYDRA_CONTROL_CLIENT_KEY"
CLIENT_SECRET: Final = "HYDRA_CONTROL_CLIENT_SECRET"  # noqa: S105  # a variable's name


_ENDPOINT: Final = re.compile(r"tcp://[^\s/]+:[0-9]{1,5}")
_KEY: Final = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """Both key pairs of a run, Z85 text of 40 characters each; only the controller has the server's secret."""

    server_public: str
    server_secret: str = field(repr=False)
    client_public: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The endpoint and keys with which a client connects to the controller."""

    endpoint: str
    server_public: str
    client_public: str
    client_secret: str = field(repr=False)


def generate() -> CurveKeys:
    """Fresh keys for a run."""
    server_public, server_secret = zmq.curve_keypair()
    client_public, client_secret = zmq.curve_keypair()
    return CurveKeys(server_public.decode(), server_secret.decode(), client_public.decode(), client_secret.decode())


def environment(keys: CurveKeys, endpoint: str) -> dict[str, str]:
    """The environment variables of a group; they contain the client's secret and are never logged."""
    return {
        ENDPOINT: endpoint,
        SERVER_KEY: keys.server_public,
        CLIENT_KEY: keys.client_public,
        CLIENT_SECRET: keys.client_secret,
    }


def credentials(env: Mapping[str, str]) -> Credentials:
    """The credentials in an environment.

    Raises:
        ValueError: a variable is missing or no Z85 key; the text names it.
    """
    for name in (ENDPOINT, SERVER_KEY, CLIENT_KEY, CLIENT_SECRET):
        if not env.get(name):
            raise ValueError(f"the environment variable {name} is not set: groups are started by hydra, not by hand")
    if not _ENDPOINT.fullmatch(env[ENDPOINT]):
        raise ValueError(f"the environment variable {ENDPOINT} is no endpoint (tcp://host:port): {env[ENDPOINT]!r}")
    for name in (SERVER_KEY, CLIENT_KEY, CLIENT_SECRET):
        if not _KEY.fullmatch(env[name]):
            raise ValueError(f"the environment variable {name} is no CURVE key (40 characters of Z85)")
    return Credentials(env[ENDPOINT], env[SERVER_KEY], env[CLIENT_KEY], env[CLIENT_SECRET])


_ZAP: Final = "inproc://zeromq.zap.01"


class ZapHandler:
    """Answers libzmq's authentication requests of one context.

    pyzmq's own authenticator needs a thread and about three times the CPU time for each connection.

    Attributes:
        denied: the number of rejected handshakes.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], allowed: set[str]) -> None:
        self.denied = 0
        self._allowed = {z85.decode(key) for key in allowed}
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind(_ZAP)

    def serve(self) -> None:
        """Answers every request that has arrived; returns at once."""
        while True:
            try:
                frames = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.socket.send_multipart(self._answer(frames))

    def _answer(self, frames: list[bytes]) -> list[bytes]:
        # identity, delimiter, version, request id, domain, address, peer's identity, mechanism, credentials…
        envelope, (version, request), mechanism, credentials = frames[:2], frames[2:4], frames[7:8], frames[8:]
        if version == b"1.0" and mechanism == [b"CURVE"] and credentials and credentials[0] in self._allowed:
            return [*envelope, version, request, b"200", b"OK", b"", b""]
        self.denied += 1
        return [*envelope, version, request, b"400", b"this key is not of this run", b"", b""]

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()
