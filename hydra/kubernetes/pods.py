"""The objects of a run's groups: a Pod for each group, a Secret for each environment. Pure.

Pods keep to the strictest of Kubernetes' Pod Security Standards, ``restricted``.
"""

from __future__ import annotations

import hashlib
import json
import math
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from hydra.engine.resources import ResourceNeed, need_of
from hydra.kubernetes import object_names
from hydra.kubernetes.affinity import rules
from hydra.kubernetes.nodes import Json
from hydra.kubernetes.pod_status import MAIN
from hydra.kubernetes.settings import OWN_IMAGE, KubernetesSettings
from hydra.model import Demand, Launch


@cache
def source(name: str) -> str:
    """The source text of ``hydra.kubernetes.pod_scripts.NAME``."""
    text = pkgutil.get_data("hydra.kubernetes.pod_scripts", f"{name}.py")
    assert text is not None, name  # noqa: S101  # Hydra's package has it
    return text.decode()


USER: Final = 10001
"""The user id of Hydra's own image; other images run with it, too."""

CONTAINER: Final = "group"
"""The name of a group's main container."""
WORK: Final = "/work"
"""The working directory of a group."""
ARCHIVE: Final = "/hydra"
"""The folder into which the archive is unpacked."""
RUNNER: Final = "hydra-run"
"""The script in the archive that starts a group."""

_OPTED_OUT: Final = {"sidecar.istio.io/inject": "false"}
_ANNOTATIONS: Final = {
    **_OPTED_OUT,
    "linkerd.io/inject": "disabled",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations against proxies between measured Pods and against moved Pods; a user's annotations override them."""

_NODE_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MILLI: Final = 1000
_LEAST_LIMIT: Final = 256
"""The least memory limit in MB: a small demand must not get a group killed, unless the ratio is 1."""


@dataclass(frozen=True, slots=True)
class RunObjects:
    """What all objects of a run have in common.

    Attributes:
        run: the run's name.
        namespace: the namespace of the objects.
        owner: the reference to the object that owns them, and with which they are deleted; {} before it exists.
        settings: the engine's settings.
        image: the image of the groups' containers.
        archive: whether every group gets the archive.
        opening: an id of this process, which distinguishes its objects from those of other processes of the same run.
    """

    run: str
    namespace: str
    owner: Json
    settings: KubernetesSettings
    image: str
    archive: bool
    opening: str = ""


def metadata(family: RunObjects, name: str, part: str, **labels: str) -> Json:
    """An object's ``metadata``; ``labels`` as :func:`object_names.labels` takes them."""
    return {
        "name": name,
        "namespace": family.namespace,
        "labels": labels_of(family, part, **labels),
        "annotations": {object_names.RUN_NAME: family.run},
        **({"ownerReferences": [family.owner]} if family.owner else {}),
    }


def labels_of(family: RunObjects, part: str, **more: str) -> dict[str, str]:
    """An object's labels; ``more`` as :func:`object_names.labels` takes them."""
    return object_names.labels(family.run, part, **more, **({"opening": family.opening} if family.opening else {}))


def own_image(settings: KubernetesSettings, version: str) -> str:
    """Hydra's own image: the one in the settings, else the one of this version."""
    # A tag cannot contain a plus sign, but versions between releases do.
    return settings.image or f"{OWN_IMAGE}:{version.replace('+', '-')}"


def environment(family: RunObjects, values: Mapping[str, str]) -> Json:
    """The Secret with an environment; equal environments have Secrets with the same name."""
    digest = hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            family, object_names.object_name(family.run, f"env-{digest}", family.opening), "environment"
        ),
        "type": "Opaque",
        "immutable": True,
        "stringData": dict(values),
    }


def requested_resources(demand: Demand, count: int) -> Demand:
    """The demand of ``count`` clients as their Pod requests it: thousandths of a CPU and whole MB, rounded up."""
    need = need_of(demand, count)
    return Demand(base_cpus=_up(need.cpus * _MILLI) / _MILLI, base_mem=float(_up(need.mem)), ports=need.ports)


def _up(amount: float) -> int:
    # The rounding inside keeps 114.00000000000001 from becoming 115.
    return math.ceil(round(amount, 6))


def security() -> tuple[Json, Json]:
    """The ``securityContext`` of a Pod and of a container, as ``restricted`` demands them."""
    pod = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    return pod, container


def verbatim(words: Iterable[str]) -> list[str]:
    """A command or arguments, escaped so that the kubelet does not replace ``$(NAME)``."""
    return [word.replace("$", "$$") for word in words]


def group_pod(
    family: RunObjects,
    launch: Launch,
    command: Sequence[str],
    secret: str,
    *,
    archive: bool,
    grace_s: int,
    decided: bool = False,
) -> Json:
    """The Pod of a group.

    Args:
        family: what the run's objects have in common.
        launch: the group, its node and its ports.
        command: the command of the container.
        secret: the name of the Secret with its environment.
        archive: whether an init container unpacks the archive, by ``HYDRA_ARCHIVE_URL`` and ``HYDRA_ARCHIVE_SHA256`` of
            the environment, and the archive's ``hydra-run`` starts the command.
        grace_s: how long a group has to end by itself before it is killed, in s.
        decided: as :func:`rules` takes it.
    """
    group, settings = launch.group, family.settings
    name = object_names.object_name(family.run, group.id, family.opening)
    meta = metadata(family, name, "group", group=group.id, role=group.role)
    meta["annotations"][MAIN] = CONTAINER
    match = {key: meta["labels"][key] for key in (object_names.RUN, object_names.PART, object_names.ROLE)}
    where = rules(group.constraints, launch.agent, match, decided=decided)
    pod_security, container_security = security()
    mounts = [{"name": "work", "mountPath": WORK}, {"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  # the Pod's own
    if archive:
        mounts.append({"name": "hydra", "mountPath": ARCHIVE})
    same: Json = {
        "image": family.image,
        "imagePullPolicy": settings.pull_policy,
        "workingDir": WORK,
        "envFrom": [{"secretRef": {"name": secret}}],
        "resources": resources(settings, need_of(group.demand, group.count)),
        "securityContext": container_security,
        "volumeMounts": mounts,
        # The Pod's status then contains the last lines of stderr, so users need no right to read logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    container: Json = {
        "name": CONTAINER,
        "command": verbatim(["sh", f"{ARCHIVE}/{RUNNER}", *command] if archive else command),
        "env": _variables(launch.ports),
        "ports": [{"containerPort": port, "protocol": "TCP"} for port in launch.ports],
        **same,
    }
    fetch = {"name": "fetch", "command": ["python3", "-c", *verbatim([source("fetch_archive")])], **same}
    spec: Json = {
        "restartPolicy": "Never",
        # PID 1 is then Kubernetes' own process, which reaps; a group as PID 1 would ignore SIGTERM.
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": grace_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security,
        "affinity": where.affinity,
        **({"topologySpreadConstraints": where.spread} if where.spread else {}),
        **({"initContainers": [fetch]} if archive else {}),
        "containers": [container],
        "volumes": [{"name": mount["name"], "emptyDir": {}} for mount in mounts],
    }
    return {"apiVersion": "v1", "kind": "Pod", **with_user_settings(family, {"metadata": meta, "spec": spec})}


def _variables(ports: Sequence[int]) -> list[Json]:
    """The environment variables of a group that depend on its Pod."""
    return [
        {"name": "HYDRA_AGENT", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "HYDRA_DATA_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "HYDRA_PORTS", "value": ",".join(map(str, ports))},
        {"name": "HOME", "value": WORK},
    ]


def resources(settings: KubernetesSettings, need: ResourceNeed) -> Json:
    """A container's ``resources``: it requests its need; the settings' ratios give the limits."""
    milli, mem = _up(need.cpus * _MILLI), _up(need.mem)
    limits = {}
    if milli and settings.cpu_limit_ratio:
        limits["cpu"] = f"{_up(milli * settings.cpu_limit_ratio)}m"
    if mem and settings.memory_limit_ratio:
        most = _up(mem * settings.memory_limit_ratio)
        limits["memory"] = f"{most if settings.memory_limit_ratio == 1 else max(most, _LEAST_LIMIT)}Mi"
    return {"requests": {"cpu": f"{milli}m", "memory": f"{mem}Mi"}, **({"limits": limits} if limits else {})}


def with_user_settings(family: RunObjects, pod: Json) -> Json:
    """A Pod, or a Job's template of one, with the user's settings for all Pods of a run.

    Hydra's own labels stay unchanged, as Hydra finds its objects by them.
    """
    settings = family.settings
    meta = pod["metadata"]
    spec = {
        **pod["spec"],
        "tolerations": [
            *(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": settings.node_lost_s}
                for key in _NODE_LOST
            ),
            *(dict(toleration) for toleration in settings.tolerations),
        ],
    }
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    return {
        **pod,
        "metadata": {
            **meta,
            "labels": {**_OPTED_OUT, **settings.labels, **meta.get("labels", {})},
            "annotations": {**_ANNOTATIONS, **settings.annotations, **meta.get("annotations", {})},
        },
        "spec": merge_patch(spec, settings.pod),
    }


def merge_patch(document: Any, patch: Any) -> Any:
    """The document after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
