"""Following a command in the cluster, against answers as an API server gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hydra.cluster.kubernetes import names, streams
from hydra.cluster.kubernetes.access import Api, ApiError
from hydra.cluster.kubernetes.in_cluster import following
from hydra.cluster.kubernetes.in_cluster.fetching import followed_and_fetched
from hydra.cluster.kubernetes.in_cluster.log import Log
from hydra.cluster.kubernetes.in_cluster.place import Place
from hydra.errors import EXIT_INTERRUPTED, ClusterError

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


def place(answers: object) -> Place:
    return Place(cast(Api, answers), "k8s://lab", "hydra", "first")


def followed(refusal: ApiError, times: int, pod: Json = ENDED) -> Json:
    return following.follow(place(Answers(refusal, times, pod)), ENDED, Log("first", "runs/first"), ends=True)


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


@pytest.mark.parametrize("refusal", [UNKNOWN, AWAY])
@pytest.mark.parametrize("lines", [(), range(10)], ids=["of a silent command", "of one that speaks"])
def test_the_time_for_a_token_begins_when_a_long_log_has_broken(
    refusal: ApiError, lines: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    times = SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None)
    monkeypatch.setattr(following, "time", times)

    class Long(Answers):
        """Refuses twice after a log that has lasted much longer than what is granted, and broken."""

        def lines(self, *_: object) -> Iterator[str]:
            nonlocal now
            if self._left < 3:
                self._answer()
                return
            for n in lines:
                now += following._AWAY_S
                yield f"2026-11-22T20:00:0{n}.000000000Z line"
            now += 0 if lines else 2 * following._AWAY_S
            raise AWAY

    assert following.follow(place(Long(refusal, 3, ENDED)), ENDED, Log("first", "runs/first"), ends=True) == ENDED


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The selectors of what is removed."""
    selectors: list[str] = []

    def remove(_: object, __: str, selector: str, ___: float) -> int:
        selectors.append(selector)
        return 0

    monkeypatch.setattr("hydra.cluster.kubernetes.in_cluster.place.remove", remove)
    return selectors


LOST = {**ENDED, "status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}}


@pytest.mark.parametrize("seen", [LOST, ApiError(404, "NotFound", "pods p not found")])
def test_where_the_command_is_lost_all_that_it_has_made_is_removed(seen: Json | ApiError, removed: list[str]) -> None:
    with pytest.raises(ClusterError):
        followed(*((seen, 2) if isinstance(seen, ApiError) else (UNKNOWN, 0, seen)))
    assert removed == [names.selector("first")]


def test_ctrl_c_for_the_second_time_removes_all_of_the_run_and_not_its_controller_only(
    removed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object) -> Iterator[str]:
        raise KeyboardInterrupt

    # It is asked to end the first time.
    monkeypatch.setattr(streams, "execute", lambda *_: iter(()))
    monkeypatch.setattr(streams, "log", interrupted)
    assert followed_and_fetched(place(None), ENDED, tmp_path / "run", ends=True) == EXIT_INTERRUPTED
    assert removed == [names.selector("first")]


def test_who_is_not_known_any_more_is_told_how_to_go_on() -> None:
    with pytest.raises(ClusterError) as told:
        followed(UNKNOWN, 1_000_000)
    assert str(told.value) == (
        "cannot read pods in namespace hydra: the API server does not know who asks (Unauthorized); log in to the "
        "cluster anew; the run goes on in the cluster: hydra fetch first --master k8s://lab --namespace hydra"
    )
