"""What the engine asks the process that holds the connection, without a cluster."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hydra.cluster.driven import Driver
from hydra.cluster.kubernetes.delivery import Delivery
from hydra.cluster.kubernetes.engine import KubernetesEngine
from hydra.cluster.kubernetes.keeper import owner
from hydra.cluster.kubernetes.pods import Family
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.cluster.kubernetes.state import KubernetesState
from hydra.errors import ClusterError
from hydra.system import wait_alone

Json = dict[str, Any]

OWNER = owner({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hydra-r1-keeper", "uid": "u"}})
FOUND: Json = {"kind": "found", "tag": "owner"}
GONE: Json = {"kind": "refused", "tag": "owner", "status": 404, "reason": "NotFound", "message": "no such Job"}
AWAY: Json = {"kind": "refused", "tag": "owner", "status": 0, "reason": "", "message": "nobody answers"}


class Answers:
    """A driver that gives one answer once it is asked whether the Job is there."""

    closed = False

    def __init__(self, answer: Json) -> None:
        self.asked = 0
        self._answer = answer
        self._told: list[Json] = []

    def send(self, calls: list[Json]) -> None:
        for call in calls:
            if call["call"] == "look":
                self.asked += 1
                self._told.append(self._answer)

    def receive(self, wait_s: float = 0.0) -> list[Json]:
        told, self._told = self._told, []
        return told


def engine(driver: Answers, *, fatal: tuple[str, str] = ("", "")) -> KubernetesEngine:
    family = Family("r1", "lab", OWNER, KubernetesSettings(), "hydra:1", archive=False)
    state = KubernetesState(family, ((31000, 31003),))
    state.standing.fatal = fatal
    return KubernetesEngine(cast("Driver", driver), state, cast("Delivery", None), "10.0.0.1")


@pytest.mark.parametrize("answer", [FOUND, AWAY])
def test_a_run_that_is_there_or_of_which_nobody_knows_goes_on(answer: Json) -> None:
    driver = Answers(answer)
    engine(driver).confirm(wait_alone)
    assert driver.asked == 1


def test_a_run_that_has_failed_already_is_not_asked_about() -> None:
    driver = Answers(FOUND)
    it = engine(driver, fatal=("the token expired", "renew it"))
    with pytest.raises(ClusterError, match="the token expired"):
        it.confirm(wait_alone)
    assert driver.asked == 0


def test_a_run_that_somebody_has_removed_says_so() -> None:
    with pytest.raises(ClusterError, match=r"the run was removed from namespace lab: by hydra kill"):
        engine(Answers(GONE)).confirm(wait_alone)
