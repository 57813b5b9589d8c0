"""How long placement takes: 2,000 groups on 500 agents, for each kind of constraint."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from hydra.engine.placement import place
from hydra.model import Agent, Constraint, Demand, Group, Resources

AGENTS: Final = 500
GROUPS: Final = 2000

CASES: Final[Mapping[str, tuple[Sequence[Constraint], float]]] = {
    "CLUSTER": ((Constraint("group", "CLUSTER", "large"),), 0.1),
    "LIKE and MAX_PER": ((Constraint("rack", "LIKE", r"r\d+"), Constraint("hostname", "MAX_PER", "5")), 0.1),
    "GROUP_BY rack": ((Constraint("rack", "GROUP_BY"),), 0.1),
    "GROUP_BY hostname": ((Constraint("hostname", "GROUP_BY"),), 0.1),
    "UNIQUE, three quarters cannot be placed": ((Constraint("hostname", "UNIQUE"),), 0.1),
    "no constraint, half cannot be placed": ((), 8.0),
}
"""Constraints of all groups, and the CPUs that each requests."""


def placed(case: str) -> float:
    """Seconds until all groups of a case are placed or refused."""
    constraints, cpus = CASES[case]
    agents = [
        Agent(
            id=f"agent-{n:03}",
            hostname=f"host-{n:03}",
            attributes={"group": "large", "rack": f"r{n % 20}"},
            resources=Resources(cpus=16.0, mem=60_000.0, ports=((31000, 32000),)),
        )
        for n in range(AGENTS)
    ]
    groups = [
        Group(
            id=f"g{n}",
            role="subscriber",
            first_client=0,
            count=30 + n % 2,
            command=("true",),
            environment={},
            demand=Demand(base_cpus=cpus, base_mem=64.0, mem_per_client=16.0, ports=1),
            constraints=tuple(constraints),
        )
        for n in range(GROUPS)
    ]
    began = time.perf_counter()
    place(agents, groups)
    return time.perf_counter() - began
