"""Where an instance of the rig keeps its files, and which addresses and names are its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.config.places import cache_folder

TREE: Final = Path(__file__).resolve().parents[2]
INSTANCES: Final = range(1, 10)
"""Numbers of instances that can run at once."""
RUNNING: Final = Path("/var/lib/hydra-rig")
"""The folders of instances that are up."""


def cache() -> Path:
    """What is built once: programs and images."""
    return cache_folder() / "kubernetes"


def programs() -> Path:
    """Where the programs of Kubernetes are."""
    return cache() / "bin"


@dataclass(frozen=True, slots=True)
class Place:
    """What belongs to one instance.

    Its network is 10.(220 + number).0.0/16 on one bridge: with 0 as their third byte the addresses of this machine and
    its nodes, with 1 to 9 those of each node's Pods, with 255 the service network. Nothing is routed: what is neither
    on the bridge nor on this machine is not reached.
    """

    number: int

    @property
    def name(self) -> str:
        """Of the bridge, the CNI network and the control groups."""
        return f"hydra-rig-{self.number}"

    @property
    def run(self) -> Path:
        """The folder of its files while it runs: a short path for sockets, and on a disk for overlayfs."""
        return RUNNING / str(self.number)

    @property
    def prefix(self) -> str:
        """The first two bytes of all of its addresses."""
        return f"10.{220 + self.number}"

    @property
    def gateway(self) -> str:
        """This machine, seen from Pods."""
        return f"{self.prefix}.0.1"

    @property
    def services(self) -> str:
        """The service network."""
        return f"{self.prefix}.255.0/24"

    @property
    def api(self) -> str:
        """The address of the apiserver: that of the service `kubernetes`, so that no kube-proxy is needed."""
        return f"{self.prefix}.255.1"

    @property
    def server(self) -> str:
        """The apiserver's URL."""
        return f"https://{self.api}:443"

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
        """What a process of the rig says."""
        return self.run / f"{role}.log"

    @property
    def audit(self) -> Path:
        """The apiserver's audit log: JSON lines."""
        return self.run / "audit.jsonl"
