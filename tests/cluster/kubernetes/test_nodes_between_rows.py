"""The engine asks for the nodes as they are before it places anything, and waits for the answer for a moment only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from hydra.cluster.driven import Driver
from hydra.cluster.kubernetes import inventory as module
from hydra.cluster.kubernetes.delivery import Delivery
from hydra.cluster.kubernetes.engine import KubernetesEngine
from hydra.cluster.kubernetes.pods import Family
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.cluster.kubernetes.state import KubernetesState
from tests.cluster.kubernetes.objects import node
from tests.cluster.kubernetes.stated import Json, Subject, group


class Cluster:
    """The driver of a cluster with these nodes; the engine's clock goes on while it is waited for."""

    closed = False

    def __init__(self, *nodes: str) -> None:
        self.nodes: Sequence[str] | None = nodes
        self.now = 0.0
        self.asked = 0
        state = KubernetesState(Family("r", "lab", {}, KubernetesSettings(), "i", archive=False), ())
        state.handle(self._told(), 0.0)
        delivery = Delivery([], KubernetesSettings(), "")
        self.engine = KubernetesEngine(cast(Driver, self), state, delivery, "10.0.0.1", clock=lambda: self.now)
        self._answers: list[Json] = []

    def send(self, calls: Sequence[Json]) -> None:
        if {"call": "nodes"} in calls:
            self.asked += 1
            self._answers += [self._told()] if self.nodes is not None else []

    def receive(self, wait_s: float = 0.0) -> list[Json]:
        self.now += wait_s
        answers, self._answers = self._answers, []
        return answers

    def _told(self) -> Json:
        return {"kind": "nodes", "nodes": [node(name) for name in self.nodes or ()], "pods": [], "partial": False}


def test_a_node_that_came_since_the_row_before_is_an_agent() -> None:
    it = Cluster("n1")
    it.nodes = ["n1", "n2"]
    assert [agent.id for agent in it.engine.agents()] == ["n1"], "they were told just now"
    it.now = 60.0
    assert [agent.id for agent in it.engine.agents()] == ["n1", "n2"]
    it.nodes = ["n2"]
    assert it.engine.launch([]) == []
    assert [agent.id for agent in it.engine.agents()] == ["n1", "n2"]
    assert it.asked == 1, "at most once a row"


def test_a_silent_cluster_is_waited_for_a_moment_and_once_a_row() -> None:
    it = Cluster("n1")
    it.nodes, it.now = None, 60.0
    assert [agent.id for agent in it.engine.agents()] == ["n1"]
    assert it.now == pytest.approx(60.0 + module.TOLD_WITHIN_S, abs=0.2)
    again = it.now
    assert it.engine.launch([]) == []
    assert it.now == again


def test_the_nodes_are_asked_for_once_before_a_placement() -> None:
    it = Subject("n1")
    assert not it.state.awaits_nodes(it.now), "they were told just now"
    it.now += module.REFRESH_S
    assert it.state.awaits_nodes(it.now)
    assert it.state.awaits_nodes(it.now)
    assert it.calls() == [{"call": "nodes"}]
    it.tell_nodes("n1", "n2")
    assert not it.state.awaits_nodes(it.now)
    assert [agent.id for agent in it.state.agents()] == ["n1", "n2"]


@pytest.mark.parametrize("refused", [True, False])
def test_a_cluster_that_does_not_tell_its_nodes_is_not_waited_for_long(refused: bool) -> None:
    it = Subject("n1")
    it.now += module.REFRESH_S
    assert it.state.awaits_nodes(it.now)
    if refused:
        it.refuse("nodes", 403, 'nodes is forbidden: User "u" cannot list resource "nodes"', "Forbidden")
    else:
        it.now += module.TOLD_WITHIN_S
    assert not it.state.awaits_nodes(it.now)
    assert it.launch(group("a")) == ["n1"], "by what is known"
