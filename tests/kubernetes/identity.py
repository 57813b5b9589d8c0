"""Who is who in an instance: its certificates, its users and their kubeconfig files."""

from __future__ import annotations

import base64
import csv
import json
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kubernetes.places import Place

SYSTEM = "rig-system"
"""The user of the rig's own processes; the audit log leaves it out."""
USER = "hydra"
"""A user without any right."""
ADMIN = "admin"
ISSUER = "https://kubernetes.default.svc"
"""Who has signed the tokens of service accounts."""


def certificates(folder: Path, address: str) -> None:
    """An authority, a certificate of the apiserver, and the key of service account tokens.

    Python 3.13 refuses certificates without the extensions that are named here.
    """
    (folder / "server.ext").write_text(
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        f"subjectAltName=IP:{address},DNS:kubernetes.default.svc,DNS:kubernetes.default,DNS:localhost\n"
    )
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _openssl(folder, "req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-days", "30", "-subj", "/CN=rig",
             "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    _openssl(folder, "req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=kube-apiserver")
    _openssl(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
             "-out", "server.crt", "-days", "30", "-extfile", "server.ext")  # fmt: skip
    _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")
    _openssl(folder, "ec", "-in", "sa.key", "-pubout", "-out", "sa.pub")


def signed(folder: Path, claims: Mapping[str, Any]) -> str:
    """A JSON Web Token (RFC 7519) by the key of service account tokens."""
    text = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "ES256", "typ": "JWT"}, claims))
    der = _openssl(folder, "dgst", "-sha256", "-sign", "sa.key", text=text.encode())
    # A sequence of two integers; RFC 7518 has both with 32 bytes each, and nothing else.
    length = der[3]
    numbers = der[4 : 4 + length], der[6 + length :]
    raw = b"".join(int.from_bytes(number, "big").to_bytes(32, "big") for number in numbers)
    return f"{text}.{_encoded(raw)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _openssl(folder: Path, *arguments: str, text: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], cwd=folder, input=text, check=True, capture_output=True).stdout


class Users:
    """Those who have a token; the apiserver reads them when it starts."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._file = place.run / "tokens.csv"

    def add(self, user: str, *groups: str) -> None:
        """A new user, with a token and a kubeconfig."""
        token = secrets.token_hex(16)
        with self._file.open("a", newline="") as file:
            csv.writer(file).writerow([token, user, f"rig-{user}", ",".join(groups)])
        self._file.chmod(0o600)
        self.kubeconfig(user, token)

    def token(self, user: str) -> str:
        """The token of a user."""
        with self._file.open(newline="") as file:
            return next(row[0] for row in csv.reader(file) if row[1] == user)

    def kubeconfig(self, user: str, token: str, namespace: str = "default") -> Path:
        """The kubeconfig file of a user for a namespace."""
        path = self._place.run / (f"{user}.kubeconfig" if namespace == "default" else f"{user}-{namespace}.kubeconfig")
        self.write(path, user, {"token": token}, namespace)
        return path

    def write(self, path: Path, user: str, credentials: Mapping[str, Any], namespace: str) -> None:
        """Writes a kubeconfig file with one context, which is called as the user and has these credentials."""
        cluster = {"server": self._place.server, "certificate-authority": str(self._place.run / "ca.crt")}
        context = {"cluster": "rig", "user": user, "namespace": namespace}
        clusters, users = [{"name": "rig", "cluster": cluster}], [{"name": user, "user": dict(credentials)}]
        contexts = {"contexts": [{"name": user, "context": context}], "current-context": user}
        config = {"apiVersion": "v1", "kind": "Config", "clusters": clusters, "users": users, **contexts}
        path.touch(0o600)
        path.write_text(json.dumps(config, indent=1))
