"""The keeper: its Job, what it says of an image, and its script against the controller's door."""

from __future__ import annotations

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
from typing import Any

import pytest

import hydra
from hydra.cluster.kubernetes import keeper, names
from hydra.cluster.kubernetes.door import Door
from hydra.cluster.kubernetes.inside import keeper as inside
from hydra.cluster.kubernetes.pods import Family
from hydra.cluster.kubernetes.scripts import source
from hydra.cluster.kubernetes.settings import KubernetesSettings

Json = dict[str, Any]

HERE = "127.0.0.1"
GOOD = {"python": "3.11", "hydra": "2.0", "digest": "d"}


def family(**settings: Any) -> Family:
    return Family("r1", "lab", {}, KubernetesSettings(**settings), "hydra:1", archive=False)


def job(**settings: Any) -> Json:
    return keeper.job(family(**settings), "print('$(HOME)')", "10.0.0.1:7", "hydra:1")


def test_the_job_is_restricted_and_goes_by_itself() -> None:
    it = job()
    assert it["spec"]["ttlSecondsAfterFinished"] <= 30
    template = it["spec"]["template"]
    assert template["metadata"]["labels"][names.PART] == "keeper"
    spec = template["spec"]
    assert spec["restartPolicy"] == "Never"
    assert keeper.UNREACHABLE == inside.UNREACHABLE
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
    ("hello", "archive", "says"),
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
def test_an_image_that_will_not_do_is_told(hello: Json, archive: bool, says: str) -> None:
    what, remedy = keeper.refusal(hello, "2.0", "d", "3.11", archive=archive, image="i")
    assert what == says
    assert bool(remedy) == bool(says)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"state": {"running": {}}}, None),
        ({"state": {"terminated": {"exitCode": 0, "message": "done"}}}, None),
        ({"state": {"terminated": {"exitCode": 3, "message": "no route\n"}}}, "no route"),
        ({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}, None),
        ({"name": "proxy", "state": {"terminated": {"exitCode": 3, "message": "of a sidecar"}}}, None),
    ],
)
def test_the_last_words_of_a_keeper(state: Json, says: str | None) -> None:
    assert keeper.last_words({"status": {"containerStatuses": [{"name": keeper.CONTAINER, **state}]}}) == says


def test_the_digest_is_of_the_sources_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "one" / "sub").mkdir(parents=True)
    (tmp_path / "two" / "sub").mkdir(parents=True)
    for copy in ("one", "two"):
        (tmp_path / copy / "sub" / "a.py").write_text("x = 1")
        (tmp_path / copy / "b.py").write_text("")
    (tmp_path / "two" / "b.pyc").write_text("not a source")
    one, two = (inside.digest(str(tmp_path / copy)) for copy in ("one", "two"))
    assert one == two
    (tmp_path / "two" / "b.py").rename(tmp_path / "two" / "c.py")
    assert inside.digest(str(tmp_path / "two")) != one


# --- whether it arrives ----------------------------------------------------------------------------------------------


def keepers_pod(uid: str = "u1", node: str = "n1", **status: Any) -> Json:
    return {
        "metadata": {"name": "k", "labels": {keeper.UID: uid}},
        "spec": {"nodeName": node, "containers": [{"name": keeper.CONTAINER}]},
        "status": status,
    }


def container(**state: Any) -> Json:
    return {"containerStatuses": [{"name": keeper.CONTAINER, "image": "hydra:1", "state": state}]}


UNPLACED: Json = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "cpu"}]
}
PULLED: Json = {"conditions": [{"type": "PodReadyToStartContainers", "status": "True"}]}


@pytest.mark.parametrize(
    ("pod", "last_s", "says"),
    [
        (None, 29.9, "made no Pod within 30 s"),
        (keepers_pod("another", **container(running={})), 29.9, "made no Pod within 30 s"),
        (keepers_pod(**container(running={})), 9.9, "no Pod reached this machine at 10.0.0.1 within 10 s"),
        (keepers_pod(node="", **UNPLACED), 29.9, "the first Pod, of the image hydra:1: cpu"),
        (keepers_pod(**container(waiting={"reason": "ErrImageNeverPull"})), 1.9, "is not on the node"),
        (keepers_pod(**container(waiting={"reason": "ErrImagePull", "message": "timeout"})), 19.9, "cannot be pulled"),
        (keepers_pod(**PULLED, **container(waiting={"reason": "ContainerCreating"})), 599.0, "is being pulled"),
    ],
)
def test_a_keeper_is_waited_for_as_long_as_it_may_come(pod: Json | None, last_s: float, says: str) -> None:
    arrival = keeper.Arrival(family(), "10.0.0.1", "u1", 100.0)
    if pod is not None:
        arrival.see(pod)
    assert arrival.failure(100.0) == ("", "")
    assert arrival.failure(100.0 + last_s) == ("", "")
    assert says in arrival.failure(100.0 + last_s + 2.0)[0]


@pytest.mark.parametrize(
    ("pod", "waits"),
    [
        (None, "its Job makes it"),
        (keepers_pod(node=""), "the scheduler has not looked at it yet"),
        (keepers_pod(**PULLED, **container(waiting={"reason": "ContainerCreating"})), "the image is being pulled"),
        (keepers_pod(**container(waiting={"reason": "ContainerCreating"})), "it starts"),
        (keepers_pod(**container(running={})), "it dials this machine at 10.0.0.1"),
    ],
)
def test_whoever_waits_for_a_keeper_is_told_for_what(pod: Json | None, waits: str) -> None:
    arrival = keeper.Arrival(family(), "10.0.0.1", "u1", 100.0)
    if pod is not None:
        arrival.see(pod)
    assert arrival.waits() == waits


def test_a_keeper_that_does_not_reach_the_controller_is_told_at_once_with_its_own_words() -> None:
    arrival = keeper.Arrival(family(), "10.0.0.1", "u1", 0.0)
    arrival.see(keepers_pod(**container(terminated={"exitCode": 3, "message": "Connection refused"})))
    what, remedy = arrival.failure(0.1)
    assert what == "Pods do not reach this machine at 10.0.0.1: Connection refused"
    assert "--advertise" in remedy


@pytest.mark.parametrize(("ratio", "limits"), [(0.0, {"memory": "128Mi"}), (2.0, {"memory": "128Mi", "cpu": "100m"})])
def test_it_has_a_limit_of_cpus_where_groups_have_one(ratio: float, limits: Json) -> None:
    (container,) = job(cpu_limit_ratio=ratio)["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == limits


def test_a_job_that_makes_no_pod_is_asked_for_the_reason_once() -> None:
    arrival = keeper.Arrival(family(), "10.0.0.1", "u1", 100.0)
    late = 100.0 + keeper.MADE_WITHIN_S
    assert [arrival.asks(now) for now in (100.0, late, late)] == [False, True, False]
    arrival.told([])
    assert arrival.failure(late) == ("", "")
    message = 'Error creating: pods "k-1" is forbidden: failed quota: q: must specify limits.cpu for: keeper'
    arrival.told([{"type": "Warning", "reason": "FailedCreate", "message": message}])
    what, remedy = arrival.failure(late)
    assert what.endswith(": failed quota: q: must specify limits.cpu for: keeper")
    assert remedy == "set cpu_limit_ratio in [kubernetes]"


def test_a_job_that_has_made_its_pod_is_not_asked() -> None:
    arrival = keeper.Arrival(family(), "10.0.0.1", "u1", 100.0)
    arrival.see(keepers_pod(**container(running={})))
    assert not arrival.asks(200.0)


# --- the script and the door -----------------------------------------------------------------------------------------


class Opened:
    """A door, and who has come through it."""

    def __init__(self) -> None:
        self.came: Queue[Json] = Queue()
        self.door = Door(HERE, self.came.put)
        self.door.token = "secret"


@pytest.fixture
def opened() -> Iterator[Opened]:
    it = Opened()
    yield it
    it.door.close()


@contextmanager
def started(port: int, token: str = "secret", **times: float) -> Iterator[subprocess.Popen[str]]:
    """The script as a Pod runs it, with other times than its own."""
    text = source("keeper")
    for name, value in times.items():
        before = f"{name} = {getattr(inside, name)}\n"
        assert before in text
        text = text.replace(before, f"{name} = {value}\n")
    environment = os.environ | {"HYDRA_DOOR": f"{HERE}:{port}", "HYDRA_DOOR_TOKEN": token, "HYDRA_AGENT": "n1"}
    process = subprocess.Popen([sys.executable, "-c", text], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def unfriendly() -> Iterator[int]:
    """The port of a listener that hangs up on everybody."""
    with socket.create_server((HERE, 0)) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.processes
def test_a_keeper_says_what_its_image_holds_and_ends_with_the_run(opened: Opened) -> None:
    with started(opened.door.port) as process:
        hello = opened.came.get(timeout=20)
        assert hello["node"] == "n1"
        assert hello["python"] == "{}.{}".format(*sys.version_info)
        assert hello["digest"] == inside.digest(str(Path(hydra.__file__).parent))
        opened.door.close()
        assert process.wait(10) == 0


@pytest.mark.processes
def test_a_keeper_whose_controller_is_gone_tries_for_a_while_and_ends_well() -> None:
    with socket.create_server((HERE, 0)) as listener:
        port = listener.getsockname()[1]
        with started(port, AGAIN_WITHIN_S=1.0) as process:
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(b"ok")
            connection.close()
            connection, _ = listener.accept()  # it has come back
            assert json.loads(connection.recv(4096))["token"] == "secret"
            listener.close()
            connection.close()
            assert process.wait(10) == 0
            assert process.stderr is not None
            assert process.stderr.read() == ""


@pytest.mark.processes
def test_a_keeper_does_not_stay_for_somebody_else_who_answers_at_the_port() -> None:
    with unfriendly() as port, started(port, FIRST_WITHIN_S=1.0, EVERY_S=0.1) as process:
        assert process.wait(10) == inside.UNREACHABLE
        assert process.stderr is not None
        assert "somebody else answers there" in process.stderr.read()


@pytest.mark.processes
def test_a_keeper_that_reaches_nobody_says_so() -> None:
    with socket.create_server((HERE, 0)) as listener:
        port = listener.getsockname()[1]
    with started(port, FIRST_WITHIN_S=0.6) as process:
        assert process.wait(10) == inside.UNREACHABLE
        assert process.stderr is not None
        assert process.stderr.read() == f"{HERE}:{port} cannot be reached from a Pod: Connection refused\n"


@pytest.mark.parametrize(
    "said", [b"", b"{}\n", b"nonsense\n", b"[1]\n", b'{"token": "guess"}\n', b"x" * 5000, b"\xff\n"]
)
def test_strangers_at_the_door_are_not_heard(opened: Opened, said: bytes) -> None:
    with socket.create_connection((HERE, opened.door.port), timeout=10) as stranger:
        # Whoever says too much is hung up on while he speaks.
        with suppress(OSError):
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            assert stranger.recv(16) == b""
    assert opened.came.empty()


def test_a_door_whose_keeper_is_not_known_yet_hears_nobody() -> None:
    came: Queue[Json] = Queue()
    door = Door(HERE, came.put)
    try:
        with socket.create_connection((HERE, door.port), timeout=10) as stranger:
            stranger.sendall(b'{"token": ""}\n')
            assert stranger.recv(16) == b""
        assert came.empty()
    finally:
        door.close()


def test_a_closed_door_leaves_no_thread(opened: Opened) -> None:
    before = {thread.name for thread in threading.enumerate()}
    assert "door" in before
    with socket.create_connection((HERE, opened.door.port), timeout=10) as connection:
        connection.sendall(b'{"token": "secret"}\n')
        opened.came.get(timeout=10)
        opened.door.close()
        said = b""
        while piece := connection.recv(16):
            said += piece
        assert said == b"okbye"
    for thread in threading.enumerate():
        if thread.name in ("door", "keeper"):
            thread.join(10)
            assert not thread.is_alive()
