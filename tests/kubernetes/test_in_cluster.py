"""Commands that run in the cluster as a whole: their log, their run directory, and what becomes of it when they die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hydra.config.places import conf_dir
from hydra.results.store import RunStore
from tests.integration.command import Hydra, hydra, steps, table
from tests.kubernetes import nodes
from tests.kubernetes.accounts import Account
from tests.kubernetes.admission import unanswered
from tests.kubernetes.pods import namespace
from tests.kubernetes.processes import until
from tests.kubernetes.rig import Rig

pytestmark = pytest.mark.processes

RBAC = "/apis/rbac.authorization.k8s.io/v1"
QUICK = (
    sys.executable,
    "-c",
    "from hydra.cluster.kubernetes.in_cluster import objects; objects.FILES_WITHIN_S = 3; objects.LOG_KEPT_S = 15;"
    "from hydra.cli import main; main()",
)
"""Hydra, but for the times that a Job waits for its files and stays after its end."""
SCENARIO = """
system = "zmq"
client = "pyzmq"
table = "fixed"
[sweep]
clients = [2]
duration_s = 1.0
[settings]
rate = 200
[publisher.demand]
base_mem = 256
[subscriber.demand]
base_mem = 256
[load]
shape = "recorded"
file = "trace.csv"
"""


@dataclass(frozen=True)
class Lab:
    """A namespace with the account of conf/kubernetes, a folder, and a kubeconfig of somebody who has its rights."""

    rig: Rig
    space: str
    account: Account
    folder: Path

    @property
    def where(self) -> list[str]:
        return ["--master", "kubernetes", "--namespace", self.space, "--config", "cluster.toml"]

    def runs(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        kubeconfig = str(self.account.kubeconfig)
        return hydra(*words, *self.where, cwd=self.folder, expect=expect, KUBECONFIG=kubeconfig)

    def starts(self, *words: str, program: Sequence[str] = Hydra) -> subprocess.Popen[str]:
        """A command whose standard error is the file ``said``."""
        with (self.folder / "said").open("w") as said:
            return subprocess.Popen(
                [*program, *words, *self.where],
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=self.folder,
                env={**os.environ, "KUBECONFIG": str(self.account.kubeconfig)},
            )

    def says(self, text: str) -> None:
        """Waits until the command says it."""
        until(lambda: text in (self.folder / "said").read_text(), f"{text!r} among what the command says")

    def is_empty(self) -> bool:
        """Whether nothing of Hydra's is in the namespace."""
        api, label = self.rig.api(), "labelSelector=app.kubernetes.io/managed-by%3Dhydra"
        kinds = (f"/apis/batch/v1/namespaces/{self.space}/jobs", f"/api/v1/namespaces/{self.space}/pods")
        return not any(api.items(f"{kind}?{label}") for kind in (*kinds, f"/api/v1/namespaces/{self.space}/secrets"))


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Iterator[Lab]:
    api = rig.api()
    conf = conf_dir()
    with namespace(api) as space:
        account = Account(rig, space, "hydra")
        roles = list(yaml.safe_load_all((conf / "kubernetes" / "role.yaml").read_text()))
        account.may("hydra", next(each["rules"] for each in roles if each["kind"] == "Role"))
        subject = {"kind": "ServiceAccount", "name": "hydra", "namespace": space}
        reads = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"hydra-{space}"}
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
        api.create(f"{RBAC}/clusterroles", {"metadata": {"name": f"hydra-{space}"}, "rules": rules})
        binding = {"metadata": {"name": f"hydra-{space}"}, "subjects": [subject], "roleRef": reads}
        api.create(f"{RBAC}/clusterrolebindings", binding)
        own = f'[kubernetes]\nimage = "{rig.image}"\n'
        (tmp_path / "cluster.toml").write_text((conf / "hydra.toml").read_text().replace("[kubernetes]\n", own, 1))
        try:
            yield Lab(rig, space, account, tmp_path)
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                api.delete(f"{RBAC}/{kind}/hydra-{space}")


def test_a_command_runs_in_the_cluster_and_its_run_directory_is_fetched(lab: Lab) -> None:
    (lab.folder / "mine.toml").write_text(SCENARIO)
    (lab.folder / "trace.csv").write_text("".join(f"{at / 100}\n" for at in range(100)))
    done = lab.runs("run", "./mine.toml", "--in-cluster", "--out", "runs/first")
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
    assert lab.is_empty()


def test_what_was_measured_is_fetched_whoever_is_ended(lab: Lab) -> None:
    command = lab.starts(
        "zmqfixed", "--in-cluster", "--clients", "2,3,4", "--duration", "2", "--rate", "100", "--out", "runs/killed"
    )
    lab.says("step 1 of 3")
    command.terminate()
    assert command.wait(10) == 130
    lab.says("the run stays in the cluster: hydra fetch killed --master kubernetes")
    told = lab.runs("fetch", "killed", "--out", "runs/part").stdout
    assert "runs/part has what killed has measured so far; it goes on" in told
    assert len(table(lab.folder / "runs" / "part")) >= 1
    looking = lab.starts("fetch", "killed", "--follow", "--out", "looked")
    lab.says("step")
    looking.send_signal(signal.SIGINT)
    assert looking.wait(10) == 130
    lab.says("the run stays in the cluster")
    os.kill(controller(lab, "killed"), signal.SIGKILL)
    told = lab.runs("fetch", "killed", "--follow", expect=1).stderr
    assert "killed by SIGKILL; what it had measured is in runs/killed" in told
    assert len(steps(lab.folder / "runs" / "killed")) >= 1
    until(lab.is_empty, "an empty namespace")
    told = lab.runs("fetch", "killed", "--out", "again", expect=2).stderr
    assert f"no command killed runs in the cluster's namespace {lab.space}" in told


@pytest.mark.parametrize("drained", [False, True])
def test_ctrl_c_and_a_drained_node_end_the_run_cleanly(lab: Lab, drained: bool) -> None:
    command = lab.starts(
        "zmqfixed", "--in-cluster", "--clients", "2,3", "--duration", "5", "--rate", "100", "--out", "runs/ended"
    )
    lab.says("zmqfixed into runs/ended")
    if drained:
        lab.says("step 1")
        (pod,) = lab.rig.api().items(f"/api/v1/namespaces/{lab.space}/pods?labelSelector=hydra%2Fpart%3Dcontroller")
        lab.rig.api().delete(f"/api/v1/namespaces/{lab.space}/pods/{pod['metadata']['name']}")
    else:
        command.send_signal(signal.SIGINT)
    assert command.wait(60) == 130
    assert "interrupted" in hydra("runs", "runs", cwd=lab.folder).stdout
    assert lab.is_empty()


def test_a_job_whose_files_never_come_ends_by_itself(lab: Lab) -> None:
    jobs, pods = f"/apis/batch/v1/namespaces/{lab.space}/jobs", f"/api/v1/namespaces/{lab.space}/pods"
    with unanswered(lab.rig, lab.space, "secrets") as is_asked:
        command = lab.starts("zmqfixed", "--in-cluster", "--out", "runs/half", program=QUICK)
        until(is_asked, "the Secret, which is made behind the Job")
        command.kill()
        command.wait()
    api = lab.rig.api()
    assert len(api.items(jobs)) == 1
    assert lab.runs("ps").stdout.split().count("half") == 1
    until(lambda: any(pod["status"]["phase"] == "Failed" for pod in api.items(pods)), "the end of its Pod")
    told = lab.runs("fetch", "half", expect=1).stderr
    assert "half has not begun: init container begin: exit status 1: its files have not come within 3 s" in told
    assert api.items(f"/api/v1/namespaces/{lab.space}/secrets?labelSelector=app.kubernetes.io/managed-by%3Dhydra") == []
    until(lambda: not api.items(jobs) and not api.items(pods), "an empty namespace")


def test_an_image_that_is_not_there_is_one_line(lab: Lab) -> None:
    (lab.folder / "cluster.toml").write_text(
        (lab.folder / "cluster.toml")
        .read_text()
        .replace(lab.rig.image, "rig.local/nosuch:1")
        .replace("IfNotPresent", "Never")
    )
    told = lab.runs("zmqfixed", "--quiet", "--in-cluster", expect=1).stderr
    assert told.startswith("hydra: the command cannot run in the cluster: rig.local/nosuch:1 is not on the node")
    assert len(told.splitlines()) == 1
    assert lab.is_empty()


def controller(lab: Lab, run: str) -> int:
    """The process of a command in the cluster; containers' processes are this machine's."""
    for pid in nodes.contained(lab.rig.place):
        with contextlib.suppress(FileNotFoundError):  # it has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if f"/runs/{run}".encode() in words:
                return pid
    raise AssertionError("no such command runs in the cluster")
