"""What the runner needs of a system under test; ``zmqtest`` and ``kafkatest`` each provide one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hydra.control.protocol import KafkaTopic
from hydra.model import Role


@dataclass(frozen=True, slots=True)
class Program:
    """How an agent starts a group of one kind: the group's own flags are appended to ``command``."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


class System(Protocol):
    """A system under test for the length of a run."""

    def check(self) -> None:
        """Looks whether the system could be brought up at all; starts and writes nothing.

        Raises:
            UsageError: a property cannot be used, or a program is missing.
        """

    def open(self, run: str, folder: Path) -> None:
        """Brings up what is needed (a broker, a topic), with its files under ``folder``.

        Raises:
            BrokerError, MissingDependencyError: it cannot.
        """

    def program(self, role: Role) -> Program:
        """The program of a role's clients."""

    def topic(self) -> KafkaTopic | None:
        """Where the next step's data goes, with the offsets at which it starts; None where there are no topics.

        Raises BrokerError if the broker does not tell.
        """

    def end_offsets(self) -> dict[int, int]:
        """The offsets at which this step's data ends, by partition; empty where there are none."""

    def trouble(self) -> str:
        """Why this system can carry no more steps just now, or ""; returns at once."""

    def revive(self) -> None:
        """Tries to end the trouble, by a new broker for instance; raises BrokerError if that is not ours to do."""

    def facts(self) -> dict[str, str]:
        """What to record of it: versions, its configuration, no secrets."""

    def close(self) -> None:
        """Removes all that :meth:`open` made; may be called twice."""
