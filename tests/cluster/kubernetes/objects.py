"""Objects of the API in the shapes of Kubernetes 1.32, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def recorded(name: str) -> Any:
    """Answers of a Kubernetes 1.32 (tests/golden/README.md): pods, refusals, nodes or events."""
    return json.loads((Path(__file__).parents[2] / "golden" / "kubernetes" / f"{name}.json").read_text())


def node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    taints: list[Json] | None = None,
    ready: str = "True",
    cordoned: bool = False,
    cpu: str = "4",
    memory: str = "16Gi",
    disk: str = "100Gi",
    pods: str = "110",
) -> Json:
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    amounts = {"cpu": cpu, "ephemeral-storage": disk, "hugepages-1Gi": "0", "memory": memory, "pods": pods}
    spec: Json = {"podCIDR": "10.244.0.0/24", "providerID": f"kind://docker/kind/{name}"}
    if cordoned:
        spec["unschedulable"] = True
        taints = [*(taints or ()), {"effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable"}]
    if taints:
        spec["taints"] = taints
    return {
        "metadata": {"name": name, "labels": {**own, **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
                {"type": "Ready", "status": ready, "reason": "KubeletReady"},
            ],
        },
    }


def container(cpu: str = "", memory: str = "", **more: Any) -> Json:
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return {"name": "c", "image": "i", "resources": {"requests": requests} if requests else {}, **more}


def command_pod(hydra: Json, files: Json | None = None) -> Json:
    """The Pod of a command in the cluster, with the states of its two containers."""
    states = {"hydra": hydra, "files": files or {"running": {}}}
    containers = [{"name": name, "state": state} for name, state in states.items()]
    status = {"phase": "Running", "containerStatuses": containers}
    return {"metadata": {"name": "p"}, "spec": {"nodeName": "node1", "containers": containers}, "status": status}


def pod(
    where: str,
    *containers: Json,
    init: list[Json] | None = None,
    phase: str = "Running",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Json:
    full: Json = {"containers": list(containers), **spec}
    if where:
        full["nodeName"] = where
    if init:
        full["initContainers"] = init
    return {"metadata": {"name": "p", "labels": labels or {}}, "spec": full, "status": {"phase": phase}}
