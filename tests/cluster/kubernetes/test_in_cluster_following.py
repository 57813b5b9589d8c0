"""Following a command in the cluster, against answers as an API server gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes.access import Api, ApiError
from hydra.cluster.kubernetes.in_cluster import following
from hydra.cluster.kubernetes.in_cluster.log import Log
from hydra.cluster.kubernetes.in_cluster.place import Place
from hydra.errors import ClusterError

Json = dict[str, Any]

ENDED: Json = {
    "metadata": {"name": "p"},
    "spec": {"nodeName": "node1", "containers": [{"name": "hydra"}, {"name": "files"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "hydra", "state": {"terminated": {"exitCode": 0}}}]},
}
UNKNOWN = ApiError(401, "Unauthorized", "Unauthorized")
AWAY = ApiError(0, "", "Connection refused")


class Answers:
    """An API server that refuses so often what it is asked, and then tells of a command's Pod."""

    def __init__(self, refusal: ApiError, times: int, pod: Json) -> None:
        self._refusal, self._left, self._pod = refusal, times, pod

    def _answer(self) -> None:
        self._left -= 1
        if self._left >= 0:
            raise self._refusal

    def call(self, *_: object, **__: object) -> Json:
        self._answer()
        return self._pod

    def lines(self, *_: object) -> Iterator[str]:
        self._answer()
        yield "2026-11-22T20:00:00.000000000Z done"


def followed(refusal: ApiError, times: int, pod: Json = ENDED) -> Json:
    place = Place(cast(Api, Answers(refusal, times, pod)), "k8s://lab", "hydra", "first")
    return following.follow(place, ENDED, Log("first", "runs/first"), ends=True)


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_PAUSE_S", 0.01)
    monkeypatch.setattr(following, "_UNKNOWN_S", 0.2)


@pytest.mark.parametrize("refusal", [UNKNOWN, AWAY])
def test_a_command_is_followed_on_when_it_is_known_again_who_asks(
    refusal: ApiError, capsys: pytest.CaptureFixture[str]
) -> None:
    assert followed(refusal, 5) == ENDED
    assert capsys.readouterr().err == "done\n"


LOST = {**ENDED, "status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}}


@pytest.mark.parametrize("seen", [LOST, ApiError(404, "NotFound", "pods p not found")])
def test_where_the_command_is_lost_all_that_it_has_made_is_removed(
    seen: Json | ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []

    def remove(_: object, __: str, selector: str, ___: float) -> int:
        removed.append(selector)
        return 0

    monkeypatch.setattr("hydra.cluster.kubernetes.in_cluster.place.remove", remove)
    with pytest.raises(ClusterError):
        followed(*((seen, 2) if isinstance(seen, ApiError) else (UNKNOWN, 0, seen)))
    assert removed == [names.selector("first")]


def test_who_is_not_known_any_more_is_told_how_to_go_on() -> None:
    with pytest.raises(ClusterError) as told:
        followed(UNKNOWN, 1_000_000)
    assert str(told.value) == (
        "cannot read pods in namespace hydra: the API server does not know who asks (Unauthorized); log in to the "
        "cluster anew; the run goes on in the cluster: hydra fetch first --master k8s://lab --namespace hydra"
    )
