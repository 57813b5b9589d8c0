"""Agents, and the groups that are placed on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hydra.model.base import require, setting

Operator = Literal["UNIQUE", "CLUSTER", "GROUP_BY", "LIKE", "UNLIKE", "MAX_PER"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One of Marathon's placement constraints on an attribute or on ``hostname``; ``value`` as its operator needs."""

    field: str
    operator: Operator
    value: str = ""


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of an agent's resources: CPUs, memory and disk in MB, and port ranges (first, last included)."""

    cpus: float = 0.0
    mem: float = 0.0
    disk: float = 0.0
    ports: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A host that runs processes, with the resources that are free on it now.

    ``netns``: the network namespace of this machine in which its processes run, "" for the machine's own.
    """

    id: str
    hostname: str
    attributes: Mapping[str, str]
    resources: Resources
    netns: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a group needs: ``base`` once and ``per_client`` for each client; ``ports`` is a number of ports."""

    base_cpus: float = setting(0.0, least=0, most=1e6)
    base_mem: float = setting(0.0, least=0, most=1e12)
    cpus_per_client: float = setting(0.0, least=0, most=1e6)
    mem_per_client: float = setting(0.0, least=0, most=1e12)
    ports: int = setting(0, least=0, most=65_535)


@dataclass(frozen=True, slots=True)
class Group:
    """What the scheduler launches on an agent: one task whose parent process forks ``count`` clients of one kind.

    ``role`` is the name under which constraints count ("publisher", "subscriber", "server"). ``command`` is the
    program with its arguments, ``environment`` what it needs to dial in (it may hold the run's key; it is never
    logged).
    """

    id: str
    role: str
    first_client: int
    count: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    demand: Demand
    constraints: tuple[Constraint, ...] = ()


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

    ``detail`` is for the user (exit status, the end of its stderr). ``agent`` of ``running`` is where it really is.
    ``refused``: the cluster would not have it, and to ask again at once would not help.
    """

    group: str
    state: GroupState
    agent: str
    detail: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster that ``conf/hydra.toml`` declares.

    ``agents`` belong to the embedded engine; for others there may be none. ``max_group`` bounds the clients of one
    group, unless one process has more; ``fork_window`` how many forked clients of a group may be unanswered at a time;
    ``respawns`` how often one client is replaced.
    """

    agents: tuple[Agent, ...]
    max_group: int = setting(1000, least=1, most=1_000_000)
    fork_window: int = setting(128, least=1, most=1_000_000)
    respawns: int = setting(3, least=0, most=1_000_000)

    def __post_init__(self) -> None:
        ids = [a.id for a in self.agents]
        require(len(set(ids)) == len(ids), f"two agents have the same id: {sorted(ids)}")
        require(self.max_group >= 1, f"max_group must be at least 1, not {self.max_group}")
        require(self.fork_window >= 1, f"fork_window must be at least 1, not {self.fork_window}")
        require(self.respawns >= 0, f"respawns must be 0 or more, not {self.respawns}")

    def most_in_group(self, packed: int) -> int:
        """The most subscribers of one group, where so many are in a process: that is never cut."""
        return max(self.max_group, packed)
