"""What placement makes of a scenario before anything is launched: which roles could run where, which rows fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.engine.group_sizing import RoleDemand, dry_run
from hydra.engine.placement import permits
from hydra.engine.resources import fits, need_of
from hydra.errors import PlacementError
from hydra.model import Agent, ClusterSpec, RoleSpec
from hydra.run.deployed_servers import required

Size = tuple[int, int]
"""Publishers and subscribers."""


@dataclass(frozen=True, slots=True)
class RowPlacement:
    """One size of a scenario's deployment on a cluster elsewhere.

    Attributes:
        publishers, clients: of the row.
        groups: how many run then; None: it cannot be placed, and the figures below are None, too.
        on_agents: on how many agents.
        cpus: what they take.
        memory_mb: likewise.
        refusal: why it cannot be placed.
    """

    publishers: int
    clients: int
    groups: int | None = None
    on_agents: int | None = None
    cpus: float | None = None
    memory_mb: float | None = None
    refusal: PlacementError | None = None

    @property
    def fits(self) -> bool:
        """Whether it can be placed."""
        return self.refusal is None


def roles_on(agent: Agent, resolved: ResolvedScenario) -> list[str]:
    """Which of a scenario's roles could run on the agent as it is now: their constraints, and one client's need."""
    scenario = resolved.scenario
    specs: dict[str, RoleSpec] = {"publisher": scenario.publisher, "subscriber": scenario.subscriber}
    if servers := required(resolved, is_local=False):
        specs["server"] = servers
    return [
        role
        for role, spec in specs.items()
        if all(permits(c, agent, {}) for c in spec.constraints) and fits(need_of(spec.demand, 1), agent.resources)
    ]


def check_placement(
    resolved: ResolvedScenario, cluster: ClusterSpec, agents: Iterable[Agent], *, is_local: bool
) -> None:
    """Refuses a scenario of which not even the smallest step fits on the cluster.

    Raises:
        PlacementError: the text names the role and the constraint or resource.
    """
    publishers, subscribers = (min(counts) for counts in zip(*resolved.scenario.sizes, strict=True))
    dry_run(agents, _stages(resolved, cluster, [(publishers, subscribers)], is_local=is_local))


def rows_on(resolved: ResolvedScenario, cluster: ClusterSpec, agents: Sequence[Agent]) -> list[RowPlacement]:
    """What each row of a scenario takes of a cluster elsewhere, or why it cannot be placed.

    The groups of a row are those of a run that has measured every smaller row before: it launches what is missing, and
    so has more groups than one that begins with this row.
    """
    rows: list[RowPlacement] = []
    sizes = resolved.scenario.sizes
    for publishers, clients in sizes:
        smaller = [each for each in sizes if each[0] <= publishers and each[1] <= clients]
        try:
            launches = dry_run(agents, _stages(resolved, cluster, smaller, is_local=False))
        except PlacementError as e:
            rows.append(RowPlacement(publishers, clients, refusal=e))
        else:
            needs = [need_of(launch.group.demand, launch.group.count) for launch in launches]
            on = {launch.agent.id for launch in launches}
            cpus, memory = sum(need.cpus for need in needs), sum(need.mem for need in needs)
            rows.append(RowPlacement(publishers, clients, len(launches), len(on), cpus, memory))
    return rows


def placed_line(row: RowPlacement) -> dict[str, object]:
    """A row for a table of what is taken."""
    memory_gb = None if row.memory_mb is None else row.memory_mb / 1000
    taken = {"groups": row.groups, "on agents": row.on_agents, "cpus": row.cpus, "memory (GB)": memory_gb}
    return {
        "clients": row.clients,
        "publishers": row.publishers,
        **{heading: "" if figure is None else figure for heading, figure in taken.items()},
        "fits": "yes" if row.fits else "no",
    }


def _stages(
    resolved: ResolvedScenario, cluster: ClusterSpec, sizes: Iterable[Size], *, is_local: bool
) -> Iterator[RoleDemand]:
    """What a run launches that grows from size to size, in its order."""
    scenario = resolved.scenario
    if servers := required(resolved, is_local=is_local):
        yield RoleDemand("server", servers.count, servers, 1)
    most = cluster.most_in_group(scenario.native.clients_per_process)
    for publishers, subscribers in sizes:
        yield RoleDemand("publisher", publishers, scenario.publisher, cluster.max_group)
        yield RoleDemand("subscriber", subscribers, scenario.subscriber, most)
