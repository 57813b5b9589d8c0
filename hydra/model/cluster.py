"""Agents, and the groups that are placed on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hydra.model.base import Bounded, require, setting

Operator = Literal["UNIQUE", "CLUSTER", "GROUP_BY", "LIKE", "UNLIKE", "MAX_PER"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One of Marathon's placement constraints on an attribute or on ``hostname``; the operator defines ``value``."""

    field: str
    operator: Operator
    value: str = ""


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of an agent's resources: CPUs, memory and disk in MiB, and port ranges (first, last included)."""

    cpus: float = 0.0
    mem: float = 0.0
    disk: float = 0.0
    ports: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A host that runs processes, with its free resources.

    ``netns`` is the network namespace of this machine in which its processes run; "" is the machine's own.
    """

    id: str
    hostname: str
    attributes: Mapping[str, str]
    resources: Resources
    netns: str = ""


@dataclass(frozen=True, slots=True)
class Demand(Bounded):
    """What a group needs: ``base`` once and ``per_client`` for each client; ``ports`` is a number of ports."""

    base_cpus: float = setting(0.0, least=0, most=1e6)
    base_mem: float = setting(0.0, least=0, most=1e12)
    cpus_per_client: float = setting(0.0, least=0, most=1e6)
    mem_per_client: float = setting(0.0, least=0, most=1e12)
    ports: int = setting(0, least=0, most=65_535)


@dataclass(frozen=True, slots=True)
class Group:
    """A process group: one task on an agent, whose parent process forks ``count`` clients of one kind.

    ``role`` is the name that constraints use ("publisher", "subscriber", "server"). ``command`` is the program with its
    arguments. ``environment`` is what the program needs to connect; it may hold the run's key, and is never logged.
    ``files`` is the most files that one of its processes opens; 0: not known.
    """

    id: str
    role: str
    first_client: int
    count: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    demand: Demand
    constraints: tuple[Constraint, ...] = ()
    files: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """A group placed on an agent, with the ports it may bind."""

    group: Group
    agent: Agent
    ports: tuple[int, ...] = ()


GroupState = Literal["starting", "running", "finished", "failed", "killed", "lost"]


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """A change of a launched group's state.

    ``detail`` is a text for the user (exit status, the end of stderr). With ``running``, ``agent`` is the actual agent.
    ``refused`` is whether the cluster rejected the group, so another request at once would not help.
    """

    group: str
    state: GroupState
    agent: str
    detail: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class ClusterSpec(Bounded):
    """The cluster that ``conf/hydra.toml`` declares.

    ``agents`` are those of the local engine; with other engines there may be none. ``max_group`` is the maximum number
    of clients of one group, unless one process has more. ``fork_window`` is the maximum number of forked clients of a
    group that have not connected yet. ``respawns`` is how often one client may be replaced.
    """

    agents: tuple[Agent, ...]
    max_group: int = setting(1000, least=1, most=1_000_000)
    fork_window: int = setting(128, least=1, most=1_000_000)
    respawns: int = setting(3, least=0, most=1_000_000)

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        ids = [a.id for a in self.agents]
        require(len(set(ids)) == len(ids), f"two agents have the same id: {sorted(ids)}")

    def most_in_group(self, packed: int) -> int:
        """The maximum number of subscribers of a group, with ``packed`` per process; a process is never split."""
        return max(self.max_group, packed)
