"""The table ``[mesos]`` of the cluster file."""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.model import Bounded, setting
from hydra.model.base import require


@dataclass(frozen=True, slots=True)
class MesosSettings(Bounded):
    """The table's keys, never stored with a run, as they may contain a secret.

    Attributes:
        name: the part of the framework's name before the run's name.
        user: the user as whom tasks run; "" is the user who runs hydra.
        role: the role whose resources the framework requests.
        principal, secret: the credentials for a master that demands them.
        failover_timeout_s: how long the master keeps the framework and its tasks without a connection, in s.
        advertise: the address at which agents reach this machine; "" is the address that routes to the master.
        artifact: the URL of a copy of the agents' archive on another server; "" has the controller serve it.
    """

    name: str = "hydra"
    user: str = ""
    role: str = "*"
    principal: str = ""
    secret: str = field(default="", repr=False)
    failover_timeout_s: float = setting(120.0, least=0, most=1e9)
    advertise: str = ""
    artifact: str = ""

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        is_word = self.name != "" and "/" not in self.name
        require(is_word, f"must be a word without a slash, not {self.name!r}", "name")
        require(self.role != "", "must not be empty: * is the default role", "role")
        require(not self.secret or self.principal != "", "needs a principal", "secret")

    def framework(self, run: str) -> str:
        """The name of a run's framework, by which ``hydra ps`` and ``hydra kill`` find it."""
        return f"{self.name}/{run}"
