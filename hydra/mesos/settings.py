"""The table ``[mesos]`` of the cluster file."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MesosSettings:
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
    failover_timeout_s: float = 120.0
    advertise: str = ""
    artifact: str = ""

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise ValueError(f"name must be a word without a slash, not {self.name!r}")
        if not self.role:
            raise ValueError("role must not be empty: * is the default role")
        if self.failover_timeout_s < 0:
            raise ValueError(f"failover_timeout_s must be 0 or more, not {self.failover_timeout_s}")
        if self.secret and not self.principal:
            raise ValueError("secret needs a principal")

    def framework(self, run: str) -> str:
        """The name of a run's framework, by which ``hydra ps`` and ``hydra kill`` find it."""
        return f"{self.name}/{run}"
