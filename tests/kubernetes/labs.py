"""A namespace to run Hydra in as a user would: with the rights of conf/kubernetes, a cluster file and a folder."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hydra.cluster.kubernetes import names
from hydra.config.places import conf_dir
from tests.integration.command import Background, background, hydra, wait_until
from tests.kubernetes.accounts import Account
from tests.kubernetes.api import ApiError
from tests.kubernetes.pods import namespace
from tests.kubernetes.rig import Rig

Json = dict[str, Any]

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_OURS: Final = f"labelSelector={names.MANAGED_BY}%3D{names.MANAGER}"
_SMALL: Final = (
    *("--set", "ready_timeout_s=60.0", "--set", "warmup_s=0"),
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
    def where(self) -> list[object]:
        """Flags of every command."""
        return ["--master", "k8s://", "--config", self.folder / "cluster.toml"]

    def hydra(self, *words: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
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

    def items(self, kind: str, group: str = "api/v1", *, ours: bool = True) -> list[Json]:
        """Objects of the namespace, as an administrator sees them; those with Hydra's label only."""
        path = f"/{group}/namespaces/{self.space}/{kind}"
        return self.rig.api().items(f"{path}?{_OURS}" if ours else path)

    def pods(self, part: str = "group") -> list[Json]:
        """The Pods of groups, or of another part."""
        return [pod for pod in self.items("pods") if pod["metadata"]["labels"].get(names.PART) == part]

    def left(self) -> list[str]:
        """What is there with Hydra's label."""
        kinds = ("pods", "secrets", "services", "configmaps")
        jobs = self.items("jobs", "apis/batch/v1")
        return [each["metadata"]["name"] for each in (*jobs, *(i for kind in kinds for i in self.items(kind)))]

    def is_empty_within(self, deadline_s: float) -> None:
        """Waits until nothing of Hydra's is there."""
        wait_until(lambda: not self.left(), deadline_s, f"an empty namespace, not {self.left()}")

    def secrets(self) -> set[str]:
        """The secret words in the environments of the run that goes on."""
        found = set()
        for secret in self.items("secrets"):
            for name, value in secret["data"].items():
                if "KEY" in name or "URL" in name:
                    found.add(base64.b64decode(value).decode())
        return found

    def seen(self) -> str:
        """All that one may see of the namespace without the right to read Secrets."""
        shown = [self.items("pods"), self.items("jobs", "apis/batch/v1"), self.items("events", ours=False)]
        return json.dumps(shown)


@contextmanager
def lab(rig: Rig, folder: Path, level: str = "restricted") -> Iterator[Lab]:
    """A lab in a namespace of its own, gone afterwards."""
    api = rig.api()
    with namespace(api, level) as space:
        account = Account(rig, space, "person")
        roles = yaml.safe_load_all((conf_dir() / "kubernetes" / "role.yaml").read_text())
        account.may("hydra", next(each["rules"] for each in roles if each["kind"] == "Role"))
        subject = {"kind": "ServiceAccount", "name": "person", "namespace": space}
        reads = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"hydra-{space}"}
        rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
        api.create(f"{_RBAC}/clusterroles", {"metadata": {"name": f"hydra-{space}"}, "rules": rules})
        binding = {"metadata": {"name": f"hydra-{space}"}, "subjects": [subject], "roleRef": reads}
        api.create(f"{_RBAC}/clusterrolebindings", binding)
        it = Lab(rig, space, account, folder)
        it.settings()
        try:
            yield it
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                api.delete(f"{_RBAC}/{kind}/hydra-{space}")


def deleted(lab: Lab, kind: str, name: str) -> None:
    """Deletes an object at once; nothing happens if it has gone."""
    try:
        lab.rig.api().delete(f"/api/v1/namespaces/{lab.space}/{kind}/{name}", gracePeriodSeconds=0)
    except ApiError as e:
        if e.status != 404:
            raise
