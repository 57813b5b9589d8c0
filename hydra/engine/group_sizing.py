"""Splits the clients of a role into groups, and places a run's groups without launching them. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from hydra.engine.placement import describe, merge, permits, place, why_no_agent_matches
from hydra.engine.resources import ResourceNeed, fits, need_of, subtract, taken_by
from hydra.errors import PlacementError
from hydra.events.value_formatting import counted
from hydra.model import Agent, Group, Launch, RoleSpec

_EXTRA_TRIES = 64
"""How many more groups than agents are tried when an even split does not fit; more groups need too many resources."""


def split(
    count: int,
    agents: Iterable[Agent],
    spec: RoleSpec,
    max_group: int,
    *,
    role: str = "subscriber",
    running: Sequence[Launch] = (),
) -> list[int]:
    """The sizes of the groups, largest first, that spread ``count`` clients evenly over the agents that match.

    Each matching agent gets at least one group while there are clients, and more if ``max_group`` requires it. A small
    agent, or one that already has more clients of the role, gets fewer. ``place`` accepts the sizes.

    Args:
        count: the number of clients to place.
        agents: the agents with their free resources.
        spec: the role's constraints and demand.
        max_group: the largest number of clients in a group.
        role: the role, by which constraints count groups.
        running: the groups that already run.

    Raises:
        PlacementError: the clients do not fit; the text names the constraint, or how many clients fit.
    """
    if max_group < 1:
        raise ValueError(f"max_group must be at least 1, not {max_group}")
    if count <= 0:
        return []
    cluster = merge(agents)
    matching = [agent for agent in cluster if all(permits(c, agent, {}) for c in spec.constraints)]
    if not matching:
        raise PlacementError(
            f"no agent for {_counted(count, role)}: {why_no_agent_matches(spec.constraints, cluster)}",
            "change the constraints, or add an agent that matches: hydra agents lists the agents",
        )
    room = [_room(agent, spec, max_group, count) for agent in matching]
    if sum(room) < count:
        raise _too_many(count, role, spec, matching, sum(room))
    present: Counter[str] = Counter()
    for launch in running:
        if launch.group.role == role:
            present[launch.agent.id] += launch.group.count
    shares = _fill(count, [present[agent.id] for agent in matching], room)
    sizes = sorted((size for share in shares for size in _parts(share, -(-share // max_group))), reverse=True)
    placed, reason = _try(sizes, cluster, spec, role, running)
    if placed == len(sizes):
        return sizes

    # The even split does not fit: a constraint allows fewer groups, or the sizes do not match the free resources. Equal
    # sizes fit better: first the number of groups that could be placed, then more and smaller groups.
    fewest = -(-count // max_group)
    groups = min(placed, len(matching))
    while groups >= fewest:
        sizes = _parts(count, groups)
        placed, _ = _try(sizes, cluster, spec, role, running)
        if placed == groups:
            return sizes
        groups = min(placed, groups - 1)
    start = max(fewest, len(matching))
    for groups in range(start, min(count, start + _EXTRA_TRIES) + 1):
        sizes = _parts(count, groups)
        if _try(sizes, cluster, spec, role, running)[0] == groups:
            return sizes
    raise PlacementError(
        f"{_counted(count, role)} in groups of at most {max_group} cannot be placed: {reason}",
        f"ask for fewer {_what(role)}, relax the constraints, or raise max_group under [cluster] of the cluster file",
    )


def _counted(count: int, role: str) -> str:
    return counted(count, "server" if role == "server" else f"{role} client")


def _too_many(count: int, role: str, spec: RoleSpec, matching: Sequence[Agent], room: int) -> PlacementError:
    is_one = len(matching) == 1
    agents = "the agent" if is_one else f"the {len(matching)} agents"
    if spec.constraints:
        agents += f" that match{'es' * is_one} {' and '.join(map(describe, spec.constraints))}"
    fit = f"{'does' if count == 1 else 'do'} not fit: {agents} {'has' if is_one else 'have'} room for {room:,}"
    return PlacementError(
        f"{_counted(count, role)} {fit} (a group of one needs {need_of(spec.demand, 1)})",
        f"ask for fewer {_what(role)}, lower {role}.demand, or add agents: hydra agents lists the agents",
    )


def _what(role: str) -> str:
    """The word for a role's processes: servers, or clients for the other roles."""
    return "servers" if role == "server" else "clients"


def _room(agent: Agent, spec: RoleSpec, max_group: int, limit: int) -> int:
    """The most clients of the role, up to ``limit``, that the agent takes in groups as large as allowed."""
    demand = spec.demand

    def goes(clients: int) -> bool:
        groups = -(-clients // max_group)
        need = ResourceNeed(
            cpus=groups * demand.base_cpus + clients * demand.cpus_per_client,
            mem=groups * demand.base_mem + clients * demand.mem_per_client,
            ports=groups * demand.ports,
        )
        return fits(need, agent.resources)

    return bisect_left(range(1, limit + 1), True, key=lambda clients: not goes(clients))


def _fill(count: int, present: Sequence[int], room: Sequence[int]) -> list[int]:
    """How many of ``count`` clients each agent gets if the agent with the fewest always gets the next one.

    ``count`` is at most the sum of ``room``.
    """

    def poured(level: int) -> list[int]:
        return [min(max(level - have, 0), space) for have, space in zip(present, room, strict=True)]

    most = max(present) + count
    level = bisect_left(range(1, most + 1), True, key=lambda level: sum(poured(level)) > count)
    shares, fuller = poured(level), poured(level + 1)
    for index in range(len(shares)):
        if sum(shares) == count:
            break
        shares[index] = fuller[index]
    return shares


def _parts(count: int, groups: int) -> list[int]:
    """``count`` in ``groups`` parts that differ by at most one, the larger first."""
    if groups == 0:
        return []
    size, rest = divmod(count, groups)
    return [size + 1] * rest + [size] * (groups - rest)


def _try(
    sizes: Sequence[int], agents: Sequence[Agent], spec: RoleSpec, role: str, running: Sequence[Launch]
) -> tuple[int, str]:
    """How many groups of these sizes can be placed, and why the first of the others cannot."""
    launches, unplaced = place(agents, shapes_of(sizes, spec, role), running)
    return len(launches), unplaced[0].reason if unplaced else ""


def shapes_of(sizes: Sequence[int], spec: RoleSpec, role: str) -> list[Group]:
    """Groups of these sizes for placement alone: they have no program."""
    return [
        Group(
            id=f"{role}-{index}",
            role=role,
            first_client=0,
            count=size,
            command=(),
            environment={},
            demand=spec.demand,
            constraints=spec.constraints,
        )
        for index, size in enumerate(sizes)
    ]


class RoleDemand(NamedTuple):
    """How many clients or servers of a role are to run, running ones included, and the most in one group."""

    role: str
    number: int
    spec: RoleSpec
    most: int


def dry_run(agents: Iterable[Agent], stages: Iterable[RoleDemand]) -> list[Launch]:
    """Places the groups of each stage in addition to those of the stages before it; launches nothing.

    Args:
        agents: the agents with their free resources.
        stages: the stages in the order in which a run launches them; no group ends in between.

    Raises:
        PlacementError: they do not fit; the text names the role, and the constraint or how many clients fit.
    """
    free = {agent.id: agent for agent in merge(agents)}
    running: list[Launch] = []
    placed: Counter[str] = Counter()
    for role, number, spec, most in stages:
        sizes = split(number - placed[role], free.values(), spec, most, role=role, running=running)
        launches, _ = place(free.values(), shapes_of(sizes, spec, role), running)  # place() accepts split()'s sizes
        for launch in launches:
            agent = free[launch.agent.id]
            free[agent.id] = replace(agent, resources=subtract(agent.resources, taken_by(launch)))
        placed[role] += sum(sizes)
        running += launches
    return running
