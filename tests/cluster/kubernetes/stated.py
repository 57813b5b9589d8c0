"""A run on Kubernetes without a cluster: messages and the time go in, calls and events come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from hydra.kubernetes import object_names as names
from hydra.kubernetes.pods import CONTAINER, RunObjects
from hydra.kubernetes.settings import KubernetesSettings
from hydra.kubernetes.state import KubernetesState
from hydra.model import Constraint, Demand, Group
from tests.cluster.kubernetes.objects import Json as Json
from tests.cluster.kubernetes.objects import node
from tests.cluster.stated import Stated

FAMILY = RunObjects(
    "r1", "lab", {"name": "hydra-r1-keeper", "uid": "u"}, KubernetesSettings(), "hydra:1", archive=False
)
QUOTA = 'pods "p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=5, limited: pods=5'
DELETED = {"reason": "Forbidden", "message": 'pods "p" is forbidden: unable to create new content in namespace lab '
           "because it is being terminated"}  # fmt: skip


def group(
    name: str, *, cpus: float = 1.0, ports: int = 0, constraints: Sequence[Constraint] = (), key: str = "k"
) -> Group:
    return Group(name, "subscriber", 0, 1, ("run",), {"KEY": key}, Demand(cpus, 64.0, ports=ports), tuple(constraints))


class Subject(Stated[KubernetesState]):
    """A run on nodes of 4 CPUs, with its clock."""

    def __init__(self, *nodes: str, cpu: str = "4") -> None:
        super().__init__(KubernetesState(FAMILY, ((31000, 31003),)))
        self.list_nodes(*(nodes or ("n1", "n2")), cpu=cpu)

    def drive(self, kind: str, **fields: Any) -> None:
        super().drive(kind, **fields)
        self.state.tick(self.now)  # as its owner does

    def list_nodes(self, *nodes: str, cpu: str = "4", pods: tuple[Json, ...] = ()) -> None:
        self.drive("nodes", nodes=[node(name, cpu=cpu) for name in nodes], pods=list(pods), partial=False)

    def pod(self, group: str, where: str = "", *, removed: bool = False, deleted: bool = False, **status: Any) -> None:
        """The Pod of a group as the watch reports it."""
        labels = {names.PART: "group", names.GROUP: group}
        metadata: Json = {"name": names.object_name("r1", group), "namespace": "lab", "labels": labels}
        if deleted:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec = {"nodeName": where, "containers": [{"name": CONTAINER}]}
        self.drive("pod", pod={"metadata": metadata, "spec": spec, "status": status}, gone=removed)

    def runs(self, group: str, where: str = "n1") -> None:
        self.pod(group, where, **running())

    def refuse(self, tag: str, status: int, message: str, reason: str = "") -> None:
        self.drive("refused", tag=tag, status=status, reason=reason, message=message)

    def launch(self, *groups: Group) -> list[str]:
        """The nodes on which the groups were placed."""
        return [launch.agent.id for launch in self.state.launch(groups, self.now)]

    def with_groups(self, *names: str, on: str = "", cpus: float = 1.0) -> Self:
        """Launches these groups, which run if ``where`` names an agent; earlier calls and events are forgotten."""
        self.launch(*(group(name, cpus=cpus) for name in names))
        for name in names if on else ():
            self.runs(name, on)
        self.calls()
        self.events()
        return self

    def group_states(self) -> list[tuple[str, str, bool]]:
        return [(event.group, event.state, event.refused) for event in self.events()]


def container_is(phase: str, **state: Json) -> Json:
    return {"phase": phase, "containerStatuses": [{"name": CONTAINER, "image": "hydra:1", "state": state}]}


def running() -> Json:
    return container_is("Running", running={})


def ended(code: int, reason: str = "Error", message: str = "", **more: Any) -> Json:
    terminated = {"exitCode": code, "reason": reason, "message": message, **more}
    return container_is("Failed" if code else "Succeeded", terminated=terminated)


def waiting(reason: str, message: str = "") -> Json:
    return container_is("Pending", waiting={"reason": reason, "message": message})


def unschedulable(message: str = "0/2 nodes are available: 2 Insufficient cpu.") -> Json:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}
