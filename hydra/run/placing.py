"""What placement makes of a scenario before anything is launched: which roles could run where, which rows fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hydra.cluster.constraints import permits
from hydra.cluster.rehearsal import Wanted, rehearse
from hydra.cluster.resources import fits, need_of
from hydra.errors import PlacementError
from hydra.model import Agent, ClusterSpec, RoleSpec, Scenario
from hydra.run.servers import required

Size = tuple[int, int]
"""Publishers and subscribers."""

_TAKEN: Final = ("groups", "on agents", "cpus", "memory (GB)")
"""Headings of what a row takes."""


def roles_on(agent: Agent, scenario: Scenario) -> list[str]:
    """Which of a scenario's roles could run on the agent as it is now: their constraints, and one client's need."""
    specs: dict[str, RoleSpec] = {"publisher": scenario.publisher, "subscriber": scenario.subscriber}
    if servers := required(scenario, is_local=False):
        specs["server"] = servers
    return [
        role
        for role, spec in specs.items()
        if all(permits(c, agent, {}) for c in spec.constraints) and fits(need_of(spec.demand, 1), agent.resources)
    ]


def check_placement(scenario: Scenario, cluster: ClusterSpec, agents: Iterable[Agent], *, is_local: bool) -> None:
    """Refuses a scenario of which not even the smallest step fits on the cluster.

    Raises:
        PlacementError: the text names the role and the constraint or resource.
    """
    publishers, subscribers = (min(counts) for counts in zip(*scenario.sizes, strict=True))
    rehearse(agents, _stages(scenario, cluster, [(publishers, subscribers)], is_local=is_local))


def rows_on(
    scenario: Scenario, cluster: ClusterSpec, agents: Sequence[Agent]
) -> tuple[list[dict[str, object]], list[str]]:
    """What each row of a scenario takes of a cluster elsewhere, for a table; and a line for each that does not fit.

    The groups of a row are those of a run that has measured every smaller row before: it launches what is missing, and
    so has more groups than one that begins with this row.
    """
    rows: list[dict[str, object]] = []
    refused: list[str] = []
    for publishers, clients in scenario.sizes:
        smaller = [each for each in scenario.sizes if each[0] <= publishers and each[1] <= clients]
        row: dict[str, object] = {"clients": clients, "publishers": publishers}
        try:
            launches = rehearse(agents, _stages(scenario, cluster, smaller, is_local=False))
        except PlacementError as e:
            row |= dict.fromkeys(_TAKEN, "") | {"fits": "no"}
            refused.append(f"{clients} clients: {e}")
        else:
            needs = [need_of(launch.group.demand, launch.group.count) for launch in launches]
            on = {launch.agent.id for launch in launches}
            memory = sum(need.mem for need in needs) / 1000
            taken = (len(launches), len(on), sum(need.cpus for need in needs), memory)
            row |= dict(zip(_TAKEN, taken, strict=True)) | {"fits": "yes"}
        rows.append(row)
    return rows, refused


def _stages(scenario: Scenario, cluster: ClusterSpec, sizes: Iterable[Size], *, is_local: bool) -> Iterator[Wanted]:
    """What a run launches that grows from size to size, in its order."""
    if servers := required(scenario, is_local=is_local):
        yield Wanted("server", servers.count, servers, 1)
    most = cluster.most_in_group(scenario.native.clients_per_process)
    for publishers, subscribers in sizes:
        yield Wanted("publisher", publishers, scenario.publisher, cluster.max_group)
        yield Wanted("subscriber", subscribers, scenario.subscriber, most)
