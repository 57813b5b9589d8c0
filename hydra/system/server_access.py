"""Addresses of the user's servers as users write them, and the files with which clients are let in."""

from __future__ import annotations

import contextlib
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Protocol
from urllib.parse import unquote, urlsplit

from hydra.client.linux_process import opened
from hydra.client.server_interface import endpoint_of
from hydra.client.tls import AccessError, ClientTls
from hydra.errors import RefusedKeyError, UsageError

_LARGEST_BYTES: Final = 256 * 1024
"""The largest file of certificates, which travels in a message of the control channel (512 KiB)."""
_MOST_CHARACTERS: Final = 65_535
"""The longest password or token, so a longer line is none."""
_LEAST_LINE: Final = 16
"""The fewest characters of a line of a private key that counts as a secret by itself."""

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


class AddressError(ValueError):
    """A text is no address of a server. ``what`` never contains a password."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


@dataclass(frozen=True, slots=True)
class AddressForm:
    """How the users of one system write an address.

    Attributes:
        ports: the default port of each scheme, 0 if the port must be written; "" is an address without a scheme.
        refused: what is wrong with a scheme that the system's users may expect, and what to write instead.
        example: the remedy for a text that is no address.
    """

    ports: Mapping[str, int]
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    example: str = "write host:port, ports are 1 to 65535"

    def read(self, text: str) -> ServerAddress:
        """The address ``SCHEME://USER:PASSWORD@HOST:PORT/PATH``, of which only the host is needed.

        Raises:
            AddressError: the text is no such address.
        """
        if not text.strip():
            raise AddressError("an address is empty", self.example)
        login, at, place = text.rpartition("@")
        hidden = (
            f"{login.partition('://')[0]}://***@{place}" if "://" in login else f"***@{place}" if at else _shown(text)
        )
        scheme = text.partition("://")[0].lower() if "://" in text else ""
        if scheme in self.refused:
            raise AddressError(*self.refused[scheme])
        if scheme not in self.ports:
            known = " or ".join(f"{name}://" for name in self.ports if name)
            what = f"{reprlib.repr(hidden)} begins with an unknown scheme"
            raise AddressError(what, f"write {known}" if known else self.example)
        if "," in place:
            raise AddressError(f"{reprlib.repr(hidden)} has several addresses", "name one server")
        if at and not scheme:
            named = next((name for name in self.ports if name), "")
            remedy = f"begin it with {named}://" if named else self.example
            raise AddressError(f"{reprlib.repr(hidden)} is no address", remedy)
        try:
            parts = urlsplit(text if scheme else f"//{text}")
            port = self.ports[scheme] if parts.port is None else parts.port
            plain = text.isprintable() and " " not in text and not parts.query and not parts.fragment
            host = parts.hostname or ""
            host.encode("idna")
            fine = plain and not host.isdigit() and host != "" and 0 < port < 1 << 16 and parts.netloc[-1] != ":"
        except ValueError:  # the port is no number up to 65535, brackets do not match, or this is no name of a host
            fine = False
        if not fine or (parts.path.strip("/") and not scheme.startswith("ws")):
            encoded = "; write special characters of a password as in a URL: %2F for /" if at else ""
            brackets = "; write an address of IPv6 in brackets: [::1]:PORT" if place.count(":") > 1 else ""
            raise AddressError(f"{reprlib.repr(hidden)} is no address", self.example + brackets + encoded)
        password = None if parts.password is None else unquote(parts.password)
        return ServerAddress(scheme, str(parts.hostname), port, unquote(parts.username or ""), password, parts.path)


def _shown(text: str) -> str:
    """A text that is no address; in a URL, what is behind the colon and is no port may be a password, and is hidden."""
    scheme, mark, place = text.rpartition("://")
    host, _, rest = place.partition(":")
    fine = not mark or host.startswith("[") or not rest or rest.partition("/")[0].isdigit()
    return text if fine else f"{scheme}{mark}{host}:***"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One address of a server.

    ``scheme`` is "" if none is written, ``username`` "" and ``password`` None likewise. ``path`` is that of a URL.
    """

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str | None = field(default=None, repr=False)
    path: str = ""

    @property
    def endpoint(self) -> str:
        """``host:port``, with the host in brackets if it is an address of IPv6."""
        return endpoint_of(self.host, [self.port])


class Access(Protocol):
    """The fields of a system's table with the files for TLS (``hydra.model.AccessTable``)."""

    @property
    def ca_file(self) -> str:
        """The certificates of the CAs that clients trust."""

    @property
    def cert_file(self) -> str:
        """The certificate that clients show."""

    @property
    def key_file(self) -> str:
        """The private key of ``cert_file``; "": it is in that file."""


def client_tls(table: str, access: Access) -> ClientTls:
    """What clients trust and show, read from the user's files.

    Args:
        table: the name of the system's table.
        access: the table.

    Raises:
        RefusedKeyError: a file cannot be read.
        UsageError: a file has no certificate or key, or the key is not that of the certificate.
    """
    texts = {
        name: file_text(f"{table}.{key}", path)
        for name, key in (("ca", "ca_file"), ("certificate", "cert_file"), ("key", "key_file"))
        if (path := getattr(access, key))
    }
    if "ca" in texts:
        # What stands between the certificates may be comments in any language.
        texts["ca"] = "".join(f"{found}\n" for found in _CERTIFICATE.findall(texts["ca"]))
        if not texts["ca"]:
            raise UsageError(f"{access.ca_file} has no certificate in PEM", "check --ca-file")
    # One file may hold both.
    tls = ClientTls(**{"key": texts.get("certificate", ""), **texts})
    try:
        tls.context()
    except AccessError as e:
        raise UsageError(e.reason, e.remedy) from e
    return tls


def first_line(key: str, path: str) -> str:
    """The first line of a file that a setting names, which is a password or a token.

    Raises:
        RefusedKeyError: the file cannot be read, or its first line is too long.
    """

    def read(file: BinaryIO) -> bytes:
        line = file.readline(_MOST_CHARACTERS + 1).removesuffix(b"\n")
        if len(line) > _MOST_CHARACTERS:
            raise ValueError(f"its first line has more than {_MOST_CHARACTERS} characters")
        return line.removesuffix(b"\r")

    return _text(key, path, read)


def file_text(key: str, path: str) -> str:
    """The text of a small file that a setting names.

    Raises:
        RefusedKeyError: the file cannot be read, or is too large.
    """

    def read(file: BinaryIO) -> bytes:
        data = file.read(_LARGEST_BYTES + 1)
        if len(data) > _LARGEST_BYTES:
            raise ValueError(f"it has more than {_LARGEST_BYTES // 1024} KiB")
        return data

    return _text(key, path, read)


def _text(key: str, path: str, read: Callable[[BinaryIO], bytes]) -> str:
    try:
        with opened(path) as file:
            return read(file).decode()
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is not UTF-8" if isinstance(e, UnicodeDecodeError) else e
        raise RefusedKeyError("", key, f"{path} cannot be read: {why}", "name another") from e


def key_secrets(table: str, access: Access) -> Iterator[str]:
    """The private key of clients and parts of it, if its file can be read; arguments as of :func:`client_tls`."""
    name = "key_file" if access.key_file else "cert_file"
    if path := getattr(access, name):
        with contextlib.suppress(RefusedKeyError):  # the error is reported when the run begins
            for key in _PRIVATE_KEY.findall(file_text(f"{table}.{name}", path)):
                yield from secret_lines(key)


def secret_lines(text: str) -> Iterator[str]:
    """The text of a private key and its long lines, each of which is a secret by itself."""
    yield text
    yield from (line for line in text.splitlines() if len(line) >= _LEAST_LINE and not line.startswith("-----"))
