"""TLS of clients and servers: certificates as the control channel carries them, and why a server lets no client in.

Imported on agents: it uses the standard library alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hydra.client.linux_process import local_limit
from hydra.model.machine import LOCAL_LIMITS

if TYPE_CHECKING:
    # They take long, and every command reads settings with the classes of this module.
    import socket
    import ssl

Layer = Literal["TLS", "login", "network", "this host"]
"""Where a connection failed."""


class AccessError(OSError):
    """A server did not let a client in.

    Arguments:
        layer: where the connection failed.
        reason: why it failed.
        remedy: what to try; "": nothing in particular.
        server: the server, as the subject of a sentence; "": it is not known here.
        code: the kernel's number of the error, negative if the name of the host has no address; None: not known.
    """

    def __init__(self, layer: Layer, reason: str, remedy: str = "", server: str = "", code: int | None = None) -> None:
        where = {"network": f"{server} does not answer", "this host": f"no connection with {server}"}.get(layer, server)
        super().__init__(f"{where}: {layer}: {reason}" if server else f"{layer}: {reason}")
        self.layer, self.reason, self.remedy, self.errno = layer, reason, remedy, code

    def at(self, server: str) -> AccessError:
        """The same error, which names the server."""
        return AccessError(self.layer, self.reason, self.remedy, server, self.errno)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """The object ``tls`` of a ``system`` object: PEM texts, so agents need no files.

    Attributes:
        ca: the certificates of the CAs that the client trusts; "": those that its machine trusts.
        certificate, key: the client's certificate, with the chain to its CA, and its private key; "": it has none.
    """

    ca: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)

    def context(self) -> ssl.SSLContext:
        """The context of a connection, which checks the server's certificate and host name.

        Raises:
            AccessError: a text is no certificate or key, or the key is not that of the certificate.
        """
        import ssl

        try:
            context = ssl.create_default_context(cadata=self.ca or None)
        except (ssl.SSLError, ValueError):
            raise AccessError("TLS", "the file of CAs has no certificate in PEM", "check --ca-file") from None
        if self.certificate:
            try:
                with in_memory(f"{self.key}\n{self.certificate}") as path:
                    context.load_cert_chain(path, password=b"")
            except ssl.SSLError as e:
                why = "the key is not that of the certificate" if "MISMATCH" in (e.reason or "") else _NO_PAIR
                raise AccessError("TLS", why, "check --cert-file and --key-file") from None
        return context


_NO_PAIR: Final = "certificate and key cannot be read: both must be PEM, and the key without a password"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The object ``tls`` of a server's ``join``: its certificate and its private key, as PEM texts."""

    certificate: str
    key: str = field(repr=False)

    def write(self, folder: Path) -> tuple[str, str]:
        """Writes both texts to files that only this user can read; returns the paths, the certificate first."""
        paths = folder / "server-certificate.pem", folder / "server-key.pem"
        for path, text in zip(paths, (self.certificate, self.key), strict=True):
            path.touch(mode=0o600)
            path.write_text(text)
        return str(paths[0]), str(paths[1])


@contextlib.contextmanager
def in_memory(text: str) -> Iterator[str]:
    """A path at which this process can read the text in its block, for libraries that take files; nothing is stored."""
    file = os.memfd_create("hydra-tls", os.MFD_CLOEXEC)
    try:
        os.write(file, text.encode())
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)


# --- why a connection failed ------------------------------------------------------------------------------------------

_UNKNOWN_CA: Final = (
    "unknown CA: none of the CAs that clients trust has signed the server's certificate",
    "name the file of its CA with --ca-file",
)
_VERIFICATION: Final = {
    **dict.fromkeys((2, 18, 19, 20, 21), _UNKNOWN_CA),
    9: ("the server's certificate is not valid yet", "compare the clocks of both machines"),
    10: ("the server's certificate has expired", "renew it"),
}
"""Reason and remedy by OpenSSL's code for an invalid certificate (X509_V_ERR_…)."""
_WRONG_HOST: Final = (62, 64)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_OF_CLIENT: Final = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")
"""Parts of the names of a server's alerts about the client's certificate, or about its absence."""
_ALERT_WITHIN_S: Final = 0.25


def access_error(error: OSError, host: str, tls: ClientTls | None) -> AccessError:
    """The reason of a connection's failure, from an exception of a socket or of TLS.

    Args:
        error: the exception.
        host: the server's host, as the client knows it.
        tls: what the client uses; None: it uses no TLS.
    """
    import ssl

    if isinstance(error, AccessError):
        return error
    if name := local_limit(error):
        limit = LOCAL_LIMITS[name]
        return AccessError("this host", f"{limit.what} ({name})", limit.remedy, code=getattr(errno, name))
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_HOST:
            reason = f"wrong host name: the server's certificate is not for {host}"
            return AccessError("TLS", reason, "name the server as its certificate does")
        other = (f"the server's certificate is invalid: {error.verify_message}", "")
        return AccessError("TLS", *_VERIFICATION.get(error.verify_code, other))
    if isinstance(error, ssl.SSLError) or (tls and isinstance(error, ConnectionResetError | BrokenPipeError)):
        return _of_handshake(getattr(error, "reason", None) or "", tls)
    if isinstance(error, TimeoutError):
        return AccessError("network", "no answer in time")
    code = error.errno or 0  # those of getaddrinfo are negative
    reason = os.strerror(code) if code > 0 else error.strerror or str(error)
    return AccessError("network", reason, code=code or None)


def _of_handshake(name: str, tls: ClientTls | None) -> AccessError:
    """The error of a handshake that failed with OpenSSL's reason of this name; "": the connection ended."""
    if any(part in name for part in _NO_TLS):
        return AccessError("TLS", "the server does not use TLS at this port", "leave out TLS, or name another port")
    if tls is not None and "ALERT" in name and any(part in name for part in _OF_CLIENT):
        return certificate_error(tls, name.rpartition("ALERT_")[2].replace("_", " ").lower())
    if not name or "EOF" in name:
        return AccessError("TLS", "the server ended the handshake", "check that it uses TLS at this port")
    return AccessError("TLS", name.replace("_", " ").lower())


def certificate_error(tls: ClientTls, why: str = "") -> AccessError:
    """The error if the server ended the connection because of the client's certificate."""
    if not tls.certificate:
        remedy = "name yours with --cert-file and --key-file"
        return AccessError("TLS", "the server requires a client certificate", remedy)
    because = f": {why}" if why else ""
    return AccessError("TLS", f"the server rejects the client certificate{because}", "check --cert-file")


def password_error(username: str, password: str) -> AccessError:
    """The error of a client whose user name and password a server rejects; "" is not given."""
    if not username:
        remedy = "add --username and --password-file"
        return AccessError("login", "the server demands a login, and none is given", remedy)
    if not password:
        return AccessError("login", "the server demands a password, and none is given", "add --password-file")
    return AccessError("login", "the server rejects this user or password", "check --username and --password-file")


def secured(connection: socket.socket, host: str, tls: ClientTls) -> ssl.SSLSocket:
    """The connection with TLS, after the handshake; it is for servers that send nothing before their client does.

    A server with TLS 1.3 rejects a client certificate after the client's part of the handshake. So this function waits
    for an alert, before the caller sends anything.

    Raises:
        AccessError: the server does not let the client in; the connection is closed.
    """
    context, timeout = tls.context(), connection.gettimeout()
    try:
        secure = context.wrap_socket(connection, server_hostname=host)
    except OSError as e:
        connection.close()
        raise access_error(e, host, tls) from None
    if secure.version() == "TLSv1.3":
        secure.settimeout(_ALERT_WITHIN_S)
        try:
            secure.read(1)
        except TimeoutError:
            pass
        except OSError as e:
            secure.close()
            ended = isinstance(e, ConnectionError)
            raise (certificate_error(tls) if ended else access_error(e, host, tls)) from None
        else:  # the server closed the connection
            secure.close()
            raise certificate_error(tls)
    secure.settimeout(timeout)
    return secure


def speaks_tls(connection: socket.socket) -> bool:
    """Whether a server answers a TLS handshake, with whatever certificate; closes the connection."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_socket(connection).close()
    except OSError as e:
        connection.close()
        return "ALERT" in (getattr(e, "reason", None) or "")
    return True
