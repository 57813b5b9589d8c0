"""Making a command in the cluster as a whole or not at all, following and removing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from hydra.engine.specification import Relocation, Shipment
from hydra.errors import EXIT_INTERRUPTED, ClusterError, Terminated, UsageError
from hydra.kubernetes import api_streams, object_names
from hydra.kubernetes.api_client import Api, ApiError
from hydra.kubernetes.in_cluster import log_follower, remote_run
from hydra.kubernetes.in_cluster.fetch import followed_and_fetched
from hydra.kubernetes.in_cluster.job_objects import FILES
from hydra.kubernetes.in_cluster.job_state import LogReader
from hydra.kubernetes.in_cluster.run_job import ObjectNotMadeError, RunJob
from hydra.kubernetes.settings import KubernetesSettings
from tests.cluster.kubernetes.objects import Json, command_pod

ENDED = command_pod({"terminated": {"exitCode": 0}})
UNKNOWN = ApiError(401, "Unauthorized", "Unauthorized")
UNREACHABLE = ApiError(0, "", "Connection refused")


class Answers:
    """An API server that gives these answers one after the other, and the last one from then on."""

    def __init__(self, *answers: Json | ApiError) -> None:
        self._answers = list(answers)

    def call(self, *_: object, **__: object) -> Json:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def lines(self, *_: object) -> Iterator[str]:
        self.call()
        yield "2026-11-22T20:00:00.000000000Z done"


def place(answers: object) -> RunJob:
    return RunJob(cast(Api, answers), "k8s://lab", "hydra", "first")


def followed(*answers: Json | ApiError) -> Json:
    return log_follower.follow(place(Answers(*answers)), ENDED, LogReader("first", "runs/first"), ends=True)


class Clock:
    """The time of the modules that wait: it advances by what they sleep."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    it = Clock()
    monkeypatch.setattr(log_follower, "time", it)
    monkeypatch.setattr("hydra.kubernetes.in_cluster.run_job.time", it)
    return it


@pytest.mark.parametrize("refusal", [UNKNOWN, UNREACHABLE])
def test_a_command_is_followed_on_when_who_asks_is_known(refusal: ApiError, capsys: pytest.CaptureFixture[str]) -> None:
    assert followed(*[refusal] * 5, ENDED) == ENDED
    assert capsys.readouterr().err == "done\n"


@pytest.mark.parametrize("refusal", [UNKNOWN, UNREACHABLE])
@pytest.mark.parametrize("lines", [(), range(10)], ids=["of a silent command", "of one that speaks"])
def test_the_time_for_a_token_begins_when_a_long_log_has_broken(refusal: ApiError, lines: range, clock: Clock) -> None:
    class Long(Answers):
        """Refuses twice after a log that has lasted much longer than what is granted, and broken."""

        broken = False

        def lines(self, *_: object) -> Iterator[str]:
            if self.broken:
                yield from super().lines()
                return
            self.broken = True
            for n in lines:
                clock.now += log_follower._UNREACHABLE_S
                yield f"2026-11-22T20:00:0{n}.000000000Z line"
            clock.now += 0 if lines else 2 * log_follower._UNREACHABLE_S
            raise UNREACHABLE

    answers = place(Long(refusal, refusal, ENDED))
    assert log_follower.follow(answers, ENDED, LogReader("first", "runs/first"), ends=True) == ENDED


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The selectors of what is removed."""
    selectors: list[str] = []

    def remove(_: object, __: str, selector: str, ___: float) -> int:
        selectors.append(selector)
        return 0

    monkeypatch.setattr("hydra.kubernetes.in_cluster.run_job.remove", remove)
    return selectors


LOST = {**ENDED, "status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}}


@pytest.mark.parametrize("seen", [LOST, ApiError(404, "NotFound", "pods p not found")])
def test_where_the_command_is_lost_all_that_it_has_made_is_removed(seen: Json | ApiError, removed: list[str]) -> None:
    with pytest.raises(ClusterError):
        followed(seen)
    assert removed == [object_names.selector("first")]


def test_ctrl_c_for_the_second_time_removes_all_of_the_run_and_not_its_controller_only(
    removed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object) -> Iterator[str]:
        raise KeyboardInterrupt

    # It is asked to end the first time.
    monkeypatch.setattr(api_streams, "execute", lambda *_: iter(()))
    monkeypatch.setattr(api_streams, "log", interrupted)
    assert followed_and_fetched(place(None), ENDED, tmp_path / "run", ends=True) == EXIT_INTERRUPTED
    assert removed == [object_names.selector("first")]


def test_who_is_not_known_any_more_is_told_how_to_go_on() -> None:
    with pytest.raises(ClusterError) as reported:
        followed(UNKNOWN)
    assert str(reported.value) == (
        "cannot read pods in namespace hydra: the API server does not know who asks (Unauthorized); log in to the "
        "cluster again; the run continues in the cluster: hydra fetch first --master k8s://lab --namespace hydra"
    )


# --- making it -------------------------------------------------------------------------------------------------------

BODY: Json = {"metadata": {"name": "hydra-first-controller", "annotations": {"hydra/command": "mine"}}}
OTHER: Json = {"metadata": {"name": "hydra-first-controller", "annotations": {"hydra/command": "another"}}}
CUT = ApiError(0, "", "connection reset")
TAKEN = ApiError(409, "AlreadyExists", 'jobs.batch "hydra-first-controller" already exists')
FORBIDDEN = ApiError(403, "Forbidden", "jobs is forbidden")


@pytest.mark.parametrize(
    "answers", [(BODY,), (CUT, BODY), (CUT, TAKEN, {**BODY, "spec": {}}), (ApiError(429, "", "slowly"), BODY)]
)
def test_an_object_is_made_once_whatever_becomes_of_answers(answers: Sequence[Json | ApiError]) -> None:
    assert place(Answers(*answers)).create("jobs", BODY)["metadata"] == BODY["metadata"]


@pytest.mark.parametrize("answers", [(TAKEN,), (FORBIDDEN,), (CUT, TAKEN, OTHER)])
def test_an_object_of_somebody_else_is_told_from_ones_own(answers: Sequence[Json | ApiError]) -> None:
    with pytest.raises(ObjectNotMadeError):
        place(Answers(*answers)).create("jobs", BODY)


def test_what_may_have_been_made_is_not_said_to_be_missing() -> None:
    with pytest.raises(ClusterError) as refused:
        place(Answers(CUT, FORBIDDEN)).create("jobs", BODY)
    assert not isinstance(refused.value, ObjectNotMadeError)


@pytest.mark.parametrize("error", [FORBIDDEN, CUT, ApiError(503, "", "starting")])
def test_events_that_cannot_be_had_just_now_are_none(error: ApiError) -> None:
    assert place(Answers(error, {"items": [{"reason": "Failed"}]})).events("a", "b") == [{"reason": "Failed"}]


# --- as a whole, or nothing of it -------------------------------------------------------------------------------------


def asked(folder: Path, *, resumed: bool = False, **flags: object) -> Relocation:
    flags = {"quiet": True, "otlp": None, "prometheus": None, **flags}
    out = folder / "runs" / "first"
    return Relocation("kubernetes", KubernetesSettings(), ["zmqfixed", "--quiet"], out, resumed, flags, shipment)


def shipment(master: str, folder: str) -> Shipment:
    assert (master, folder) == (remote_run.MASTER, FILES)
    return Shipment(b"what is done", {})


class Cluster:
    """What is asked of a cluster, which may fail at one of it, and what has been removed there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails: dict[str, BaseException] = {}
        self.made: list[str] = []
        self.tidied: list[str] = []
        monkeypatch.setattr(RunJob, "of", lambda *_: place(None))
        monkeypatch.setattr(RunJob, "pod", lambda _: None)
        monkeypatch.setattr(RunJob, "create", lambda _, kind, body: self._make(kind, body))
        monkeypatch.setattr(RunJob, "delete", lambda its: self.tidied.append(its.run))
        monkeypatch.setattr(remote_run, "await_begin", lambda *_: self._make("begin", None))

    def _make(self, kind: str, body: object) -> Json:
        if kind in self.fails:
            raise self.fails[kind]
        self.made.append(str(body))
        return {"metadata": {"name": "hydra-first-controller", "uid": "u"}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


@pytest.mark.parametrize(
    ("where", "what", "stays"),
    [
        ("jobs", ObjectNotMadeError("there is one"), True),
        ("jobs", ClusterError("no answer"), False),
        ("jobs", Terminated(), False),
        ("secrets", ObjectNotMadeError("a quota"), False),
        ("secrets", KeyboardInterrupt(), False),
        ("secrets", Terminated(), False),
        ("begin", ClusterError("no image"), False),
        ("begin", KeyboardInterrupt(), False),
        ("begin", Terminated(), True),
        ("begin", RuntimeError("a fault of ours"), False),
    ],
)
def test_what_is_half_made_goes(tmp_path: Path, cluster: Cluster, where: str, what: BaseException, stays: bool) -> None:
    cluster.fails[where] = what
    if isinstance(what, KeyboardInterrupt):
        assert remote_run.relocate(asked(tmp_path)) == 130
    else:
        with pytest.raises(type(what)):
            remote_run.relocate(asked(tmp_path))
    assert cluster.tidied == ([] if stays else ["first"])


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"resumed": True}, "--resume continues a run of this machine; leave out --in-cluster"),
        ({"prometheus": ("127.0.0.1", 9464)}, "--prometheus 127.0.0.1:9464 is the Pod itself"),
        ({"prometheus": ("localhost", 9464)}, "write --prometheus 0.0.0.0:9464, and scrape the Pod"),
        ({"prometheus": ("::1", 9464)}, "--prometheus [::1]:9464 is the Pod itself"),
        ({"otlp": "http://[::1]:4318/v1"}, "is the Pod itself"),
        ({"otlp": "http://127.0.0.1"}, "is the Pod itself"),
        ({"otlp": "http://localhost:4318"}, "name the receiver as Pods reach it"),
    ],
)
def test_what_makes_no_sense_in_a_pod_is_refused(
    tmp_path: Path, cluster: Cluster, flags: dict[str, Any], text: str
) -> None:
    with pytest.raises(UsageError) as refused:
        remote_run.relocate(asked(tmp_path, **flags))
    assert text in str(refused.value)
    assert not cluster.made


@pytest.mark.parametrize("url", [None, "http://collector:4318"])
def test_variables_of_exports_go_along_with_otlp_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, url: str | None
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=t0ken")
    cluster.fails["begin"] = KeyboardInterrupt()
    assert remote_run.relocate(asked(tmp_path, prometheus=("0.0.0.0", 9464), otlp=url)) == 130
    assert any("OTEL_EXPORTER_OTLP_HEADERS" in each for each in cluster.made) == bool(url)
