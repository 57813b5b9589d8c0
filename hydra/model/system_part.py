"""The part of a scenario that belongs to its system: objects of the system's classes, in tables that systems share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol, Self

from hydra.model.base import ADDRESS, Bounded, Need, Setting, SettingValue, setting


class _Table(Protocol):
    @property
    def system(self) -> SystemPart: ...


class SystemPart(Bounded):
    """The base of a system's own part of a table: a frozen dataclass of figures, each with a default."""

    __slots__ = ()

    @classmethod
    def of(cls, table: _Table) -> Self:
        """The part of this class in a table; its defaults if the table was made without a system's part.

        Raises:
            TypeError: the table belongs to another system.
        """
        if isinstance(own := table.system, cls):
            return own
        if isinstance(own, NoSystemSettings | NoOptions):
            return cls()
        raise TypeError(f"{cls.__name__} of a table with {type(own).__name__}")

    def values(self) -> dict[str, SettingValue]:
        """All values by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class SystemSettings(SystemPart):
    """The base of a system's own settings, which can change between two steps."""

    __slots__ = ()


class SystemOptions(SystemPart):
    """The base of a system's own options of native clients."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NoSystemSettings(SystemSettings):
    """The settings of a system that has none of its own."""


@dataclass(frozen=True, slots=True)
class NoOptions(SystemOptions):
    """The options of a system that has none of its own."""


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
