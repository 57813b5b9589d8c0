"""A node: its containerd, its kubelet, and what they leave behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.kubernetes import network
from tests.kubernetes.identity import SYSTEM
from tests.kubernetes.images import PAUSE
from tests.kubernetes.places import Place, programs
from tests.kubernetes.processes import until

_CONTROLLERS: Final = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd")
_CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a node is like.

    Attributes:
        labels: of the node, beside those that every node has.
        pids_limit: the most processes and threads of a Pod; -1 is no limit.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    pids_limit: int = -1


PUBLISHED: Final = (NodeSpec({"group": "cpu4-mem16"}), NodeSpec({"group": "cpu16-mem60"}))
"""Two nodes with the attributes of the published scenarios."""


def containerd(place: Place, node: int) -> list[str | Path]:
    """Writes the configuration of a node's containerd; gives its command line."""
    folder = place.folder(node)
    (folder / "cni").mkdir(parents=True, exist_ok=True)
    place.socket(node).unlink(missing_ok=True)
    (folder / "cni" / "10-rig.conflist").write_text(network.cni(place, node))
    (folder / "containerd.toml").write_text(
        f"""version = 2
root = "{folder / "root"}"
state = "{folder / "state"}"
[grpc]
  address = "{place.socket(node)}"
[plugins."io.containerd.grpc.v1.cri"]
  # Without them containers cannot start where this machine is a container itself.
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  sandbox_image = "{PAUSE}"
  stream_server_address = "{place.node_address(node)}"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "{folder / "runc"}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder / "cni"}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder / "opt"}"
"""
    )
    return ["containerd", "--config", folder / "containerd.toml", "--log-level", "warn"]


def kubelet(place: Place, node: int, spec: NodeSpec) -> list[str | Path]:
    """Writes the configuration of a kubelet; gives its command line."""
    folder = place.folder(node)
    off = ("failCgroupV1", "failSwapOn", "localStorageCapacityIsolation", "serializeImagePulls")
    beats = {"nodeStatusUpdateFrequency": "1s", "nodeLeaseDurationSeconds": 4}
    rates = {**beats, "kubeAPIQPS": 200, "kubeAPIBurst": 400, "eventRecordQPS": 0}
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.node_address(node),
        "port": 10250,
        "healthzBindAddress": place.node_address(node),
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{place.name}/node{node}",
        "enforceNodeAllocatable": [],
        **dict.fromkeys(off, False),
        "containerRuntimeEndpoint": f"unix://{place.socket(node)}",
        "podLogsDir": str(folder / "logs"),
        "volumePluginDir": str(folder / "plugins"),
        "evictionHard": {"memory.available": "10Mi"},
        "imageGCHighThresholdPercent": 100,
        # No process listens there, so a Pod's request for a name fails at once.
        "clusterDNS": [place.gateway],
        "clusterDomain": "cluster.local",
        # Its rules would stay in this machine's firewall.
        "makeIPTablesUtilChains": False,
        "maxPods": 250,
        "podPidsLimit": spec.pids_limit,
        **rates,
    }
    (folder / "kubelet.json").write_text(json.dumps(settings, indent=1))
    return [
        programs() / "kubelet",
        f"--config={folder / 'kubelet.json'}",
        f"--kubeconfig={place.run / SYSTEM}.kubeconfig",
        f"--hostname-override=node{node}",
        f"--node-ip={place.node_address(node)}",
        f"--root-dir={folder / 'kubelet'}",
        f"--cert-dir={folder / 'certificates'}",
        f"--node-labels={','.join(f'{name}={value}' for name, value in spec.labels.items())}",
    ]


def make_cgroups(place: Place, node: int) -> None:
    """The control groups under which a kubelet makes its own (version 1)."""
    for controller in _CONTROLLERS:
        folder = _CGROUPS / controller / place.name / f"node{node}"
        folder.mkdir(parents=True, exist_ok=True)
        if controller == "cpuset":
            for name in ("cpuset.cpus", "cpuset.mems"):
                text = (_CGROUPS / controller / name).read_text()
                (folder.parent / name).write_text(text)
                (folder / name).write_text(text)


def contained(place: Place, node: int | None = None) -> list[int]:
    """The processes in the containers of a node; None: of all nodes."""
    root = _CGROUPS / "pids" / place.name / (f"node{node}" if node else "")
    pids: list[int] = []
    # Groups may go meanwhile, which os.walk does not mind.
    for folder, _, _ in os.walk(root):
        with contextlib.suppress(OSError):
            pids += map(int, Path(folder, "cgroup.procs").read_text().split())
    return pids


def clear(place: Place, node: int) -> None:
    """What a machine forgets when its power fails; no process of the node is left."""
    folder = place.folder(node)
    for container in folder.glob("state/io.containerd.runtime.v2.task/*/*"):
        Path("/var/lib/cni/results", f"cni-loopback-{container.name}-lo").unlink(missing_ok=True)
        if (address := container / "address").exists():
            Path(address.read_text().strip().removeprefix("unix://")).unlink(missing_ok=True)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    for name in ("state", "runc", "addresses"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for root in _CGROUPS.glob(f"*/{place.name}/node{node}"):
        until(partial(_rmdirs, root), f"{root} to be empty")


def _rmdirs(root: Path) -> bool:
    """Whether a control group and those in it are removed; those of processes that have just ended are not at once."""
    for group, _, _ in os.walk(root, topdown=False):
        with contextlib.suppress(OSError):
            Path(group).rmdir()
    return not root.exists()


def remove_traces(place: Place) -> None:
    """Removes mounts, control groups, sockets and links of an instance of which no process is left."""
    for folder in place.run.glob("node*"):
        clear(place, int(folder.name.removeprefix("node")))
    for root in _CGROUPS.glob(f"*/{place.name}"):
        until(partial(_rmdirs, root), f"{root} to be empty")
    for link in Path("/var/log/containers").glob("*"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{place.run}/"):
            link.unlink(missing_ok=True)
