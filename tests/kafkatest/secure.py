"""A broker that speaks TLS, and SASL/SCRAM over TLS, with certificates and users of the test's own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

from confluent_kafka import admin

from hydra.client.server_interface import free_ports
from hydra.client.tls import ServerTls
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.program import KafkaProgram
from hydra.system import run_certificates
from hydra.system.run_certificates import RunAuthority
from tests.suite.waiting import SOON_S

HOST: Final = "127.0.0.1"
USER: Final = "hydra"
PASSWORD: Final = "right, and with a ; in it"
NOWHERE: Final = f"{HOST}:1"
DOORS: Final = {"tls": "SSL", "scram": "SASL_SSL", "expired": "SSL", "client": "SSL", "stray": "PLAINTEXT"}
"""The listeners by name, with their protocols.

The certificate of one has expired, one asks clients for theirs, and one advertises an address without a server.
"""
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True)
class SecureBroker:
    """The addresses of its listeners (``host:port``), and the folder with the files for its clients."""

    broker: LocalBroker
    doors: Mapping[str, str]
    folder: Path

    @property
    def plain(self) -> str:
        """Without any security."""
        return self.broker.bootstrap

    def file(self, name: str) -> str:
        return str(self.folder / name)


def secure_broker(folder: Path) -> SecureBroker:
    """Starts one; its owner stops ``broker``."""
    folder.mkdir()
    own, stranger = RunAuthority(), RunAuthority()
    with patch.object(run_certificates, "_VALID", -dt.timedelta(days=1)):
        expired = own.server(f"{HOST}:1")
    certificates = {"server": own.server(f"{HOST}:1"), "expired": expired, "client": own.server("client:1")}
    for name, made in certificates.items():
        _write(folder, name, made)
    (folder / "ca.pem").write_text(own.client.ca)
    (folder / "stranger.pem").write_text(stranger.client.ca)
    doors = dict(zip(DOORS, (f"{HOST}:{port}" for port in free_ports(HOST, len(DOORS))), strict=True))
    broker = LocalBroker(
        folder / "broker", KafkaProgram(more=lambda *ports: _settings(folder, doors, *ports)), warm=False
    )
    broker.start()
    try:
        credential = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4096)  # type: ignore[attr-defined]
        upsertion = admin.UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())  # type: ignore[attr-defined]
        client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        for answer in client.alter_user_scram_credentials([upsertion]).values():
            answer.result(SOON_S)
    except BaseException:
        broker.stop()
        raise
    return SecureBroker(broker, doors, folder)


def _write(folder: Path, name: str, tls: ServerTls) -> None:
    """Writes a certificate, its key, and both in one file."""
    (folder / f"{name}.crt").write_text(tls.certificate)
    (folder / f"{name}.key").write_text(tls.key)
    (folder / f"{name}.pem").write_text(tls.key + tls.certificate)


def _settings(folder: Path, doors: Mapping[str, str], port: int, controller_port: int) -> Mapping[str, str]:
    clients = ",".join(
        [f"PLAINTEXT://{HOST}:{port}", *(f"{name.upper()}://{address}" for name, address in doors.items())]
    )
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | {n.upper(): of for n, of in DOORS.items()}
    return {
        "listeners": f"{clients},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": clients.replace(doors["stray"], NOWHERE),
        "listener.security.protocol.map": ",".join(f"{name}:{of}" for name, of in protocols.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.expired.ssl.keystore.location": str(folder / "expired.pem"),
        "listener.name.expired.ssl.keystore.type": "PEM",
        "listener.name.client.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": _SCRAM,
    }
