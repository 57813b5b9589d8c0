"""How long placement takes: 2,000 groups over 500 agents, for each kind of constraint. The aim is ≤ 0.5 s each.

Run: python bench/placement.py
"""

from __future__ import annotations

import time

from hydra.engine.group_sizing import split
from hydra.engine.placement import place
from hydra.model import Agent, Constraint, Demand, Group, Resources, RoleSpec

AGENTS = 500
GROUPS = 2000
AIM_S = 0.5

CASES: dict[str, tuple[tuple[Constraint, ...], float]] = {
    "CLUSTER": ((Constraint("group", "CLUSTER", "large"),), 0.1),
    "LIKE and MAX_PER": ((Constraint("rack", "LIKE", r"r\d+"), Constraint("hostname", "MAX_PER", "5")), 0.1),
    "GROUP_BY rack": ((Constraint("rack", "GROUP_BY"),), 0.1),
    "GROUP_BY hostname": ((Constraint("hostname", "GROUP_BY"),), 0.1),
    "UNIQUE, three quarters cannot": ((Constraint("hostname", "UNIQUE"),), 0.1),
    "cluster full, half cannot": ((), 8.0),
}


def main() -> None:
    agents = [
        Agent(
            id=f"agent-{n:03}",
            hostname=f"host-{n:03}",
            attributes={"group": "large", "rack": f"r{n % 20}"},
            resources=Resources(cpus=16.0, mem=60_000.0, ports=((31000, 32000),)),
        )
        for n in range(AGENTS)
    ]
    for name, (constraints, cpus) in CASES.items():
        groups = [
            Group(
                id=f"g{n}",
                role="subscriber",
                first_client=0,
                count=30 + n % 2,
                command=("true",),
                environment={},
                demand=Demand(base_cpus=cpus, base_mem=64.0, mem_per_client=16.0, ports=1),
                constraints=constraints,
            )
            for n in range(GROUPS)
        ]
        start = time.perf_counter()
        launches, unplaced = place(agents, groups)
        took_s = time.perf_counter() - start
        verdict = "good" if took_s <= AIM_S else "TOO SLOW"
        print(f"{name:32} {took_s:6.3f} s  {len(launches):5} placed {len(unplaced):5} not  {verdict}")
    start = time.perf_counter()
    sizes = split(100_000, agents, RoleSpec(demand=Demand(base_cpus=0.1, mem_per_client=16.0)), 100)
    print(f"{'split 100,000 clients':32} {time.perf_counter() - start:6.3f} s  {len(sizes):5} groups")


if __name__ == "__main__":
    main()
