"""What the runner needs of a system under test; ``zmqtest`` and ``kafkatest`` each provide one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from hydra.control.protocol import KafkaTopic
from hydra.model import Role

Waiting = Callable[[Callable[[], bool], float], bool]
"""Waits until a condition holds, for at most so many seconds, and says whether it does.

A run waits through its controller (``Controller.wait_until``), so that clients are served meanwhile. The condition is
asked often and returns at once.
"""

_LOOK_EVERY_S: Final = 0.005


def wait_alone(condition: Callable[[], bool], timeout_s: float) -> bool:
    """A :data:`Waiting` for whoever has nobody to serve."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


@dataclass(frozen=True, slots=True)
class Program:
    """How an agent starts a group of one kind: the group's own flags are appended to ``command``.

    ``files`` are what it needs beside Hydra's modules, by their name in the package ``hydra``.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)


class Brokers(Protocol):
    """Brokers of our own, wherever they run."""

    version: str
    """Of what they run, once started."""

    def start(self) -> str:
        """Brings them up; returns their address for clients. May be called again after ``stop``.

        Raises:
            BrokerError, MissingDependencyError, PlacementError: they cannot be.
        """

    def trouble(self) -> str:
        """Why they are not all there any more, or ""; returns at once."""

    def stop(self) -> None:
        """Ends them with all their data; may be called twice."""


class System(Protocol):
    """A system under test for the length of a run."""

    def check(self) -> None:
        """Looks whether the system could be brought up at all; starts and writes nothing.

        Raises:
            UsageError: a property cannot be used, or a program is missing.
        """

    def open(self, run: str, folder: Path, wait: Waiting, brokers: Brokers | None = None) -> None:
        """Brings up what is needed (a broker, a topic), with its files under ``folder``.

        Args:
            run: the run's name.
            folder: the run's directory.
            wait: how this and every later call waits for others.
            brokers: those on the cluster's agents, where ``broker`` has named a program for them.

        Raises:
            BrokerError, MissingDependencyError, PlacementError: it cannot.
        """

    def program(self, role: Role) -> Program:
        """The program of a role's clients."""

    def broker(self) -> Program | None:
        """The program of a broker on an agent; None if none are to be there."""

    def topic(self) -> KafkaTopic | None:
        """Where the next step's data goes, with the offsets at which it starts; None where there are no topics.

        Raises:
            StepError: brokers of our own do not tell, and are in trouble from now on.
            BrokerError: the user's do not.
        """

    def end_offsets(self) -> dict[int, int]:
        """The offsets at which this step's data ends, by partition; empty where there are none. Errors as above."""

    def trouble(self) -> str:
        """Why this system can carry no more steps just now, or ""; returns at once."""

    def revive(self) -> None:
        """Tries to end the trouble, by a new broker for instance, or waits for its end.

        Raises:
            BrokerError: it did not end.
        """

    def stored_bytes(self) -> int:
        """What brokers of our own keep of the last steps on this machine's disk: the next ones take its place."""

    def facts(self) -> dict[str, str]:
        """What to record of it: versions, its configuration, no secrets."""

    def warnings(self) -> list[str]:
        """What the user has to know of it and was not told yet; empties the list."""

    def close(self) -> None:
        """Removes all that :meth:`open` made; may be called twice."""
