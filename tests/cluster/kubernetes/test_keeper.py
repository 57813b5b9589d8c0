"""The keeper, its script against the controller's door, and what is refused as a run begins."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import IO, Any, NoReturn, cast

import pytest

import hydra
from hydra.engine.driver_engine import DriverProcess
from hydra.engine.specification import Opening
from hydra.errors import ClusterError, UsageError
from hydra.kubernetes import keeper_job, object_names
from hydra.kubernetes import run_start as module
from hydra.kubernetes.keeper_listener import KeeperListener
from hydra.kubernetes.pod_scripts import keeper_pod as inside
from hydra.kubernetes.pods import RunObjects, source
from hydra.kubernetes.run_removal import TRIES_S
from hydra.kubernetes.settings import KubernetesSettings
from hydra.system import Program
from tests.cluster.kubernetes.objects import Json
from tests.cluster.kubernetes.stated import unschedulable
from tests.suite.waiting import SOON_S

Monkey = pytest.MonkeyPatch
HERE = "127.0.0.1"
GOOD = {"python": "3.11", "hydra": "2.0", "digest": "d"}


def family(**settings: Any) -> RunObjects:
    return RunObjects("r1", "lab", {}, KubernetesSettings(**settings), "hydra:1", archive=False)


def job(**settings: Any) -> Json:
    return keeper_job.job(family(**settings), "print('$(HOME)')", "10.0.0.1:7", "hydra:1")


def test_the_job_is_restricted_and_goes_by_itself() -> None:
    it = job()["spec"]
    assert it["ttlSecondsAfterFinished"] <= 30
    assert it["template"]["metadata"]["labels"][object_names.PART] == "keeper"
    spec = it["template"]["spec"]
    assert spec["restartPolicy"] == "Never"
    assert keeper_job.UNREACHABLE == inside.UNREACHABLE
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    (container,) = spec["containers"]
    assert container["command"] == ["python3", "-c", "print('$$(HOME)')"], "the kubelet makes $ of $$"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {e["name"]: e.get("value") for e in container["env"]}["HYDRA_DOOR"] == "10.0.0.1:7"


def test_users_fields_reach_the_jobs_pod() -> None:
    spec = job(priority_class="high", pod={"nodeSelector": {"a": "b"}})["spec"]["template"]["spec"]
    assert (spec["priorityClassName"], spec["nodeSelector"]) == ("high", {"a": "b"})


@pytest.mark.parametrize(
    ("hello", "archive", "expected"),
    [
        (GOOD, False, ""),
        ({**GOOD, "hydra": "1.9"}, False, "the image i holds Hydra 1.9, and this is 2.0"),
        ({**GOOD, "digest": "e"}, False, "the image i holds a Hydra 2.0 of other sources than this one"),
        ({**GOOD, "hydra": "", "digest": ""}, False, "the image i holds no Hydra"),
        ({}, False, "the image i holds no Hydra"),
        ({"python": "3.11"}, True, ""),
        ({"python": "3.9"}, True, "the image i has Python 3.9, and this Hydra runs 3.11"),
    ],
)
def test_an_image_that_will_not_do_is_told(hello: Json, archive: bool, expected: str) -> None:
    what, remedy = keeper_job.refusal(hello, "2.0", "d", "3.11", archive=archive, image="i")
    assert what == expected
    assert bool(remedy) == bool(expected)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"state": {"running": {}}}, None),
        ({"state": {"terminated": {"exitCode": 0, "message": "done"}}}, None),
        ({"state": {"terminated": {"exitCode": 3, "message": "no route\n"}}}, "no route"),
        ({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}, None),
        ({"name": "proxy", "state": {"terminated": {"exitCode": 3, "message": "of a sidecar"}}}, None),
    ],
)
def test_the_last_words_of_a_keeper(state: Json, expected: str | None) -> None:
    assert (
        keeper_job.last_words({"status": {"containerStatuses": [{"name": keeper_job.CONTAINER, **state}]}}) == expected
    )


def test_the_digest_is_of_the_sources_wherever_they_are(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for copy in (one, two):
        (copy / "sub").mkdir(parents=True)
        (copy / "sub" / "a.py").write_text("x = 1")
        (copy / "b.py").write_text("")
    (two / "b.pyc").write_text("not a source")
    assert inside.digest(str(one)) == inside.digest(str(two))
    (two / "b.py").rename(two / "c.py")
    assert inside.digest(str(one)) != inside.digest(str(two))


# --- whether it arrives ----------------------------------------------------------------------------------------------


def keepers_pod(uid: str = "u1", node: str = "n1", **status: Any) -> Json:
    return {
        "metadata": {"name": "k", "labels": {keeper_job.UID: uid}},
        "spec": {"nodeName": node, "containers": [{"name": keeper_job.CONTAINER}]},
        "status": status,
    }


def container(**state: Any) -> Json:
    return {"containerStatuses": [{"name": keeper_job.CONTAINER, "image": "hydra:1", "state": state}]}


CREATING = container(waiting={"reason": "ContainerCreating"})
PULLING = {"conditions": [{"type": "PodReadyToStartContainers", "status": "True"}], **CREATING}
RUNNING = container(running={})


def arrival(pod: Json | None, *, began: float = 100.0) -> keeper_job.KeeperStartup:
    """A keeper that is waited for, of which this Pod was seen."""
    startup = keeper_job.KeeperStartup(family(), "10.0.0.1", "u1", began)
    if pod is not None:
        startup.see(pod)
    return startup


@pytest.mark.parametrize(
    ("pod", "last_s", "expected"),
    [
        (None, 29.9, "made no Pod within 30 s"),
        (keepers_pod("another", **RUNNING), 29.9, "made no Pod within 30 s"),
        (keepers_pod(**RUNNING), 9.9, "no Pod reached this machine at 10.0.0.1 within 10 s"),
        (keepers_pod(node="", **unschedulable("cpu")), 29.9, "the first Pod, of the image hydra:1: cpu"),
        (keepers_pod(**container(waiting={"reason": "ErrImageNeverPull"})), 1.9, "is not on the node"),
        (keepers_pod(**container(waiting={"reason": "ErrImagePull", "message": "timeout"})), 19.9, "cannot be pulled"),
        (keepers_pod(**PULLING), 599.0, "is being pulled"),
    ],
)
def test_a_keeper_is_waited_for_as_long_as_it_may_come(pod: Json | None, last_s: float, expected: str) -> None:
    it = arrival(pod)
    assert it.failure(100.0) == it.failure(100.0 + last_s) == ("", "")
    assert expected in it.failure(100.0 + last_s + 2.0)[0]


@pytest.mark.parametrize(
    ("pod", "waits"),
    [
        (None, "its Job makes it"),
        (keepers_pod(node=""), "the scheduler has not looked at it yet"),
        (keepers_pod(**PULLING), "the image is being pulled"),
        (keepers_pod(**CREATING), "it starts"),
        (keepers_pod(**RUNNING), "it dials this machine at 10.0.0.1"),
    ],
)
def test_whoever_waits_for_a_keeper_is_told_for_what(pod: Json | None, waits: str) -> None:
    assert arrival(pod).waits() == waits


def test_a_keeper_that_does_not_reach_the_controller_is_told_at_once_with_its_own_words() -> None:
    pod = keepers_pod(**container(terminated={"exitCode": 3, "message": "Connection refused"}))
    what, remedy = arrival(pod).failure(100.1)
    assert what == "Pods do not reach this machine at 10.0.0.1: Connection refused"
    assert "--advertise" in remedy


@pytest.mark.parametrize(("ratio", "limits"), [(0.0, {"memory": "128Mi"}), (2.0, {"memory": "128Mi", "cpu": "100m"})])
def test_it_has_a_limit_of_cpus_where_groups_have_one(ratio: float, limits: Json) -> None:
    (container,) = job(cpu_limit_ratio=ratio)["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == limits


def test_a_job_that_makes_no_pod_is_asked_for_the_reason_once() -> None:
    it = arrival(None)
    late = 100.0 + keeper_job.MADE_WITHIN_S
    assert [it.needs_events(now) for now in (100.0, late, late)] == [False, True, False]
    it.take_events([])
    assert it.failure(late) == ("", "")
    message = 'Error creating: pods "k-1" is forbidden: failed quota: q: must specify limits.cpu for: keeper'
    it.take_events([{"type": "Warning", "reason": "FailedCreate", "message": message}])
    what, remedy = it.failure(late)
    assert what.endswith(": failed quota: q: must specify limits.cpu for: keeper")
    assert remedy == "set cpu_limit_ratio in [kubernetes]"


def test_a_job_that_has_made_its_pod_is_not_asked() -> None:
    assert not arrival(keepers_pod(**RUNNING)).needs_events(200.0)


# --- the script and the door -----------------------------------------------------------------------------------------


class Opened:
    """A door, and who has come through it."""

    def __init__(self) -> None:
        self.came: Queue[Json] = Queue()
        self.door = KeeperListener(HERE, self.came.put)

    def dialled(self) -> socket.socket:
        return socket.create_connection((HERE, self.door.port), timeout=SOON_S)


@pytest.fixture
def opened() -> Iterator[Opened]:
    it = Opened()
    it.door.token = "secret"
    yield it
    it.door.close()


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a keeper that ends, and its stderr."""
    return process.wait(SOON_S), cast(IO[str], process.stderr).read()


@contextmanager
def started(port: int, **times: float) -> Iterator[subprocess.Popen[str]]:
    """The script as a Pod runs it, with other times than its own."""
    text = source("keeper_pod")
    for name, value in times.items():
        before = f"{name} = {getattr(inside, name)}\n"
        assert before in text
        text = text.replace(before, f"{name} = {value}\n")
    environment = os.environ | {"HYDRA_DOOR": f"{HERE}:{port}", "HYDRA_DOOR_TOKEN": "secret", "HYDRA_AGENT": "n1"}
    process = subprocess.Popen([sys.executable, "-c", text], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def unfriendly() -> Iterator[int]:
    """The port of a listener that hangs up on every client."""
    with socket.create_server((HERE, 0)) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.tier("test")
def test_a_keeper_says_what_its_image_holds_and_ends_with_the_run(opened: Opened) -> None:
    with started(opened.door.port) as process:
        hello = opened.came.get(timeout=SOON_S)
        assert hello["node"] == "n1"
        assert hello["python"] == "{}.{}".format(*sys.version_info)
        assert hello["digest"] == inside.digest(str(Path(hydra.__file__).parent))
        opened.door.close()
        assert end_of(process) == (0, "")


@pytest.mark.tier("test")
def test_a_keeper_whose_controller_is_gone_tries_for_a_while_and_ends_well() -> None:
    with socket.create_server((HERE, 0)) as listener, started(listener.getsockname()[1], AGAIN_WITHIN_S=0.5) as process:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"ok")
        connection, _ = listener.accept()  # it has come back
        with connection:
            assert json.loads(connection.recv(4096))["token"] == "secret"
            listener.close()
        assert end_of(process) == (0, "")


@pytest.mark.tier("test")
def test_a_keeper_does_not_stay_for_somebody_else_who_answers_at_the_port() -> None:
    with unfriendly() as port, started(port, FIRST_WITHIN_S=0.3, EVERY_S=0.1) as process:
        code, text = end_of(process)
        assert (code, "another program answers there" in text) == (inside.UNREACHABLE, True)


@pytest.mark.tier("test")
def test_a_keeper_that_reaches_nobody_says_so() -> None:
    with socket.create_server((HERE, 0)) as listener:
        port = listener.getsockname()[1]
    with started(port, FIRST_WITHIN_S=0.3) as process:
        text = f"{HERE}:{port} cannot be reached from a Pod: Connection refused\n"
        assert end_of(process) == (inside.UNREACHABLE, text)


@pytest.mark.tier("test")
@pytest.mark.parametrize("text", [b"", b"{}\n", b"nonsense\n", b"[1]\n", b'{"token": "a"}\n', b"x" * 5000, b"\xff\n"])
def test_strangers_at_the_door_are_not_heard(opened: Opened, text: bytes) -> None:
    with opened.dialled() as stranger:
        # A peer that sends too much is disconnected.
        with suppress(OSError):
            stranger.sendall(text)
            stranger.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            assert stranger.recv(16) == b""
    assert opened.came.empty()


@pytest.mark.tier("test")
def test_a_door_whose_keeper_is_not_known_yet_hears_nobody(opened: Opened) -> None:
    opened.door.token = ""
    with opened.dialled() as stranger:
        stranger.sendall(b'{"token": ""}\n')
        assert stranger.recv(16) == b""
    assert opened.came.empty()


@pytest.mark.tier("test")
def test_a_closed_door_leaves_no_thread(opened: Opened) -> None:
    assert "door" in {thread.name for thread in threading.enumerate()}
    with opened.dialled() as connection:
        connection.sendall(b'{"token": "secret"}\n')
        opened.came.get(timeout=SOON_S)
        opened.door.close()
        assert b"".join(iter(lambda: connection.recv(16), b"")) == b"okbye"
    for thread in threading.enumerate():
        if thread.name in ("door", "keeper"):
            thread.join(SOON_S)
            assert not thread.is_alive()


# --- how a run begins -------------------------------------------------------------------------------------------------


class StartedError(Exception):
    """The cluster would be asked now."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Monkey) -> Path:
    """Where the run would be."""

    def started(*_: object) -> NoReturn:
        raise StartedError

    monkeypatch.setattr(module, "check_context", lambda _: None)
    monkeypatch.setattr(module, "DriverProcess", started)
    monkeypatch.delenv(module.POD_IP, raising=False)
    return tmp_path / "run"


def begin(folder: Path, settings: KubernetesSettings) -> None:
    with module.begun(Opening("k8s://", (), settings, "run", folder, list[Program])):
        pass


@pytest.mark.tier("test")
@pytest.mark.parametrize("advertise", ["127.0.0.1", "localhost", "0.0.0.0", "192.0.2.1"])  # is refused
def test_an_address_that_no_pod_can_reach_is_refused_before_anything_is_made(folder: Path, advertise: str) -> None:
    with pytest.raises(UsageError, match=f"--advertise {advertise} "):
        begin(folder, KubernetesSettings(advertise=advertise))
    assert not folder.exists()


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("advertise", "pod", "own"),
    [("127.0.0.1", {"hostNetwork": True}, ""), ("127.0.0.1", {}, "127.0.0.2"), ("", {}, "")],
)
def test_what_a_pod_may_reach_is_tried(folder: Path, monkeypatch: Monkey, advertise: str, pod: Json, own: str) -> None:
    if own:  # this is a Pod: the cluster file may be another machine's
        monkeypatch.setenv(module.POD_IP, own)
    with pytest.raises(StartedError):
        begin(folder, KubernetesSettings(advertise=advertise, pod=pod))


@pytest.mark.parametrize("hello", [{"python": "3.11"}, {"python": "3.11", "hydra": "0.0.1", "digest": "d"}])
def test_an_image_with_another_hydra_is_what_its_user_gave(hello: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="the image hydra:1 holds"):
        keep({"kind": "keeper", "hello": hello})


def keep(*text: Json) -> None:
    """Makes a keeper, of which the driver then reports this."""
    messages = [
        {"kind": "door", "port": 1, "message": ""},
        {"kind": "made", "tag": "hydra-run-keeper", "name": "hydra-run-keeper", "uid": "u"},
        *text,
    ]
    driver = SimpleNamespace(closed=False, send=lambda _: None, receive=lambda _: [messages.pop(0)] if messages else [])
    family = RunObjects("run", "lab", {}, KubernetesSettings(), "hydra:1", archive=False)
    module._Beginning(cast(DriverProcess, driver), lambda _: None).keep(family, "10.0.0.1")


def offline(status: int) -> Json:
    return {"kind": "offline", "status": status, "message": "no"}


@pytest.mark.parametrize("status", [0, 401, 429, 500, 503])
def test_a_watch_that_is_refused_for_a_moment_does_not_end_a_beginning(status: int) -> None:
    with pytest.raises(UsageError, match="the image hydra:1 holds"):  # so its keeper has been heard
        keep(offline(status), {"kind": "keeper", "hello": {"python": "3.11"}})


def test_a_watch_that_is_refused_for_good_ends_a_beginning_at_once() -> None:
    with pytest.raises(ClusterError, match="cannot watch pods"):
        keep(offline(403), {"kind": "keeper", "hello": {"python": "3.11"}})


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ([offline(401)], "cannot watch pods: .*who asks"),
        ([offline(401), {"kind": "online"}], "the keeper's Job made no Pod within 30 s"),
    ],
)
def test_a_watch_refused_for_a_minute_ends_a_beginning(text: list[Json], refusal: str, monkeypatch: Monkey) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with pytest.raises(ClusterError, match=refusal):
        keep(*text)
    assert (next(seconds) > TRIES_S) == (len(text) == 1)
