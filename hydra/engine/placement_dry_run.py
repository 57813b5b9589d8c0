"""Where the groups of a run would go, without launching any. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from hydra.engine.group_sizing import shapes_of, split
from hydra.engine.placement import merge, place
from hydra.engine.resources import subtract, taken_by
from hydra.model import Agent, Launch, RoleSpec


class Wanted(NamedTuple):
    """How many of a role are to run, those that run already among them; ``most`` of them are in one group."""

    role: str
    number: int
    spec: RoleSpec
    most: int


def rehearse(agents: Iterable[Agent], stages: Iterable[Wanted]) -> list[Launch]:
    """Places what is wanted stage by stage, each beside all that the stages before it have placed.

    Args:
        agents: with their free resources.
        stages: in the order in which a run launches them. Nothing is ever ended.

    Raises:
        PlacementError: they do not fit; the text names the role, and the constraint or the room there is.
    """
    free = {agent.id: agent for agent in merge(agents)}
    running: list[Launch] = []
    there: Counter[str] = Counter()
    for role, number, spec, most in stages:
        sizes = split(number - there[role], free.values(), spec, most, role=role, running=running)
        launches, _ = place(free.values(), shapes_of(sizes, spec, role), running)  # it accepts what split returns
        for launch in launches:
            agent = free[launch.agent.id]
            free[agent.id] = replace(agent, resources=subtract(agent.resources, taken_by(launch)))
        there[role] += sum(sizes)
        running += launches
    return running
