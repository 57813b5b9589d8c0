"""The calls that make and remove a command in the cluster, against answers as an API server gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from hydra.cluster.kubernetes.access import Api, ApiError
from hydra.cluster.kubernetes.in_cluster.place import NotMadeError, Place
from hydra.errors import ClusterError

Json = dict[str, Any]

BODY: Json = {"metadata": {"name": "hydra-first-controller", "annotations": {"hydra/command": "mine"}}}
OTHER: Json = {"metadata": {"name": "hydra-first-controller", "annotations": {"hydra/command": "another"}}}
LOST = ApiError(0, "", "connection reset")
TAKEN = ApiError(409, "AlreadyExists", 'jobs.batch "hydra-first-controller" already exists')
FORBIDDEN = ApiError(403, "Forbidden", "jobs is forbidden")


class Answers:
    """An API server that gives these answers, one after the other."""

    def __init__(self, answers: Sequence[Json | ApiError]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def call(self, method: str, path: str, *_: object, **__: object) -> Json:
        self.asked.append(f"{method} {path}")
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def place(*answers: Json | ApiError) -> Place:
    return Place(cast(Api, Answers(answers)), "k8s://lab", "hydra", "first")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hydra.cluster.kubernetes.in_cluster.place._PAUSE_S", 0.0)


@pytest.mark.parametrize(
    "answers", [(BODY,), (LOST, BODY), (LOST, TAKEN, {**BODY, "spec": {}}), (ApiError(429, "", "slowly"), BODY)]
)
def test_an_object_is_made_once_whatever_becomes_of_answers(answers: Sequence[Json | ApiError]) -> None:
    assert place(*answers).create("jobs", BODY)["metadata"] == BODY["metadata"]


@pytest.mark.parametrize("answers", [(TAKEN,), (FORBIDDEN,), (LOST, TAKEN, OTHER)])
def test_an_object_of_somebody_else_is_told_from_ones_own(answers: Sequence[Json | ApiError]) -> None:
    with pytest.raises(NotMadeError):
        place(*answers).create("jobs", BODY)


def test_what_may_have_been_made_is_not_said_to_be_missing() -> None:
    with pytest.raises(ClusterError) as refused:
        place(LOST, FORBIDDEN).create("jobs", BODY)
    assert not isinstance(refused.value, NotMadeError)


@pytest.mark.parametrize("error", [FORBIDDEN, LOST, ApiError(503, "", "starting")])
def test_events_that_cannot_be_had_just_now_are_none(error: ApiError) -> None:
    assert place(error, {"items": [{"reason": "Failed"}]}).events("a", "b") == [{"reason": "Failed"}]
