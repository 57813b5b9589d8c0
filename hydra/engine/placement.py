"""Places groups on agents by Marathon's constraints, and explains why a group fits nowhere. Pure.

Semantics: docs/docs/constraints.md of https://github.com/d2iq-archive/marathon. Every operator except UNLIKE refuses an
agent without the attribute.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, cast, get_args

from hydra.engine.resources import ResourceNeed, add, amounts, fits, need_of, port_count, take
from hydra.errors import PlacementError
from hydra.events.value_formatting import counted
from hydra.model import Agent, Constraint, Group, Launch, Operator, Resources

OPERATORS: Final[tuple[str, ...]] = get_args(Operator)

HOSTNAMES: Final = ("hostname", "@hostname")
"""The fields of constraints that are no attribute."""

STILL_OPEN: Final[frozenset[Operator]] = frozenset({"GROUP_BY"})
"""Operators that may later accept an agent that they refuse now; while groups are only added, others never do."""

_COUNT: Final = re.compile(r"[1-9]\d*")


def parse_constraint(parts: Sequence[str]) -> Constraint:
    """The constraint written as ``["group", "CLUSTER", "cpu4-mem16"]``; the value may be absent.

    Raises:
        ValueError: it is malformed, or its operator cannot use its value.
    """
    if isinstance(parts, str) or not 2 <= len(parts) <= 3 or not all(isinstance(part, str) for part in parts):
        raise ValueError(f'a constraint is ["field", "OPERATOR", "value"], all of them strings, not {parts!r}')
    if parts[1] not in OPERATORS:
        raise ValueError(f"unknown operator {parts[1]!r}: known are {', '.join(OPERATORS)}")
    constraint = Constraint(parts[0], cast("Operator", parts[1]), *parts[2:])
    check(constraint)
    return constraint


def check(constraint: Constraint) -> None:
    """Checks that a constraint's operator can use its value.

    Raises:
        ValueError: it cannot; the text contains what the operator needs.
    """
    name, value = describe(constraint), constraint.value
    if not constraint.field or (constraint.field.startswith("@") and constraint.field not in HOSTNAMES):
        raise ValueError(f"{name}: the field must be hostname, @hostname or an attribute, not {constraint.field!r}")
    match constraint.operator:
        case "UNIQUE":
            if value:
                raise ValueError(f"{name}: UNIQUE takes no value")
        case "GROUP_BY":
            if value and not _COUNT.fullmatch(value):
                raise ValueError(f"{name}: GROUP_BY takes no value, or the number of groups to expect, not {value!r}")
        case "MAX_PER":
            if not _COUNT.fullmatch(value):
                raise ValueError(f"{name}: MAX_PER needs a number of at least 1, not {value!r}")
        case "LIKE" | "UNLIKE":
            if not value:
                raise ValueError(f"{name}: {constraint.operator} needs a regular expression")
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"{name}: {value!r} is not a regular expression: {error}") from error
        case "CLUSTER":
            pass


def describe(constraint: Constraint) -> str:
    """The constraint as the user wrote it, without brackets."""
    return " ".join(part for part in (constraint.field, constraint.operator, constraint.value) if part)


def value_of(agent: Agent, field: str) -> str | None:
    """The agent's value of ``field`` for constraints; None if the agent has no such attribute."""
    if field in HOSTNAMES:
        return agent.hostname
    return agent.attributes.get(field)


def permits(constraint: Constraint, agent: Agent, running: Mapping[str | None, int]) -> bool:
    """Whether one more group of a role may run on the agent.

    Args:
        constraint: a constraint that ``check`` accepts.
        agent: the agent for the group.
        running: the number of running groups of the role, per value of the constraint's field. If it is empty, only
            the constraint's demands on the agent itself count.
    """
    value = value_of(agent, constraint.field)
    if value is None:
        return constraint.operator == "UNLIKE"
    match constraint.operator:
        case "LIKE":
            return re.fullmatch(constraint.value, value) is not None
        case "UNLIKE":
            return re.fullmatch(constraint.value, value) is None
        case "UNIQUE":
            return running.get(value, 0) == 0
        case "MAX_PER":
            return running.get(value, 0) < int(constraint.value)
        case "CLUSTER":
            # Without a value the first group decides.
            return constraint.value in ("", value) and all(other == value for other in running)
        case "GROUP_BY":
            if value not in running:
                return True
            enough = len(running) >= int(constraint.value or 0)
            return enough and running[value] == min(running.values())


_MOST_NAMED: Final = 8
"""The most agents or values that a reason names, so it stays one line."""


class UnplacedGroup(NamedTuple):
    """A group that fits nowhere, and the constraint or the resource that is the cause."""

    group: Group
    reason: str


class Placement(NamedTuple):
    """The launches, and the groups that cannot be launched, both in the order of the given groups."""

    launches: list[Launch]
    unplaced: list[UnplacedGroup]


class GroupShape(NamedTuple):
    """The properties of a group that matter for placement; groups of one shape are interchangeable."""

    role: str
    constraints: tuple[Constraint, ...]
    need: ResourceNeed


Rank = tuple[tuple[int, ...], int, int]
"""Groups of the role per GROUP_BY value, clients of the role on the agent, all clients on it: the lowest is first."""


def place(
    agents: Iterable[Agent], groups: Sequence[Group], running: Iterable[Launch] = (), others: Iterable[Agent] = ()
) -> Placement:
    """Places groups so that the clients of each role spread evenly over the agents that match.

    Groups with the fewest matching agents come first, then those with the greatest need: a group that can run anywhere
    must not take the only agent of a group that cannot. The result depends only on the arguments.

    Args:
        agents: the agents with their free resources. An agent that is listed several times (by several offers) counts
            once, with the sum.
        groups: the groups to place.
        running: the groups that already run; the free resources do not contain theirs.
        others: agents that take no groups now but will later: constraints count the groups that run there. Values that
            no agent has any more do not count for GROUP_BY.
    """
    board = _Board(merge(agents), groups, running, others)
    shapes = [GroupShape(g.role, g.constraints, need_of(g.demand, g.count)) for g in groups]

    def urgency(index: int) -> tuple[int, float, float, int]:
        shape = shapes[index]
        return len(board.matching(shape.constraints)), -shape.need.mem, -shape.need.cpus, index

    launches: dict[int, Launch] = {}
    unplaced: dict[int, UnplacedGroup] = {}
    for index in sorted(range(len(groups)), key=urgency):
        launch = board.place(groups[index], shapes[index])
        if launch is not None:
            launches[index] = launch
        else:
            unplaced[index] = UnplacedGroup(groups[index], board.reason(shapes[index]))
    return Placement([launches[i] for i in sorted(launches)], [unplaced[i] for i in sorted(unplaced)])


def refusal(unplaced: Sequence[UnplacedGroup], remedy: str) -> PlacementError:
    """The error for unplaced groups, with the first of them and its reason."""
    group, reason = unplaced[0]
    more = f" (and {counted(len(unplaced) - 1, 'more group')})" if len(unplaced) > 1 else ""
    return PlacementError(f"group {group.id} ({counted(group.count, f'{group.role} client')}){more}: {reason}", remedy)


def merge(agents: Iterable[Agent]) -> list[Agent]:
    """The agents, those of the same id merged, in the order of their first appearance."""
    merged: dict[str, Agent] = {}
    for agent in agents:
        known = merged.get(agent.id)
        merged[agent.id] = agent if known is None else replace(known, resources=add(known.resources, agent.resources))
    return list(merged.values())


def why_no_agent_matches(constraints: Sequence[Constraint], agents: Sequence[Agent]) -> str:
    """The first constraint that leaves no agent, with the values found; "" if some agent matches."""
    if not agents:
        return "the cluster has no agents"
    left = list(agents)
    for position, constraint in enumerate(constraints):
        matching = [agent for agent in left if permits(constraint, agent, {})]
        if not matching:
            seen = Counter(value_of(agent, constraint.field) or "no such attribute" for agent in left)
            values = _some([f"{value} x{count}" for value, count in sorted(seen.items())])
            earlier = " that match " + " and ".join(map(describe, constraints[:position])) if position else ""
            return f"0 of {counted(len(left), 'agent')}{earlier} match {describe(constraint)}; seen: {values}"
        left = matching
    return ""


@dataclass(slots=True)
class _Queue:
    """The agents that may still take a group of one shape, best first; a rank may be out of date (too low)."""

    heap: list[tuple[Rank, int]]
    failed_at: int = -1
    reason: str = ""


class _Board:
    """The state of one placement: the free resources and the groups of each agent.

    Invariant: free resources only shrink and counts only grow. Therefore a queue never needs an agent again that it has
    dropped (too small, or refused for good), and a rank in a queue can only be too low.
    """

    def __init__(
        self, agents: list[Agent], groups: Sequence[Group], running: Iterable[Launch], others: Iterable[Agent]
    ) -> None:
        self.agents = agents
        self.free: list[Resources] = [agent.resources for agent in agents]
        self._launched = 0
        self._clients: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._all_clients: Counter[str] = Counter()
        self._tallies: dict[tuple[str, str], Counter[str | None]] = {
            (group.role, constraint.field): Counter() for group in groups for constraint in group.constraints
        }
        self._fields: defaultdict[str, list[str]] = defaultdict(list)
        for role, name in self._tallies:
            self._fields[role].append(name)
        self._matching: dict[tuple[Constraint, ...], list[int]] = {}
        self._queues: dict[GroupShape, _Queue] = {}
        # Like _tallies, but only for values that some agent still has.
        agents_ = [*agents, *others]
        self._values = {name: {value_of(agent, name) for agent in agents_} for _, name in self._tallies}
        self._present: dict[tuple[str, str], Counter[str | None]] = {key: Counter() for key in self._tallies}
        for launch in running:
            self._count(launch.group, launch.agent)

    def matching(self, constraints: tuple[Constraint, ...]) -> list[int]:
        """Indexes of the agents that match, regardless of the groups on them."""
        if constraints not in self._matching:
            self._matching[constraints] = [
                index for index, agent in enumerate(self.agents) if all(permits(c, agent, {}) for c in constraints)
            ]
        return self._matching[constraints]

    def place(self, group: Group, shape: GroupShape) -> Launch | None:
        queue = self._queues.get(shape)
        if queue is None:
            queue = _Queue([(self._rank(shape, index), index) for index in self.matching(shape.constraints)])
            heapify(queue.heap)
            self._queues[shape] = queue
        if queue.failed_at == self._launched:
            return None
        heap = queue.heap
        waiting: list[tuple[Rank, int]] = []
        launch = None
        while heap and launch is None:
            rank, index = heappop(heap)
            now = self._rank(shape, index)
            if now != rank:
                heappush(heap, (now, index))
            elif fits(shape.need, self.free[index]):
                refusal = self._refusal(shape, index)
                if refusal is None:
                    launch = self._launch(group, shape, index)
                    heappush(heap, (self._rank(shape, index), index))
                elif refusal.operator in STILL_OPEN:
                    waiting.append((rank, index))
        for entry in waiting:
            heappush(heap, entry)
        return launch

    def reason(self, shape: GroupShape) -> str:
        """Why a group of this shape was not placed just now."""
        queue = self._queues[shape]
        if queue.failed_at != self._launched:
            queue.failed_at, queue.reason = self._launched, self._explain(shape)
        return queue.reason

    def _explain(self, shape: GroupShape) -> str:
        candidates = self.matching(shape.constraints)
        if not candidates:
            return why_no_agent_matches(shape.constraints, self.agents)
        refusals = {index: self._refusal(shape, index) for index in candidates}
        by_constraint = Counter(describe(refusal) for refusal in refusals.values() if refusal is not None)
        refused = " and ".join(f"{text} refuses {count}" for text, count in sorted(by_constraint.items()))
        allowed = [index for index in candidates if refusals[index] is None]
        if not allowed:
            taken = _some([f"{agent} ({clients})" for agent, clients in self._clients[shape.role].items()])
            return f"{refused} of {counted(len(candidates), 'matching agent')}; {shape.role} clients by agent: {taken}"
        best = max(allowed, key=lambda index: (_share(shape.need, self.free[index]), -index))
        free = self.free[best]
        most = amounts(free.cpus, free.mem, port_count(free) if shape.need.ports else None)
        text = f"needs {shape.need}: the most that is free on a matching agent is {most} ({self.agents[best].id})"
        return f"{text}; {refused} of {len(candidates)} matching agents" if refused else text

    def _refusal(self, shape: GroupShape, index: int) -> Constraint | None:
        # A constraint that refuses for good is reported before one that may accept the agent later.
        found: Constraint | None = None
        for constraint in shape.constraints:
            if not permits(constraint, self.agents[index], self._tally(shape.role, constraint)):
                if constraint.operator not in STILL_OPEN:
                    return constraint
                found = found or constraint
        return found

    def _tally(self, role: str, constraint: Constraint) -> Mapping[str | None, int]:
        """The groups of the role that the constraint counts, per value of its field."""
        tallies = self._present if constraint.operator == "GROUP_BY" else self._tallies
        return tallies[role, constraint.field]

    def _rank(self, shape: GroupShape, index: int) -> Rank:
        agent = self.agents[index]
        per_value = tuple(
            self._tallies[shape.role, c.field][value_of(agent, c.field)]
            for c in shape.constraints
            if c.operator == "GROUP_BY"
        )
        return per_value, self._clients[shape.role][agent.id], self._all_clients[agent.id]

    def _launch(self, group: Group, shape: GroupShape, index: int) -> Launch:
        self.free[index], ports = take(self.free[index], shape.need)
        self._count(group, self.agents[index])
        self._launched += 1
        return Launch(group, self.agents[index], ports)

    def _count(self, group: Group, agent: Agent) -> None:
        self._clients[group.role][agent.id] += group.count
        self._all_clients[agent.id] += group.count
        for name in self._fields[group.role]:
            value = value_of(agent, name)
            self._tallies[group.role, name][value] += 1
            if value in self._values[name]:
                self._present[group.role, name][value] += 1


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + more


def _share(need: ResourceNeed, free: Resources) -> float:
    """The part of the need that the free resources meet, by the scarcest one."""
    pairs = ((need.cpus, free.cpus), (need.mem, free.mem), (need.ports, port_count(free)))
    return min((have / required for required, have in pairs if required > 0), default=1.0)
