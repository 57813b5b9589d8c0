"""What the engine adds to its state: groups as they start in their containers, and a word about what was left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import pytest

from hydra.cluster.channel import Message
from hydra.cluster.driven import Driver
from hydra.cluster.kubernetes.delivery import Delivery
from hydra.cluster.kubernetes.engine import KubernetesEngine
from hydra.errors import ClusterError
from hydra.model import Group
from tests.cluster.kubernetes.stated import Subject, group


class StoppingDriver:
    """Answers a stop with what is left, and ends."""

    def __init__(self, left: int) -> None:
        self.closed = False
        self.calls: list[Message] = []
        self._left = left

    def send(self, calls: Iterable[Message]) -> None:
        self.calls += calls

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        self.closed = any(call["call"] == "stop" for call in self.calls)
        return [{"kind": "stopped", "left": self._left}] if self.closed else []

    def ended(self) -> str:
        return "the process ended"

    def close(self) -> None:
        self.closed = True


class PlainDelivery:
    """Groups start as they are."""

    def is_archived(self, _: Group) -> bool:
        return False

    def prepared(self, group: Group) -> Group:
        return group


def engine(left: int = 0) -> tuple[KubernetesEngine, StoppingDriver]:
    driver = StoppingDriver(left)
    return KubernetesEngine(
        cast("Driver", driver), Subject().state, cast("Delivery", PlainDelivery()), "192.0.2.1", clock=lambda: 0.0
    ), driver


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (0, ""),
        (3, "hydra: 3 Pods are still in namespace lab; see hydra ps, and hydra kill r1\n"),
    ],
)
def test_the_end_says_what_the_removal_has_left(left: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    it, driver = engine(left)
    it.launch([group("a")])
    it.close()
    assert [call["call"] for call in driver.calls] == ["create", "stop"]
    assert capsys.readouterr().err == says


def test_without_its_driver_there_are_no_nodes_to_tell_of() -> None:
    it, driver = engine()
    assert [agent.id for agent in it.agents()] == ["n1", "n2"]
    driver.calls.append({"call": "stop"})  # somebody else has ended it
    for ask in (it.agents, lambda: it.launch([group("a")])):
        with pytest.raises(ClusterError, match="the process ended"):
            ask()
