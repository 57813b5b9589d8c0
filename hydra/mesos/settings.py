"""How Hydra introduces itself to a Mesos master: the table [mesos] of the cluster file."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MesosSettings:
    """Never stored with a run, as it may hold a secret.

    Attributes:
        name: of the framework, before the run's name.
        user: as whom tasks run; "" is the user who runs hydra.
        role: whose resources are asked for.
        principal, secret: who we are to a master that asks.
        failover_timeout_s: how long the master keeps the framework and its tasks when it hears nothing.
        advertise: this machine's address as agents reach it; "" is the one that routes to the master.
        artifact: the URL of a copy of the agents' archive that somebody else serves; "" serves it here.
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
        """What the framework of a run is called; ``hydra ps`` and ``hydra kill`` find it by that."""
        return f"{self.name}/{run}"
