"""A namespace to run Hydra in as a user would: with the rights of conf/kubernetes, a cluster file and a folder."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hydra.config.file_locations import conf_dir
from hydra.kubernetes import object_names
from tests.integration.command import Background, await_clients, await_window, background, hydra
from tests.kubernetes.accounts import RBAC, Account
from tests.kubernetes.pods import delete, namespace
from tests.kubernetes.rig import Rig
from tests.suite.waiting import LONG_S, TIME_FACTOR, wait_until

Json = dict[str, Any]

_OWN_OBJECTS: Final = f"labelSelector={object_names.MANAGED_BY}%3D{object_names.MANAGER}"
_SMALL: Final = (
    *("--set", f"ready_timeout_s={60 * TIME_FACTOR}", "--set", "warmup_s=0"),
    *("--set", "publisher.demand.base_cpus=0.1", "--set", "subscriber.demand.base_cpus=0.05"),
)
"""A machine that runs a whole Kubernetes beside the clients is slow, and has few CPUs for several tests."""


@dataclass(frozen=True)
class Lab:
    """A namespace and who works in it.

    Attributes:
        rig: the cluster.
        space: the namespace.
        account: has the rights that conf/kubernetes gives.
        folder: with cluster.toml, and for runs.
    """

    rig: Rig
    space: str
    account: Account
    folder: Path

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self.folder / "run"

    def settings(self, text: str = "", *, image: str = "", pull: str = "Never") -> None:
        """Writes the cluster file: further lines of ``[kubernetes]``, the image, and when it is pulled."""
        (self.folder / "cluster.toml").write_text(
            f'[cluster]\nmax_group = 2\n[[agents]]\nid = "here"\n'
            f'[kubernetes]\nimage = "{image or self.rig.image}"\npull_policy = "{pull}"\n{text}\n'
        )

    @property
    def where(self) -> Sequence[object]:
        """Flags of every command."""
        return ["--master", "k8s://", "--config", self.folder / "cluster.toml"]

    def hydra(self, *words: object, expect: int | tuple[int, ...] = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return hydra(*words, *self.where, expect=expect, cwd=self.folder, KUBECONFIG=str(self.account.kubeconfig))

    def measure(self, *words: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs a scenario to its end; its folder is ``run``."""
        return self.hydra(*words, *_SMALL, "--out", self.run, expect=expect)

    @contextmanager
    def measuring(self, *words: object) -> Iterator[Background]:
        """Starts a scenario; its folder is ``run``."""
        arguments = (*words, *_SMALL, *self.where, "--out", self.run)
        env = {"KUBECONFIG": str(self.account.kubeconfig)}
        with background(*arguments, log=self.folder / "said", env=env) as command:
            yield command

    def items(self, kind: str, group: str = "api/v1", *, own: bool = True) -> list[Json]:
        """Objects of the namespace, as an administrator sees them; those with Hydra's label only."""
        path = f"/{group}/namespaces/{self.space}/{kind}"
        return self.rig.api().items(f"{path}?{_OWN_OBJECTS}" if own else path)

    def pods(self, part: str = "group") -> list[Json]:
        """The Pods of groups, or of another part."""
        return [pod for pod in self.items("pods") if pod["metadata"]["labels"].get(object_names.PART) == part]

    def a_subscriber(self) -> str:
        """The name of a Pod with subscribers."""
        pods = [pod["metadata"] for pod in self.pods() if pod["metadata"]["labels"][object_names.ROLE] == "subscriber"]
        return str(pods[0]["name"])

    def left(self) -> list[str]:
        """What is there with Hydra's label."""
        kinds = ("pods", "secrets", "services", "configmaps")
        jobs = self.items("jobs", "apis/batch/v1")
        return [each["metadata"]["name"] for each in (*jobs, *(i for kind in kinds for i in self.items(kind)))]

    def becomes_empty(self) -> None:
        """Waits until nothing of Hydra's is there."""
        wait_until(lambda: not self.left(), "an empty namespace", LONG_S, saw=self.left)

    def secrets(self) -> set[str]:
        """The secret words in the environments of the run that continues."""
        values = [pair for secret in self.items("secrets") for pair in secret["data"].items()]
        return {base64.b64decode(value).decode() for name, value in values if "KEY" in name or "URL" in name}

    def seen(self) -> str:
        """All that one may see of the namespace without the right to read Secrets."""
        return json.dumps([self.items("pods"), self.items("jobs", "apis/batch/v1"), self.items("events", own=False)])

    def delete_pod(self, name: str) -> None:
        """Deletes a Pod at once; nothing happens if it does not exist any more."""
        delete(self.rig.api(), f"/api/v1/namespaces/{self.space}/pods/{name}", gracePeriodSeconds=0)

    def await_clients(self) -> None:
        """Returns before the window of the first step, when all its Pods run."""
        await_clients(self.run)

    def await_window(self, number: int = 1) -> None:
        """Returns in the middle of a step."""
        await_window(self.run, number)


def published(rig: Rig) -> str:
    """The cluster file that comes with Hydra, with the image of the rig."""
    text = (conf_dir() / "hydra.toml").read_text()
    return text.replace("[kubernetes]\n", f'[kubernetes]\nimage = "{rig.image}"\n', 1)


def printed_line(text: str, *starts: str) -> str:
    """The one line of this kind that a command has printed."""
    (line,) = [line for line in text.splitlines() if line.startswith(starts or ("hydra:", "warning:"))]
    assert "Traceback" not in text
    return line


@contextmanager
def granted(rig: Rig, name: str, *reads: str) -> Iterator[tuple[str, Account]]:
    """A namespace, and an account with the rights of role.yaml in it and to list these of the whole cluster."""
    api = rig.api()
    with namespace(api) as space:
        account = Account(rig, space, name)
        roles = yaml.safe_load_all((conf_dir() / "kubernetes" / "role.yaml").read_text())
        account.may("hydra", next(each["rules"] for each in roles if each["kind"] == "Role"))
        rules = [{"apiGroups": [""], "resources": [*reads], "verbs": ["list"]}]
        account.may(f"hydra-{space}", rules, everywhere=True)
        try:
            yield space, account
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                api.delete(f"{RBAC}/{kind}/hydra-{space}")


@contextmanager
def lab(rig: Rig, folder: Path) -> Iterator[Lab]:
    """A lab in its own namespace, removed afterwards."""
    with granted(rig, "person", "nodes", "pods") as (space, account):
        it = Lab(rig, space, account, folder)
        it.settings()
        yield it
