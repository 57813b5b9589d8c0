"""The settings with which a system's table declares TLS and a login, which are the same in all systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hydra.model.base import ADDRESS, Need, Setting, setting
from hydra.model.bounds import Bounded

USER_SERVERS: Final = Need(ADDRESS)
"""The need of a setting for the user's servers."""
OWN_SERVERS: Final = Need(ADDRESS, ("",))
"""The need of a setting for servers started by Hydra."""


def user_file(text: str, *partners: str) -> Any:
    """A file of the user.

    Args:
        text: the text of its flag.
        partners: the fields of the table without which the file has no effect.
    """
    return setting("", text, unit="path", needs=_needs(partners))


def secret(*partners: str) -> Any:
    """A secret text, which has no flag and is never shown; ``partners`` as for :func:`user_file`."""
    return field(default="", repr=False, metadata=Setting(needs=_needs(partners)).metadata)


def _needs(partners: Sequence[str]) -> Sequence[Need]:
    return (USER_SERVERS, *(Need(f".{name}") for name in partners))


@dataclass(frozen=True, slots=True)
class TlsTable(Bounded):
    """A system's table: whether servers started by Hydra use TLS."""

    tls: bool = setting(False, "Use TLS between clients and servers started by Hydra.", needs=(OWN_SERVERS,))


@dataclass(frozen=True, slots=True)
class AccessTable(TlsTable):
    """A system's table: how the user's servers let clients in; the classes of the tables describe each field."""

    ca_file: str = user_file("File with the certificates of the CAs that clients trust (PEM).")
    cert_file: str = user_file("File with the clients' certificate (PEM).")
    key_file: str = user_file("File with the private key of --cert-file (PEM).", "cert_file")
    username: str = setting("", "User name for your server.", needs=(USER_SERVERS,))
    password: str = secret("username")
    password_file: str = user_file("File whose first line is the password.", "username")
