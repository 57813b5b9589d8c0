"""Where an instance of the rig keeps its files, and which addresses and names are its own."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hydra.config.user_folders import cache_folder

TREE: Final = Path(__file__).resolve().parents[2]
INSTANCES: Final = range(1, 10)
"""Numbers of instances that can run at once."""
RUNNING: Final = Path("/var/lib/hydra-rig")
"""The folders of instances that are up."""
MACHINE: Final = Path("/run/lock/hydra-rig")
"""Locks for what this machine has only once."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits until no other process holds the lock of that file, which ends with the process that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cache() -> Path:
    """What is built once: programs and images."""
    return cache_folder() / "kubernetes"


def programs() -> Path:
    """Where the programs of Kubernetes are."""
    return cache() / "bin"


class Place:
    """What belongs to one instance.

    Its network is 10.(220 + number).0.0/16 on one bridge: with 0 as their third byte the addresses of this machine and
    its nodes, with 1 to 9 those of each node's Pods, with 255 the service network. Nothing is routed: what is neither
    on the bridge nor on this machine is not reached.

    Attributes:
        name: of the bridge, the CNI network and the control groups.
        run: the folder of its files while it runs: a short path for sockets, and on a disk for overlayfs.
        prefix: the first two bytes of all of its addresses.
        gateway: this machine, seen from Pods.
        services: the service network.
        api: the address of the apiserver: that of the service `kubernetes`, so that no kube-proxy is needed.
        server: the apiserver's URL.
        audit: the apiserver's audit log: JSON lines.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"hydra-rig-{number}"
        self.run = RUNNING / str(number)
        self.prefix = f"10.{220 + number}"
        self.gateway = f"{self.prefix}.0.1"
        self.services = f"{self.prefix}.255.0/24"
        self.api = f"{self.prefix}.255.1"
        self.server = f"https://{self.api}:443"
        self.audit = self.run / "audit.jsonl"

    def node_address(self, node: int) -> str:
        """Where the kubelet of a node listens; nodes count from 1."""
        return f"{self.prefix}.0.{10 + node}"

    def pods(self, node: int) -> tuple[str, str]:
        """The first and the last address of a node's Pods."""
        return f"{self.prefix}.{node}.1", f"{self.prefix}.{node}.254"

    def folder(self, node: int) -> Path:
        """The files of a node."""
        return self.run / f"node{node}"

    def socket(self, node: int) -> Path:
        """Where containerd of a node listens."""
        return self.folder(node) / "containerd.sock"

    def log(self, role: str) -> Path:
        """The output of a process of the rig."""
        return self.run / f"{role}.log"
