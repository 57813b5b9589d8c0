"""How Hydra introduces itself to a Mesos master."""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.model.base import require


@dataclass(frozen=True, slots=True)
class MesosSpec:
    """How Hydra introduces itself to a Mesos master; it is never stored with a run, as it may hold a secret.

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
        require(bool(self.name) and "/" not in self.name, f"name must be a word without a slash, not {self.name!r}")
        require(bool(self.role), "role must not be empty: * is the default role")
        require(self.failover_timeout_s >= 0, f"failover_timeout_s must be 0 or more, not {self.failover_timeout_s}")
        require(not self.secret or bool(self.principal), "secret needs a principal")
