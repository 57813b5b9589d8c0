"""Nodes and the Pods on them, in the API's JSON → agents with the free resources of each. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from hydra.engine.resources import ResourceNeed
from hydra.engine.resources import without as ranges_without
from hydra.kubernetes import object_names
from hydra.model import Agent, Resources

Json = dict[str, Any]
"""An object of the API, or a part of one."""

Ports = tuple[tuple[int, int], ...]
"""Ranges of ports, first and last included."""

HOSTNAME: Final = "kubernetes.io/hostname"
ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases of a Pod that uses no resources of its node any more."""

UNSEEN: Final = "nodes may have less than is shown; conf/kubernetes/usage.yaml gives the right to see them"
"""The hint for a user who may not list Pods of other namespaces."""
_DEPRECATED: Final = "beta.kubernetes.io/"
"""The prefix of old label names; each node has the same labels under new names."""
_OS: Final = "kubernetes.io/os"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_KUBERNETES_OWN: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that report a node's state: Hydra does not propose to tolerate them."""
_MB: Final = 1 << 20
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII)
_SUFFIXES: Final[Mapping[str, Decimal]] = {
    **{letter: Decimal(1000) ** power for power, letter in enumerate("num", start=-3)},
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


def agents(
    nodes: Iterable[Json], pods: Iterable[Json], ports: Ports, tolerations: Sequence[Mapping[str, object]] = ()
) -> list[Agent]:
    """The nodes that take Pods, as agents, in the order of the nodes.

    An agent's id is the node's name; its attributes are the node's labels. The free resources of an agent are those
    that the node has for Pods less those that its Pods request: CPUs in whole thousandths, memory and disk in whole MB
    of 2^20 bytes, rounded down. A node whose Pod slots are all taken is left out, too.

    Args:
        nodes: the nodes as the API lists them.
        pods: the known Pods; requests of unknown Pods are not subtracted.
        ports: the ports for groups; those that Hydra's Pods declare or other Pods bind on the host are subtracted.
        tolerations: as in a Pod's ``spec.tolerations``.
    """
    on_node = _by_node(pods)
    return [
        _agent(node, on_node[_name(node)], ports)
        for node in nodes
        if not _why_not(node, on_node[_name(node)], tolerations)
    ]


def left_out(
    nodes: Iterable[Json], pods: Iterable[Json], tolerations: Sequence[Mapping[str, object]] = ()
) -> list[str]:
    """The nodes that take no Pods, a line each with the reason: ``node4: cordoned``."""
    on_node = _by_node(pods)
    found = ((_name(node), _why_not(node, on_node[_name(node)], tolerations)) for node in nodes)
    return [f"{name}: {reason}" for name, reason in found if reason]


def spread_over(nodes: Iterable[Json], tolerations: Sequence[Mapping[str, object]] = ()) -> list[Agent]:
    """The nodes over which the scheduler spreads Pods, full ones too, as agents without resources."""
    return [_known(node, Resources()) for node in nodes if _repelling(node, tolerations) is None]


def answering(nodes: Iterable[Json]) -> set[str]:
    """The names of the nodes that are ready, whether they take more Pods or not."""
    return {_name(node) for node in nodes if _ready(node) == "True"}


def slots(node: Json, pods: Iterable[Json]) -> int:
    """How many more Pods the node's limit on their number admits."""
    return _slots(node, _by_node(pods)[_name(node)])


def without(ports: Ports, taken: Iterable[int]) -> Ports:
    """The ranges without these ports; ports outside the ranges are ignored."""
    return ranges_without(ports, ((port, port) for port in taken))


def less(free: Resources, need: ResourceNeed, ports: Iterable[int]) -> Resources:
    """A node's free resources without those of a group; 0 if the node has less than the group needs."""
    return replace(
        free,
        cpus=max(0.0, round(free.cpus - need.cpus, 3)),
        mem=max(0.0, round(free.mem - need.mem, 3)),
        ports=without(free.ports, ports),
    )


@lru_cache(maxsize=4096)
def quantity(text: str) -> float:
    """The number of a Kubernetes quantity such as ``100m``, ``1.5Gi`` or ``129e6``.

    Raises:
        ValueError: the text is no quantity.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"a quantity is a number with a suffix such as 100m, 2 or 1.5Gi, not {text!r}")
    number, suffix, exponent = found.groups()
    scale = _SUFFIXES[suffix] if suffix else Decimal(10) ** int(exponent or 0)
    return float(Decimal(number) * scale)


def trimmed_node(node: Json) -> Json:
    """A node with only the fields that this module reads."""
    status = node.get("status", {})
    return {
        "metadata": _kept(node["metadata"], "name", "labels"),
        "spec": _kept(node.get("spec", {}), "taints", "unschedulable"),
        "status": {
            "conditions": [_kept(c, "type", "status") for c in status.get("conditions") or () if c["type"] == "Ready"],
            **_kept(status, "allocatable", "addresses"),
        },
    }


def trimmed_pod(pod: Json) -> Json:
    """A Pod with only the fields that :func:`agents` reads: a cluster may have thousands of Pods."""
    spec = pod.get("spec", {})
    containers = {
        key: [_kept(each, "resources", "ports", "restartPolicy") for each in spec[key]]
        for key in ("containers", "initContainers")
        if spec.get(key)
    }
    return {
        "metadata": _kept(pod["metadata"], "name", "namespace", "labels"),
        "spec": {**_kept(spec, "nodeName", "overhead", "resources"), **containers},
        "status": _kept(pod.get("status", {}), "phase"),
    }


def _kept(whole: Json, *keys: str) -> Json:
    return {key: whole[key] for key in keys if key in whole}


# --- what is free ----------------------------------------------------------------------------------------------------

_COUNTED: Final = ("cpu", "memory", "ephemeral-storage")
_Amounts = tuple[float, float, float]
"""CPUs, bytes of memory and bytes of disk, in the order of ``_COUNTED``."""


def _agent(node: Json, pods: Sequence[Json], ports: Ports) -> Agent:
    taken = _none()
    for pod in pods:
        taken = _sum(taken, _requested(pod))
    whole = _amounts(node.get("status", {}).get("allocatable"))
    cpus, mem, disk = (have - requested for have, requested in zip(whole, taken, strict=True))
    free = Resources(
        cpus=_floor(cpus * 1000) / 1000,
        mem=float(_floor(mem / _MB)),
        disk=float(_floor(disk / _MB)),
        ports=without(ports, (port for pod in pods for port in _ports(pod))),
    )
    return _known(node, free)


def _known(node: Json, free: Resources) -> Agent:
    labels = node["metadata"].get("labels") or {}
    attributes = {name: value for name, value in labels.items() if not name.startswith(_DEPRECATED)}
    return Agent(_name(node), labels.get(HOSTNAME) or _name(node), attributes, free)


def _floor(amount: float) -> int:
    # The rounding inside keeps 3 − 0.1 − 0.2 from becoming 2.699.
    return max(0, math.floor(round(amount, 6)))


def _requested(pod: Json) -> _Amounts:
    """What the scheduler counts for a Pod.

    Containers run at the same time as the sidecars: init containers that are always restarted. The other init
    containers run before them, one after another, each together with the sidecars that precede it.
    """
    spec = pod["spec"]
    together = sidecars = most = _none()
    for container in spec.get("containers") or ():
        together = _sum(together, _requests(container))
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, _requests(container))
            most = _most(most, sidecars)
        else:
            most = _most(most, _sum(sidecars, _requests(container)))
    total = _most(_sum(together, sidecars), most)
    return _sum(_most(total, _requests(spec)), _amounts(spec.get("overhead")))


def _requests(holder: Json) -> _Amounts:
    return _amounts((holder.get("resources") or {}).get("requests"))


def _amounts(quantities: Mapping[str, object] | None) -> _Amounts:
    cpu, memory, disk = (quantity(str((quantities or {}).get(name, "0"))) for name in _COUNTED)
    return cpu, memory, disk


def _none() -> _Amounts:
    return 0.0, 0.0, 0.0


def _sum(left: _Amounts, right: _Amounts) -> _Amounts:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def _most(left: _Amounts, right: _Amounts) -> _Amounts:
    return max(left[0], right[0]), max(left[1], right[1]), max(left[2], right[2])


def _ports(pod: Json) -> Iterator[int]:
    own = (pod["metadata"].get("labels") or {}).get(object_names.MANAGED_BY) == object_names.MANAGER
    for container in (*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())):
        for port in container.get("ports") or ():
            if bound := port["containerPort"] if own else port.get("hostPort"):
                yield bound


# --- which nodes take Pods -------------------------------------------------------------------------------------------


def _name(node: Json) -> str:
    return str(node["metadata"]["name"])


def _by_node(pods: Iterable[Json]) -> defaultdict[str, list[Json]]:
    on_node: defaultdict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod.get("status", {}).get("phase") not in ENDED:
            on_node[node].append(pod)
    return on_node


def _slots(node: Json, pods: Sequence[Json]) -> int:
    most = (node.get("status", {}).get("allocatable") or {}).get("pods", "0")
    return max(0, int(quantity(str(most))) - len(pods))


def _why_not(node: Json, pods: Sequence[Json], tolerations: Sequence[Mapping[str, object]]) -> str:
    """Why the node takes no Pods; "" where it does."""
    if (ready := _ready(node)) != "True":
        return "does not answer any more" if ready == "Unknown" else "not ready"
    if (system := (node["metadata"].get("labels") or {}).get(_OS, "linux")) != "linux":
        return f"runs {system}, and the image is for Linux"
    if (taint := _repelling(node, tolerations)) is not None:
        return _repelled(taint)
    if not _slots(node, pods):
        return f"all of its {(node['status'].get('allocatable') or {}).get('pods', '0')} Pod slots are taken"
    return ""


def _ready(node: Json) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    return next((str(c["status"]) for c in conditions if c["type"] == "Ready"), "")


def _repelling(node: Json, tolerations: Sequence[Mapping[str, object]]) -> Json | None:
    """The first taint that keeps Pods off the node, None if there is none."""
    taints: list[Json] = list(node["spec"].get("taints") or ())
    if node["spec"].get("unschedulable"):
        taints.insert(0, {"key": _UNSCHEDULABLE, "effect": "NoSchedule"})
    keep_off = (taint for taint in taints if taint["effect"] != "PreferNoSchedule")
    return next((taint for taint in keep_off if not any(_tolerates(t, taint) for t in tolerations)), None)


def _tolerates(toleration: Mapping[str, object], taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint["key"]:
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def _repelled(taint: Json) -> str:
    key = taint["key"]
    if key == _UNSCHEDULABLE:
        return "cordoned"
    value = f"={taint['value']}" if taint.get("value") else ""
    text = f"taint {key}{value}:{taint['effect']}"
    if key.startswith(_KUBERNETES_OWN):
        return text
    return f'{text} (to use it: tolerations = [{{key = "{key}", operator = "Exists"}}] in [kubernetes])'
