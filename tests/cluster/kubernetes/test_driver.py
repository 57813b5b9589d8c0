"""The driver's process against an API with given answers: what is tried again, made and removed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hydra.engine.driver_pipe import DriverPipe, Message
from hydra.kubernetes import driver
from hydra.kubernetes.api_client import ApiError
from hydra.kubernetes.run_removal import remove
from tests.cluster.kubernetes.objects import Json
from tests.suite.waiting import SOON_S, wait_until

Answer = Callable[[str, str, Json | None], Json]
PODS = "/api/v1/namespaces/lab/pods"
JOBS = "/apis/batch/v1/namespaces/lab/jobs"


class FakeApi:
    """Answers by a function; keeps what it was asked."""

    namespace, server = "lab", "https://api"

    def __init__(self, answer: Answer, *events: Json) -> None:
        self.calls: list[tuple[str, str]] = []
        self.queries: list[Json] = []
        self._answer, self._events = answer, events

    def call(self, method: str, path: str, body: Json | None = None, query: Any = None, _: float = 0.0) -> Json:
        self.calls.append((method, path))
        self.queries.append(dict(query or {}))
        return self._answer(method, path, body)

    def watch(self, path: str, query: Any, timeout_s: int) -> Iterator[Json]:
        self.calls.append(("WATCH", path))
        yield from self._events


class Subject:
    """The process and its messages; the other end of its channel has no process."""

    def __init__(self, api: FakeApi, channel: DriverPipe) -> None:
        self.process, self.api = driver._Process(channel), api
        self.process._api = api  # type: ignore[assignment]
        self.process._namespace, self.process._selector = "lab", "hydra/run=r1"
        self.process._created = True

    def messages(self) -> list[Message]:
        return list(self.process._outbox.take())

    def make(self, kind: str = "Pod", path: str = PODS) -> bool:
        return self.process._make({"tag": "t", "path": path, "body": {"kind": kind, "metadata": {"name": "n"}}})


Begin = Callable[[Answer], Subject]


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begins a process with an API that answers so, and short pauses."""
    monkeypatch.setattr(driver, "_PAUSES_S", (0.01, 0.02))
    with ExitStack() as stack:

        def begun(answer: Answer) -> Subject:
            own, others = socket.socketpair()
            subject = Subject(FakeApi(answer), DriverPipe(others))
            for end in (own, others, subject.process._outbox.bell, subject.process._outbox._ringer):
                stack.enter_context(end)
            return subject

        yield begun


def made(*_: object) -> Json:
    return {"metadata": {"name": "n", "uid": "u1", "resourceVersion": "1"}, "items": [], "status": {}}


def failing(*errors: ApiError) -> Answer:
    left = list(errors)

    def answer(*_: object) -> Json:
        if left:
            raise left.pop(0)
        return made()

    return answer


EXISTS = ApiError(409, "AlreadyExists", 'pods "n" already exists')
NO = ApiError(403, "Forbidden", "no")


@pytest.mark.parametrize("status", [0, 401, 429, 500, 502, 503, 504])
def test_a_call_outlives_an_api_server_that_is_away(begin: Begin, status: int) -> None:
    it = begin(failing(ApiError(status, "", "away"), ApiError(status, "", "away")))
    assert it.make()
    assert [m["kind"] for m in it.messages()] == ["made"]


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_what_is_refused_for_good_is_told_at_once(begin: Begin, status: int) -> None:
    it = begin(failing(ApiError(status, "Forbidden", "no")))
    assert not it.make()
    (reported,) = it.messages()
    assert (reported["kind"], reported["status"], reported["message"], len(it.api.calls)) == (
        "refused",
        status,
        "no",
        1,
    )


def test_a_pod_of_that_name_is_ours_as_nobody_else_has_such_names(begin: Begin) -> None:
    it = begin(failing(EXISTS))
    assert it.make()
    assert it.api.calls == [("POST", PODS)]


def test_a_job_of_that_name_is_another_ones_unless_an_answer_was_lost(begin: Begin) -> None:
    assert not begin(failing(EXISTS)).make("Job", JOBS)
    it = begin(failing(ApiError(502, "", "bad gateway"), EXISTS))
    assert it.make("Job", JOBS)
    assert it.api.calls[-1] == ("GET", f"{JOBS}/n")


def test_nothing_is_made_behind_the_removal(begin: Begin) -> None:
    began = threading.Event()

    def slow(method: str, *_: object) -> Json:
        if method == "POST":
            began.set()
            time.sleep(0.02)  # noqa: TID251  # a slow API server
        return made()

    it = begin(slow)
    wanted = [{"tag": str(n), "path": PODS, "body": {"metadata": {"name": str(n)}}} for n in range(60)]
    it.process._obey({"call": "create", "first": [], "then": wanted})
    assert began.wait(SOON_S)
    it.process._stop()
    methods = [method for method, _ in it.api.calls]
    assert "POST" not in methods[methods.index("DELETE") :]
    assert methods.count("POST") < len(wanted)
    assert it.messages()[-1] == {"kind": "stopped", "left": 0}


def test_a_removal_that_is_refused_is_told(begin: Begin) -> None:
    it = begin(failing(*[NO] * 9))
    it.process._stop()
    assert it.messages()[-1] == {"kind": "stopped", "left": -1, "status": 403, "reason": "Forbidden", "message": "no"}


def test_a_refused_secret_refuses_what_needs_it(begin: Begin) -> None:
    it = begin(failing(NO))
    it.process._create({"first": [{"tag": "s", "path": "/s", "body": {}}], "then": [{"tag": "p", "path": PODS}]})
    assert [(m["kind"], m["tag"]) for m in it.messages()] == [("refused", "s"), ("refused", "p")]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"metadata": {}, "status": {}}, "found"),
        ({"metadata": {"deletionTimestamp": "now"}, "status": {}}, "refused"),
        ({"metadata": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "refused"),
        ({"metadata": {}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}, "found"),
    ],
)
def test_a_job_that_is_about_to_go_is_as_good_as_gone(begin: Begin, job: Json, expected: str) -> None:
    it = begin(lambda *_: job)
    it.process._look({"tag": "owner", "path": JOBS})
    assert [m["kind"] for m in it.messages()] == [expected]


# --- the watch --------------------------------------------------------------------------------------------------------


def watch_until(it: Subject, condition: Callable[[], object], what: str) -> None:
    thread = threading.Thread(target=it.process._watch, args=({},))
    thread.start()
    try:
        wait_until(condition, what)
    finally:
        it.process._stopped.set()
        thread.join(SOON_S)


def test_a_watch_that_ends_at_once_is_begun_again_after_a_pause(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_PAUSES_S", (0.02,))
    it = begin(made)
    began = time.monotonic()
    watch_until(it, lambda: len(it.api.calls) >= 5, "the fourth watch")
    assert time.monotonic() - began >= 0.06


def test_a_watch_outlives_a_kubeconfig_that_is_being_written(begin: Begin) -> None:
    it = begin(failing(ApiError(401, "", "the kubeconfig is none"), ApiError(410, "Expired", "too old")))
    heard: list[str] = []

    def is_back() -> bool:
        heard.extend(m["kind"] for m in it.messages())
        return "online" in heard

    watch_until(it, is_back, "the watch's return")
    assert heard[:1] == ["offline"]
    assert "pods" in heard


# --- the removal ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ready", [True, False])
def test_pods_are_given_up_on_lost_nodes_only(ready: bool) -> None:
    conditions = [{"type": "Ready", "status": str(ready)}]
    node = {"metadata": {"name": "n1"}, "status": {"conditions": conditions}}
    pod = {"metadata": {"name": "p1"}, "spec": {"nodeName": "n1"}}

    def answer(_: str, path: str, __: Json | None) -> Json:
        return {"items": [node] if path.endswith("nodes") else [pod], "metadata": {"resourceVersion": "1"}}

    api = FakeApi(answer)
    assert remove(api, "lab", "hydra/run=r1", time.monotonic()) == 1  # type: ignore[arg-type]
    forced = [query for query in api.queries if query.get("fieldSelector") == "metadata.name=p1"]
    assert len(forced) == (0 if ready else 1)


def test_a_removal_ends_when_the_last_pod_has_gone() -> None:
    last = {"metadata": {"name": "p1"}}
    # If this watch has more events, they are about p2.
    events = ({"type": "DELETED", "object": last}, {"type": "ADDED", "object": {"metadata": {"name": "p2"}}})
    api = FakeApi(lambda *_: {"items": [last], "metadata": {"resourceVersion": "1"}}, *events)
    assert remove(api, "lab", "hydra/run=r1", time.monotonic() + SOON_S) == 0  # type: ignore[arg-type]
    assert api.calls[-1] == ("WATCH", PODS)
