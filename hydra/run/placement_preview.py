"""The placement of a scenario before anything is launched: the agents for each role, and the rows that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.shortages import MachineLimits, check_row
from hydra.engine.group_sizing import RoleDemand, dry_run
from hydra.engine.placement import HOSTNAMES, permits
from hydra.engine.resources import fits, need_of
from hydra.errors import PlacementError
from hydra.events.run_events import ConstraintsLeftOut
from hydra.model import Agent, ClusterSpec, RoleSpec

Size = tuple[int, int]
"""The numbers of publishers and of subscribers."""


@dataclass(frozen=True, slots=True)
class RowPlacement:
    """One size of a scenario's deployment on the agents of another cluster.

    Attributes:
        publishers, clients: the numbers of publishers and subscribers of the row.
        groups: the number of groups; None: the row cannot be placed, and the three figures below are None, too.
        on_agents: the number of agents with groups.
        cpus: the CPUs that the groups need.
        memory_mb: the memory that the groups need, in MB.
        refusal: why the row cannot be placed; None: it can.
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
        """Whether the row can be placed."""
        return self.refusal is None


def without_unknown(
    resolved: ResolvedScenario, agents: Iterable[Agent]
) -> tuple[ResolvedScenario, ConstraintsLeftOut | None]:
    """The scenario without default constraints on attributes that no agent has, and the event about these attributes.

    So a shipped scenario runs on hosts that have no attributes. The user's own constraints are kept.
    """
    known = {*HOSTNAMES, *(name for agent in agents for name in agent.attributes)}
    unknown, kept = dict[str, None](), dict[str, Any]()
    for role in sorted(resolved.default_constraints):
        spec: RoleSpec = getattr(resolved.scenario, role)
        unknown |= dict.fromkeys(c.field for c in spec.constraints if c.field not in known)
        kept[role] = replace(spec, constraints=tuple(c for c in spec.constraints if c.field in known))
    if not unknown:
        return resolved, None
    return resolved.adapted(replace(resolved.scenario, **kept)), ConstraintsLeftOut(tuple(unknown))


def roles_on(agent: Agent, resolved: ResolvedScenario) -> list[str]:
    """The roles of a scenario that could run on the agent now, by their constraints and the need of one client."""
    scenario = resolved.scenario
    specs: dict[str, RoleSpec] = {"publisher": scenario.publisher, "subscriber": scenario.subscriber}
    if servers := resolved.server_groups(is_local=False):
        specs["server"] = servers
    return [
        role
        for role, spec in specs.items()
        if all(permits(c, agent, {}) for c in spec.constraints) and fits(need_of(spec.demand, 1), agent.resources)
    ]


def check_placement(
    resolved: ResolvedScenario, cluster: ClusterSpec, agents: Sequence[Agent], machine: MachineLimits | None
) -> None:
    """Rejects a scenario whose smallest step does not fit on the cluster.

    Args:
        resolved: the scenario.
        cluster: how groups are made.
        agents: where these are placed.
        machine: the limits of this machine, if everything runs on it; None: groups run elsewhere.

    Raises:
        PlacementError: the text names the role and the constraint or resource, or how many clients fit.
    """
    publishers, subscribers = (min(counts) for counts in zip(*resolved.scenario.sizes, strict=True))
    try:
        dry_run(agents, _stages(resolved, cluster, [(publishers, subscribers)], is_local=machine is not None))
    except PlacementError as e:
        unfit = unfit_rows(resolved, cluster, agents, machine) if machine is not None else None
        if machine is None or unfit is None or not unfit.largest:
            raise
        # The agents of the cluster file may be larger than the machine.
        one_more = check_row(resolved, cluster, machine, (publishers, unfit.largest + 1))
        limit = next((shortage for shortage in one_more.shortages if shortage.severe), None)
        if limit is None:
            raise
        raise PlacementError(
            f"{subscribers:,} subscribers do not fit: this machine has room for {unfit.largest:,} "
            f"({limit.what}: {limit.has})",
            f"give --subscribers {unfit.largest} or fewer, or name a cluster with --master",
        ) from e


def rows_on(resolved: ResolvedScenario, cluster: ClusterSpec, agents: Sequence[Agent]) -> list[RowPlacement]:
    """What each row of a scenario needs of another cluster, or why it cannot be placed.

    The groups of a row are those of a run that has measured every smaller row before. Such a run launches only the
    missing clients, and so has more groups than a run that begins with this row.
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


class UnfitRows(NamedTuple):
    """The rows of a scenario that do not fit.

    Attributes:
        clients: the client counts of these rows, ascending.
        lack: what the first of them lacks.
        largest: the largest client count that fits; 0: none does.
    """

    clients: Sequence[int]
    lack: str
    largest: int


def unfit_rows(
    resolved: ResolvedScenario, cluster: ClusterSpec, agents: Sequence[Agent], machine: MachineLimits | None
) -> UnfitRows | None:
    """Returns the rows that do not fit, what they lack and the largest client count that fits; None if all rows fit.

    Args:
        resolved: the scenario.
        cluster: how groups are made.
        agents: where these are placed.
        machine: the limits of this machine, if everything runs on it; None: groups run elsewhere.
    """
    sizes = resolved.scenario.sizes
    lacks = {size: _lack(resolved, cluster, agents, machine, size) for size in sizes}
    unfit = [size for size in sizes if lacks[size]]
    if not unfit:
        return None
    publishers, clients = unfit[0]
    fits = max((count for (_, count), lack in lacks.items() if not lack and count < clients), default=0)
    while clients - fits > 1:
        middle = (fits + clients) // 2
        if _lack(resolved, cluster, agents, machine, (publishers, middle)):
            clients = middle
        else:
            fits = middle
    return UnfitRows(list(dict.fromkeys(count for _, count in unfit)), lacks[unfit[0]], fits)


def _lack(
    resolved: ResolvedScenario,
    cluster: ClusterSpec,
    agents: Sequence[Agent],
    machine: MachineLimits | None,
    size: Size,
) -> str:
    """What a size of a scenario's deployment lacks, after all smaller rows; "" if it fits."""
    if machine is not None:
        checked = check_row(resolved, cluster, machine, size)
        if not checked.fits:
            return "; ".join(f"{s.what}: {s.has}, needs {s.needed}" for s in checked.shortages if s.severe)
    smaller = [each for each in resolved.scenario.sizes if each[0] <= size[0] and each[1] < size[1]]
    try:
        dry_run(agents, _stages(resolved, cluster, [*smaller, size], is_local=machine is not None))
    except PlacementError as e:
        return e.what
    return ""


def placed_line(row: RowPlacement) -> dict[str, object]:
    """The line of a row in a table of the needed resources."""
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
    """The demands of a run that grows from size to size, in the order of its launches."""
    scenario = resolved.scenario
    if servers := resolved.server_groups(is_local=is_local):
        yield RoleDemand("server", servers.count, servers, 1)
    most = cluster.most_in_group(scenario.native.clients_per_process)
    for publishers, subscribers in sizes:
        yield RoleDemand("publisher", publishers, scenario.publisher, cluster.max_group)
        yield RoleDemand("subscriber", subscribers, scenario.subscriber, most)
