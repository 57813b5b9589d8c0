"""A broker that speaks TLS, and SASL/SCRAM over TLS, with certificates and users of the test's own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import admin

from hydra.client.server_interface import free_ports
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.program import KafkaProgram
from tests.suite.waiting import LONG_S, SOON_S

HOST: Final = "127.0.0.1"
USER: Final = "hydra"
PASSWORD: Final = "right, and with a ; in it"
_CURVE: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=LONG_S)


def _authority(folder: Path, name: str) -> Path:
    """A certificate authority: its certificate; the key lies beside it."""
    made = ("-subj", f"/CN={name}", "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    _openssl(folder, "req", "-x509", *_CURVE, *made)
    return folder / f"{name}.pem"


def _keystore(folder: Path, authority: str) -> Path:
    """The broker's key and its certificate by an authority, in one file."""
    _openssl(folder, "req", *_CURVE, "-subj", f"/CN={HOST}", "-keyout", "broker.key", "-out", "broker.csr")
    (folder / "names").write_text(f"subjectAltName=IP:{HOST}\n")
    signing = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-extfile", "names")
    _openssl(folder, "x509", "-req", "-in", "broker.csr", "-days", "2", *signing, "-out", "broker.pem")
    store = folder / "store.pem"
    store.write_text((folder / "broker.key").read_text() + (folder / "broker.pem").read_text())
    return store


@dataclass(frozen=True)
class SecureBroker:
    """Where it listens (``host:port``), and the certificates of who signed its own and of somebody else."""

    broker: EmbeddedBroker
    tls: str
    scram: str
    authority: Path
    stranger: Path

    @property
    def plain(self) -> str:
        """Without any security."""
        return self.broker.bootstrap


def secure_broker(folder: Path) -> SecureBroker:
    """Starts one; its owner stops ``broker``."""
    folder.mkdir()
    authority, stranger = _authority(folder, "authority"), _authority(folder, "stranger")
    store = _keystore(folder, "authority")
    tls, scram = free_ports(HOST, 2)

    def more(port: int, controller_port: int) -> Mapping[str, str]:
        clients = f"PLAINTEXT://{HOST}:{port},SSL://{HOST}:{tls},SASL_SSL://{HOST}:{scram}"
        return {
            "listeners": f"{clients},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": _SCRAM,
        }

    broker = EmbeddedBroker(folder / "broker", KafkaProgram(more=more), warm=False)
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
    return SecureBroker(broker, f"{HOST}:{tls}", f"{HOST}:{scram}", authority, stranger)
