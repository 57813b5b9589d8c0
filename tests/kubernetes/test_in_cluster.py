"""Commands that run in the cluster as a whole: their log, their run directory, and what becomes of it when they die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hydra.kubernetes.in_cluster.job_objects import LOG_KEPT_S
from hydra.store.database import RunStore
from tests.integration.command import Hydra, hydra, steps, table
from tests.kubernetes import nodes
from tests.kubernetes.labs import Lab, granted, published
from tests.kubernetes.rig import Rig
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = pytest.mark.tier("all")

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
QUICK = (
    sys.executable,
    "-c",
    "from hydra.kubernetes.in_cluster import job_objects as o; o.FILES_WITHIN_S = 3;"
    "from hydra.cli.main import main; main()",
)
"""Hydra, but for the time that a Job waits for its files."""
SCENARIO = """
system = "zmq"
client = "pyzmq"
table = "fixed"
sweep = {clients = [2], duration_s = 1.0}
settings.rate = 200
publisher.demand.base_mem = 256
subscriber.demand.base_mem = 256
load = {shape = "recorded", file = "trace.csv"}
"""


class InCluster(Lab):
    """A lab whose commands run in the cluster as a whole."""

    @property
    def where(self) -> list[str]:
        return ["--master", "kubernetes", "--namespace", self.space, "--config", "cluster.toml"]

    def starts(self, *words: str, program: Sequence[str] = Hydra) -> subprocess.Popen[str]:
        """A command whose standard error is the file ``text``."""
        with (self.folder / "said").open("w") as text:
            whole, env = [*program, *words, *self.where], {**os.environ, "KUBECONFIG": str(self.account.kubeconfig)}
            return subprocess.Popen(whole, stdout=subprocess.DEVNULL, stderr=text, text=True, cwd=self.folder, env=env)

    def await_text(self, text: str) -> None:
        """Waits until the command prints it."""
        output = self.folder / "said"
        wait_until(lambda: text in output.read_text(), f"{text!r} from the command", LONG_S, saw=output.read_text)


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Iterator[InCluster]:
    with granted(rig, "hydra", "nodes") as (space, account):
        (tmp_path / "cluster.toml").write_text(published(rig))
        yield InCluster(rig, space, account, tmp_path)


def test_a_command_runs_in_the_cluster_and_its_run_directory_is_fetched(lab: InCluster) -> None:
    (lab.folder / "mine.toml").write_text(SCENARIO)
    (lab.folder / "trace.csv").write_text("".join(f"{at / 100}\n" for at in range(100)))
    done = lab.hydra("run", "./mine.toml", "--in-cluster", "--out", "runs/first")
    run = lab.folder / "runs" / "first"
    assert "step 1" in done.stderr
    assert "runs/first" in done.stderr.splitlines()[-1]
    assert done.stdout.strip() == (run / "table.md").read_text().strip()
    (row,) = table(run)
    assert float(row["total_tx"]) > 0
    with RunStore.open(run) as store:
        typed = store.meta("command_line")
    assert typed == f"hydra run ./mine.toml --in-cluster --out runs/first {' '.join(lab.where)}"
    assert [status for _, status in steps(run)] == ["ok"]
    assert json.loads((run / "rows.json").read_text())["rows"][0]["total_tx"] == float(row["total_tx"])
    assert lab.left() == []


def test_what_was_measured_is_fetched_whoever_is_ended(lab: InCluster) -> None:
    # More steps than are measured: the run continues while both commands fetch from it.
    sweep = ("--clients", "2,3,4", "--repeat", "5", "--duration", "2", "--rate", "100")
    command = lab.starts("zmqfixed", "--in-cluster", *sweep, "--out", "runs/killed")
    lab.await_text("step 1 of 15")
    command.terminate()
    assert command.wait(SOON_S) == 130
    lab.await_text("the run stays in the cluster: hydra fetch killed --master kubernetes")
    output = lab.hydra("fetch", "killed", "--out", "runs/part").stdout
    assert "runs/part has what killed has measured so far; the run is still running" in output
    assert len(table(lab.folder / "runs" / "part")) >= 1
    looking = lab.starts("fetch", "killed", "--follow", "--out", "looked")
    lab.await_text("step")
    looking.send_signal(signal.SIGINT)
    assert looking.wait(SOON_S) == 130
    lab.await_text("the run stays in the cluster")
    os.kill(controller(lab, "killed"), signal.SIGKILL)
    output = lab.hydra("fetch", "killed", "--follow", expect=1).stderr
    assert "killed by SIGKILL; what the command had measured is in runs/killed" in output
    assert len(steps(lab.folder / "runs" / "killed")) >= 1
    lab.becomes_empty()
    output = lab.hydra("fetch", "killed", "--out", "again", expect=2).stderr
    assert f"no command killed runs in the cluster's namespace {lab.space}" in output


@pytest.mark.parametrize("drained", [False, True])
def test_ctrl_c_and_a_drained_node_end_the_run_cleanly(lab: InCluster, drained: bool) -> None:
    command = lab.starts(
        "zmqfixed", "--in-cluster", "--clients", "2,3,4", "--duration", "5", "--rate", "100", "--out", "runs/ended"
    )
    # The line before the first step precedes the database; a signal between them leaves no run, as nothing began.
    lab.await_text("step 1")
    if drained:
        (pod,) = lab.pods("controller")
        lab.rig.api().delete(f"/api/v1/namespaces/{lab.space}/pods/{pod['metadata']['name']}")
    else:
        command.send_signal(signal.SIGINT)
    assert command.wait(LONG_S) == 130
    assert "interrupted" in hydra("runs", "runs", cwd=lab.folder).stdout
    assert lab.left() == []


@contextlib.contextmanager
def unanswered(rig: Rig, namespace: str, resource: str) -> Iterator[Callable[[], bool]]:
    """The API server does not answer requests for new objects of a kind in a namespace: it waits for a silent webhook.

    Yields whether a request waits. What waits at the end is refused.
    """
    with socket.create_server((rig.place.gateway, 0)) as silent:
        silent.setblocking(False)
        asking: list[socket.socket] = []

        def is_waiting() -> bool:
            with contextlib.suppress(BlockingIOError):
                asking.append(silent.accept()[0])
            return bool(asking)

        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
        expected = {
            "failurePolicy": "Fail",
            "timeoutSeconds": 30,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        webhook = {
            "name": "silent.rig.local",
            "clientConfig": {"url": f"https://{rig.place.gateway}:{silent.getsockname()[1]}/"},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }
        name = f"silent-{namespace}"
        rig.api().create(WEBHOOKS, {"metadata": {"name": name}, "webhooks": [{**webhook, **expected}]})
        try:
            yield is_waiting
        finally:
            rig.api().delete(f"{WEBHOOKS}/{name}")
            for each in asking:
                each.close()


def test_a_job_whose_files_never_come_ends_by_itself(lab: InCluster) -> None:
    with unanswered(lab.rig, lab.space, "secrets") as is_waiting:
        command = lab.starts("zmqfixed", "--in-cluster", "--out", "runs/half", program=QUICK)
        wait_until(is_waiting, "the Secret, which is made behind the Job", LONG_S)
        command.kill()
        command.wait()
    (job,) = lab.items("jobs", "apis/batch/v1")
    assert job["spec"]["ttlSecondsAfterFinished"] == LOG_KEPT_S
    assert lab.hydra("ps").stdout.split().count("half") == 1
    wait_until(lambda: [p for p in lab.items("pods") if p["status"]["phase"] == "Failed"], "the end of its Pod", LONG_S)
    errors = lab.hydra("fetch", "half", expect=1).stderr
    assert (
        "half has not begun: init container begin: exit status 1: the group's files did not appear within 3 s" in errors
    )
    assert lab.items("secrets") == []
    path = f"/apis/batch/v1/namespaces/{lab.space}/jobs/{job['metadata']['name']}"
    lab.rig.api().call("PATCH", path, {"spec": {"ttlSecondsAfterFinished": 1}}, "application/merge-patch+json")
    lab.becomes_empty()


def test_an_image_that_is_not_there_is_one_line(lab: InCluster) -> None:
    settings = (lab.folder / "cluster.toml").read_text()
    settings = settings.replace(lab.rig.image, "rig.local/nosuch:1").replace("IfNotPresent", "Never")
    (lab.folder / "cluster.toml").write_text(settings)
    errors = lab.hydra("zmqfixed", "--quiet", "--in-cluster", expect=1).stderr
    assert errors.startswith("hydra: the command cannot run in the cluster: rig.local/nosuch:1 is not on the node")
    assert len(errors.splitlines()) == 1
    assert lab.left() == []


def controller(lab: InCluster, run: str) -> int:
    """The process of a command in the cluster; containers' processes are this machine's."""
    for pid in nodes.contained(lab.rig.place):
        with contextlib.suppress(FileNotFoundError):  # it has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if f"/runs/{run}".encode() in words:
                return pid
    raise AssertionError("no such command runs in the cluster")
