"""In what the clients of a run are written, as they say: those of another agent may differ."""

from __future__ import annotations

from typing import cast

from pyroaring import BitMap

from hydra.control.roster import Roster
from hydra.model import Role
from hydra.run.deployment import Deployment
from hydra.store.database import CLIENTS_KEY, RunStore


class Implementations:
    """The implementations and library versions that clients have reported, kept in the run's store."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._said: list[dict[str, object]] = store.meta(CLIENTS_KEY, [])

    def note(self, roster: Roster, deployment: Deployment) -> None:
        """Stores what the clients that are there have said."""
        roles: dict[Role, range] = {"publisher": deployment.publishers, "subscriber": deployment.subscribers}
        for role, clients in roles.items():
            for _, ids in roster.identities(BitMap(clients)):
                hello = roster.hello(ids.min())
                said: dict[str, object] = {
                    "role": role,
                    "implementation": hello.implementation,
                    "versions": hello.versions,
                }
                if said not in self._said:
                    self._said.append(said)
        if self._said != self._store.meta(CLIENTS_KEY):
            self._store.set_meta(CLIENTS_KEY, self._said)

    def languages(self) -> dict[Role, str]:
        """In which language the clients of each role are written."""
        found: dict[Role, str] = {}
        for said in self._said:
            role, versions = cast("Role", said["role"]), cast("dict[str, str]", said["versions"])
            found[role] = "python" if "python" in versions else "native"
        return found
