"""A Kubernetes of one's own on this machine: python -m tests.kubernetes.rig up | down | status | env | image, as root.

Several can run at once: --instance 2. How it is built is in building.py, which instance is whose in sharing.py.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.kubernetes import control, identity, network, nodes, processes, store
from tests.kubernetes.api import Api, ApiError
from tests.kubernetes.identity import ADMIN, SYSTEM, USER
from tests.kubernetes.machine import Machine
from tests.kubernetes.nodes import PUBLISHED, NodeSpec
from tests.kubernetes.places import Place
from tests.kubernetes.processes import until

_PROGRAMS: Final = {role: f"kube-{role}" for role in ("apiserver", "controller-manager", "scheduler")}
"""The programs of roles that are not called as these; those of a node have its number behind them, as kubelet1."""
_CONTROL_NICE: Final = -10
_NODE_NICE: Final = 5
"""In a real cluster the control plane, the nodes and the controller of a run have machines of their own. Here they
share the processors, and for each Pod its node starts a dozen programs: the API server would wait for a processor most
of the time, and so would Hydra's controller."""


class Rig:
    """An instance: a control plane and nodes named node1, node2, …

    It outlives the process that has started it. What is left of one that was killed, ``up`` and ``down`` remove.
    """

    def __init__(self, number: int = 1, specs: Sequence[NodeSpec] = PUBLISHED) -> None:
        """Looks whether the instance is up; nothing is started.

        Args:
            number: which instance: 1 to 9.
            specs: its nodes; of an instance that is up already, those that it has.
        """
        self.place = Place(number)
        self._noted = self.place.run / "rig.json"
        self._specs = self._specs_noted() or tuple(specs)
        self.users = identity.Users(self.place)

    @property
    def nodes(self) -> list[str]:
        """The names of its nodes."""
        return [f"node{n + 1}" for n in range(len(self._specs))]

    @property
    def image(self) -> str:
        """The image with Hydra: that of the tree from which the rig was started, unless ``bring`` brought another."""
        name: str = json.loads(self._noted.read_text())["image"]
        return name

    @property
    def is_up(self) -> bool:
        """Whether it was started and not ended."""
        return self._noted.exists()

    def up(self) -> None:
        """Starts it; all nodes are ready then.

        Raises:
            RigError: it does not start; nothing is left of it.
        """
        images, image = store.with_this_hydra()
        self.down()
        Machine().enter(self.place.run)
        try:
            self._start(images)
        except BaseException:
            self._keep_logs()
            self.down()
            raise
        self._note(image.name)

    def _start(self, images: Path) -> None:
        network.up(self.place, len(self._specs))
        identity.certificates(self.place.run, self.place.api)
        for user, groups in ((SYSTEM, ("system:masters",)), (ADMIN, ("system:masters",)), (USER, ())):
            self.users.add(user, *groups)
        self.start("etcd", "apiserver")
        for n in range(1, len(self._specs) + 1):
            self.place.folder(n).mkdir()
            store.lend(images, self.place.folder(n) / "root")
            nodes.make_cgroups(self.place, n)
            self.start(f"containerd{n}")
        until(self.answers, "the apiserver")
        self.start("controller-manager", "scheduler", *(f"kubelet{n + 1}" for n in range(len(self._specs))))
        until(lambda: len(self.ready()) == len(self._specs), "nodes that are ready")
        # Without it no Pod can be made.
        until(lambda: self.answers("/api/v1/namespaces/default/serviceaccounts/default"), "the service account")

    def down(self) -> None:
        """Ends it, and removes everything that it has made; nothing happens where there is nothing."""
        processes.kill(lambda: processes.of(self.place))
        processes.kill(lambda: nodes.contained(self.place))
        nodes.remove_traces(self.place)
        network.down(self.place)
        Machine().leave(self.place.run)

    def bring(self) -> str:
        """Brings the image with the Hydra that is imported here to all nodes; gives its name."""
        _, image = store.with_this_hydra()
        for n in range(1, len(self._specs) + 1):
            store.bring(image, self.place.folder(n) / "root", self.place.socket(n))
        self._note(image.name)
        return image.name

    def start(self, *roles: str) -> None:
        """Starts processes by their roles: etcd, apiserver, controller-manager, scheduler, containerd1, kubelet1, …"""
        for role in roles:
            if role.startswith("kubelet"):
                # It does not wait for it.
                until(self.place.socket(int(role.removeprefix("kubelet"))).exists, f"containerd before {role}")
            processes.start(self.place, role, self._command(role))

    def kill(self, *roles: str) -> None:
        """Ends processes by their roles, and waits for their ends. Containers continue."""
        for role in roles:
            processes.kill(partial(self.pids, role))

    def pids(self, role: str) -> list[int]:
        """The processes of a role: one, or none."""
        name = role.rstrip("0123456789")
        return processes.of(self.place, role, _PROGRAMS.get(name, name))

    def fail_node(self, node: str) -> None:
        """Ends all that runs on a node at once, containers too, as if its power had failed."""
        n = self.nodes.index(node) + 1
        self.kill(f"kubelet{n}")
        processes.kill(lambda: processes.of(self.place, f"containerd{n}"))
        processes.kill(lambda: nodes.contained(self.place, n))
        nodes.clear(self.place, n)

    def kubeconfig(self, user: str = ADMIN, namespace: str = "default") -> Path:
        """The kubeconfig file of a user who has a token."""
        return self.users.kubeconfig(user, self.users.token(user), namespace)

    def api(self, user: str = ADMIN) -> Api:
        """The API, as a user who has a token."""
        return Api(self.place.server, self.place.run / "ca.crt", self.users.token(user))

    def answers(self, path: str = "/readyz") -> bool:
        """Whether the apiserver answers, and has what is at a path."""
        try:
            self.api(SYSTEM).get(path)
        except (ApiError, OSError):
            return False
        return True

    def ready(self) -> list[str]:
        """The nodes that are ready, and from which Pods are not kept off as long as they are not."""
        return [
            each["metadata"]["name"]
            for each in self.api(SYSTEM).items("/api/v1/nodes")
            if any(c["type"] == "Ready" and c["status"] == "True" for c in each["status"].get("conditions", []))
            and not any(t["key"].startswith("node.kubernetes.io/") for t in each["spec"].get("taints", []))
        ]

    def audited(self, user: str) -> list[dict[str, Any]]:
        """What a user has called: the entries of the audit log, from the oldest."""
        # The last line may be half written.
        lines = self.place.audit.read_text().split("\n")[:-1]
        return [each for each in map(json.loads, lines) if each["user"].get("username") == user]

    def _command(self, role: str) -> Sequence[str | Path]:
        name = role.rstrip("0123456789")
        if name == role:
            return _niced(_CONTROL_NICE, getattr(control, role.replace("-", "_"))(self.place))
        n = int(role[len(name) :])
        if name == "containerd":
            return _niced(_NODE_NICE, nodes.containerd(self.place, n))
        return _niced(_NODE_NICE, nodes.kubelet(self.place, n, self._specs[n - 1]))

    def _note(self, image: str) -> None:
        self._noted.write_text(json.dumps({"image": image, "nodes": [asdict(spec) for spec in self._specs]}))

    def _specs_noted(self) -> tuple[NodeSpec, ...]:
        if not self._noted.exists():
            return ()
        return tuple(NodeSpec(**each) for each in json.loads(self._noted.read_text())["nodes"])

    def _keep_logs(self) -> None:
        """The processes' output is read if they do not start."""
        kept = Path(os.environ.get("TMPDIR", "/tmp")) / f"{self.place.name}-logs"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for log in self.place.run.glob("*.log"):
            shutil.copy(log, kept)
        processes.show(f"the rig's logs are kept in {kept}")


def _niced(nice: int, command: Sequence[str | Path]) -> list[str | Path]:
    return ["nice", "-n", str(nice), *command]


if __name__ == "__main__":
    from tests.kubernetes.command import main

    main()
