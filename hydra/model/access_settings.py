"""The settings with which a system's table declares TLS and a login."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.model.base import Need, Setting, setting


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Makes the fields of the table of one system, so their flags have the same names and texts in all systems.

    Attributes:
        table: the name of the table.
        address: the name of its field with the address of the user's servers.
    """

    table: str
    address: str

    @property
    def user_servers(self) -> Need:
        """The need of a setting for the user's servers."""
        return Need(f"{self.table}.{self.address}")

    @property
    def own(self) -> Need:
        """The need of a setting for servers started by Hydra."""
        return Need(self.user_servers.key, ("",))

    def tls(self) -> Any:
        """``tls``: whether servers started by Hydra use TLS."""
        return setting(False, "Use TLS between clients and servers started by Hydra.", needs=(self.own,))

    def ca_file(self) -> Any:
        """``ca_file``: the CAs that clients trust."""
        return self.file("File with the certificates of the CAs that clients trust (PEM).")

    def cert_file(self) -> Any:
        """``cert_file``: the certificate that clients show."""
        return self.file("File with the clients' certificate (PEM).")

    def key_file(self) -> Any:
        """``key_file``: the private key of ``cert_file``."""
        return self.file("File with the private key of --cert-file (PEM).", "cert_file")

    def username(self) -> Any:
        """``username``: the user name."""
        return setting("", "User name for your server.", needs=(self.user_servers,))

    def password(self) -> Any:
        """``password``: the password, which has no flag."""
        return self.secret("username")

    def secret(self, partner: str = "") -> Any:
        """A secret text, which has no flag and is never shown; ``partner`` as for :meth:`file`."""
        return field(default="", repr=False, metadata=Setting(needs=self._needs(partner)).metadata)

    def password_file(self) -> Any:
        """``password_file``: a file whose first line is the password."""
        return self.file("File whose first line is the password.", "username")

    def file(self, text: str, partner: str = "", **more: Any) -> Any:
        """A file of the user.

        Args:
            text: the text of its flag.
            partner: the field of the table without which the file has no effect; "": there is none.
            more: further metadata of the setting.
        """
        return setting("", text, unit="path", needs=self._needs(partner), **more)

    def _needs(self, name: str) -> Sequence[Need]:
        return (self.user_servers, Need(f"{self.table}.{name}")) if name else (self.user_servers,)
