"""The driver's process against an API that answers as it is told: what is tried again, made and removed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hydra.cluster.channel import Channel, Message
from hydra.cluster.kubernetes import driver
from hydra.cluster.kubernetes.access import ApiError
from hydra.cluster.kubernetes.removal import remove

Json = dict[str, Any]
PODS = "/api/v1/namespaces/lab/pods"
JOBS = "/apis/batch/v1/namespaces/lab/jobs"


class FakeApi:
    """Answers by a function; keeps what it was asked."""

    namespace, server = "lab", "https://api"

    def __init__(self, answer: Callable[[str, str, Json | None], Json]) -> None:
        self.asked: list[tuple[str, str]] = []
        self.queries: list[Json] = []
        self._answer = answer
        self.events: list[Callable[[], Json]] = []

    def call(self, method: str, path: str, body: Json | None = None, query: Any = None, _: float = 0.0) -> Json:
        self.asked.append((method, path))
        self.queries.append(dict(query or {}))
        return self._answer(method, path, body)

    def watch(self, path: str, query: Any, timeout_s: int) -> Iterator[Json]:
        self.asked.append(("WATCH", path))
        while self.events:
            yield self.events.pop(0)()


class Subject:
    def __init__(self, answer: Callable[[str, str, Json | None], Json]) -> None:
        self._ours, theirs = socket.socketpair()
        self.process = driver._Process(Channel(theirs))
        self.api = FakeApi(answer)
        self.process._api = self.api  # type: ignore[assignment]
        self.process._namespace, self.process._selector = "lab", "hydra/run=r1"

    def said(self) -> list[Message]:
        return list(self.process._outbox.take())

    def make(self, kind: str = "Pod", path: str = PODS) -> bool:
        return self.process._make({"tag": "t", "path": path, "body": {"kind": kind, "metadata": {"name": "n"}}})


def made(method: str, path: str, body: Json | None) -> Json:
    return {"metadata": {"name": "n", "uid": "u1", "resourceVersion": "1"}, "items": [], "status": {}}


def failing(*errors: ApiError, then: Callable[[str, str, Json | None], Json] = made) -> Callable[..., Json]:
    left = list(errors)

    def answer(method: str, path: str, body: Json | None) -> Json:
        if left:
            raise left.pop(0)
        return then(method, path, body)

    return answer


EXISTS = ApiError(409, "AlreadyExists", 'pods "n" already exists')


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_PAUSES_S", (0.01, 0.02))


@pytest.mark.parametrize("status", [0, 401, 429, 500, 502, 503, 504])
def test_a_call_outlives_an_api_server_that_is_away(status: int) -> None:
    it = Subject(failing(ApiError(status, "", "away"), ApiError(status, "", "away")))
    assert it.make()
    assert [m["kind"] for m in it.said()] == ["made"]


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_what_is_refused_for_good_is_told_at_once(status: int) -> None:
    it = Subject(failing(ApiError(status, "Forbidden", "no")))
    assert not it.make()
    (told,) = it.said()
    assert (told["kind"], told["status"], told["message"], len(it.api.asked)) == ("refused", status, "no", 1)


def test_a_pod_of_that_name_is_ours_as_nobody_else_has_such_names() -> None:
    it = Subject(failing(EXISTS))
    assert it.make()
    assert it.api.asked == [("POST", PODS)]


def test_a_job_of_that_name_is_another_ones_unless_an_answer_was_lost() -> None:
    it = Subject(failing(EXISTS))
    assert not it.make("Job", JOBS)
    it = Subject(failing(ApiError(502, "", "bad gateway"), EXISTS))
    assert it.make("Job", JOBS)
    assert it.api.asked[-1] == ("GET", f"{JOBS}/n")


def test_nothing_is_made_behind_the_removal() -> None:
    began = threading.Event()

    def slow(method: str, path: str, body: Json | None) -> Json:
        if method == "POST":
            began.set()
            time.sleep(0.05)
        return made(method, path, body)

    it = Subject(slow)
    it.process._created = True
    wanted = [{"tag": str(n), "path": PODS, "body": {"metadata": {"name": str(n)}}} for n in range(60)]
    it.process._obey({"call": "create", "first": [], "then": wanted})
    assert began.wait(10)
    it.process._stop()
    methods = [method for method, _ in it.api.asked]
    assert "POST" not in methods[methods.index("DELETE") :]
    assert methods.count("POST") < len(wanted)
    assert it.said()[-1] == {"kind": "stopped", "left": 0}


def test_a_removal_that_is_refused_is_told() -> None:
    it = Subject(failing(*[ApiError(403, "Forbidden", "no")] * 9))
    it.process._created = True
    it.process._stop()
    told = {"status": 403, "reason": "Forbidden", "message": "no"}
    assert it.said()[-1] == {"kind": "stopped", "left": -1, **told}


def test_a_refused_secret_refuses_what_needs_it() -> None:
    it = Subject(failing(ApiError(403, "Forbidden", "no")))
    it.process._create({"first": [{"tag": "s", "path": "/s", "body": {}}], "then": [{"tag": "p", "path": PODS}]})
    assert [(m["kind"], m["tag"]) for m in it.said()] == [("refused", "s"), ("refused", "p")]


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({"metadata": {}, "status": {}}, "found"),
        ({"metadata": {"deletionTimestamp": "now"}, "status": {}}, "refused"),
        ({"metadata": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "refused"),
        ({"metadata": {}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}, "found"),
    ],
)
def test_a_job_that_is_about_to_go_is_as_good_as_gone(job: Json, says: str) -> None:
    it = Subject(lambda *_: job)
    it.process._look({"tag": "owner", "path": JOBS})
    assert [m["kind"] for m in it.said()] == [says]


# --- the watch --------------------------------------------------------------------------------------------------------


def watching(it: Subject, until: Callable[[], bool]) -> None:
    """Watches until something is so."""
    thread = threading.Thread(target=it.process._watch, args=({},))
    thread.start()
    deadline = time.monotonic() + 10
    while not until() and time.monotonic() < deadline:
        time.sleep(0.01)
    it.process._stopped.set()
    thread.join(10)
    assert until()


def test_a_watch_that_ends_at_once_is_not_begun_again_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_PAUSES_S", (0.05,))
    it = Subject(made)
    began = time.monotonic()
    watching(it, lambda: len(it.api.asked) >= 6)
    assert time.monotonic() - began >= 0.15


def test_a_watch_outlives_a_kubeconfig_that_is_being_written() -> None:
    errors = [ApiError(401, "", "the kubeconfig is none"), ApiError(410, "Expired", "too old")]

    def answer(method: str, path: str, body: Json | None) -> Json:
        if errors:
            raise errors.pop(0)
        return made(method, path, body)

    it = Subject(answer)
    heard: list[str] = []

    def is_back() -> bool:
        heard.extend(m["kind"] for m in it.said())
        return "online" in heard

    watching(it, is_back)
    assert heard[:1] == ["offline"]
    assert "pods" in heard


# --- the removal ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ready", [True, False])
def test_pods_are_given_up_on_lost_nodes_only(ready: bool) -> None:
    conditions = [{"type": "Ready", "status": str(ready)}]
    node = {"metadata": {"name": "n1"}, "status": {"conditions": conditions}}
    pod = {"metadata": {"name": "p1"}, "spec": {"nodeName": "n1"}}

    def answer(method: str, path: str, body: Json | None) -> Json:
        return {"items": [node] if path.endswith("nodes") else [pod], "metadata": {"resourceVersion": "1"}}

    api = FakeApi(answer)
    assert remove(api, "lab", "hydra/run=r1", time.monotonic() + 0.5) == 1  # type: ignore[arg-type]
    forced = [query for query in api.queries if query.get("fieldSelector") == "metadata.name=p1"]
    assert len(forced) == (0 if ready else 1)


def test_a_removal_ends_when_the_last_pod_has_gone() -> None:
    def answer(method: str, path: str, body: Json | None) -> Json:
        return {"items": [{"metadata": {"name": "p1"}}], "metadata": {"resourceVersion": "1"}}

    api = FakeApi(answer)
    api.events = [lambda: {"type": "DELETED", "object": {"metadata": {"name": "p1"}}}]
    began = time.monotonic()
    assert remove(api, "lab", "hydra/run=r1", began + 20) == 0  # type: ignore[arg-type]
    assert time.monotonic() - began < 5
