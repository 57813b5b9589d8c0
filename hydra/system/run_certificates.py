"""The certificates of servers that Hydra starts with ``tls``: a CA for one run, and a certificate for each server."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hydra.client.tls import ClientTls, ServerTls

_BEFORE: Final = dt.timedelta(days=2)
"""The clocks of agents may be wrong."""
_VALID: Final = dt.timedelta(days=365)
_NAME: Final = "Hydra, for one run"


class RunAuthority:
    """A CA for the servers of one run. Its private key is in this process only, and ends with it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(_NAME, self._key.public_key(), authority=True)

    @property
    def client(self) -> ClientTls:
        """The TLS of clients, which trust this CA only."""
        return ClientTls(ca=_pem(self._certificate))

    def server(self, endpoint: str) -> ServerTls:
        """A certificate for a server on the host of this endpoint (``host:port``, comma-separated)."""
        host = endpoint.split(",")[0].rpartition(":")[0].strip("[]")
        key = ec.generate_private_key(ec.SECP256R1())
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        text = key.private_bytes(encoding, form, serialization.NoEncryption()).decode()
        return ServerTls(certificate=_pem(self._signed(host, key.public_key())), key=text)

    def _signed(self, name: str, key: ec.EllipticCurvePublicKey, *, authority: bool = False) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        issuer = self._key.public_key()
        used = ("key_cert_sign", "crl_sign") if authority else ("digital_signature",)
        usage = {each: each in used for each in _USAGES}
        made = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named(_NAME))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BEFORE)
            .not_valid_after(now + _VALID)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )
        if not authority:
            made = made.add_extension(x509.SubjectAlternativeName(_names(name)), critical=False)
        return made.sign(self._key, hashes.SHA256())


_USAGES: Final = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _names(host: str) -> list[x509.GeneralName]:
    """The host as clients check it; some libraries compare the text of an IP address with DNS names."""
    try:
        return [x509.IPAddress(ipaddress.ip_address(host)), x509.DNSName(host)]
    except ValueError:
        return [x509.DNSName(host)]


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
