"""Whatever happens to the Pods of a run, no node is overdrawn and every group ends once."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.cluster.kubernetes import names
from hydra.errors import ClusterError, PlacementError
from tests.cluster.kubernetes.stated import QUOTA, Subject, ended, group, running, unschedulable

Fate = Literal["runs", "ends", "dies", "goes", "deleted", "refused", "stuck"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.integers(1, 40)),
        st.tuples(
            st.just("fate"),
            st.sampled_from(["runs", "ends", "dies", "goes", "deleted", "refused", "stuck"]),
            st.sampled_from(["n1", "n2"]),
        ),
        st.tuples(st.just("kill")),
        st.tuples(st.just("relist")),
        st.tuples(st.just("time"), st.sampled_from([1.0, 12.0, 31.0, 130.0])),
    ),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=100)
def test_whatever_happens_no_node_is_overdrawn_and_every_group_ends_once_or_is_there(
    steps: list[tuple[Any, ...]],
) -> None:
    it = Subject()
    alive: list[str] = []
    there: set[str] = set()
    launched, gone = set[str](), list[str]()
    for number, step in enumerate(steps):
        match step:
            case ("launch", tenths):
                free = {agent.id: agent.resources.cpus for agent in it.state.agents()}
                name = f"g{number}"
                try:
                    (where,) = it.launch(group(name, cpus=tenths / 10))
                except PlacementError:
                    assert max(free.values()) < tenths / 10 + 1e-9
                else:
                    assert tenths / 10 <= free[where] + 1e-9
                    launched.add(name)
                    alive.append(name)
            case ("fate", fate, where) if alive:
                name = alive[0]
                _meets(it, name, fate, where, there)
            case ("kill",) if alive:
                it.state.kill([alive[-1]], it.now)
            case ("relist",):
                it.say("pods", names=sorted(names.object_name("r1", name) for name in there))
            case ("time", seconds):
                it.pass_time(seconds)
        for event in it.events():
            if event.state not in ("starting", "running"):
                gone.append(event.group)
                alive.remove(event.group)
                there.discard(event.group)
        assert len(gone) == len(set(gone)), "a group ended twice"
        assert launched == {*gone, *alive}
        with pytest.raises((ClusterError, PlacementError)):
            it.launch(group("big", cpus=100.0))
        for name in alive:
            with pytest.raises(ClusterError, match="running already"):
                it.launch(group(name))
    it.state.kill(alive, it.now)
    for name in alive:
        it.pod(name, "n1", gone=True, **running())
    assert {event.group for event in it.events()} == set(alive)


def _meets(it: Subject, name: str, fate: Fate, where: str, there: set[str]) -> None:
    match fate:
        case "runs":
            there.add(name)
            it.runs(name, where)
        case "ends":
            it.pod(name, where, **ended(0))
        case "dies":
            it.pod(name, where, **ended(137, "OOMKilled"))
        case "goes":
            it.pod(name, where, gone=True, **running())
        case "deleted":
            it.pod(name, where, deleted=True, **running())
        case "refused":
            it.refuse(names.object_name("r1", name), 403, QUOTA)
        case "stuck":
            there.add(name)
            it.pod(name, "", **unschedulable())
