"""A Pod in the API's JSON → the state of its group, what the Pod waits for, and what to try. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from hydra.events.group_events import end_of
from hydra.kubernetes.nodes import Json
from hydra.model import GroupState

For = Literal["", "node", "pull", "image", "start"]
"""A node that takes the Pod, an image being fetched, an image after a failed try, the container's start; "" nothing."""

NODE_WITHIN_S: Final = 30.0
"""How long a Pod waits for a node: Pods of the previous step may still be ending."""
IMAGE_WITHIN_S: Final = 20.0
"""How long a node may repeat a failed attempt to fetch an image."""
START_WITHIN_S: Final = 120.0
"""How long a Pod with a node and an image may take to start before Hydra asks for its events."""
PULLED_WITHIN_S: Final = 600.0
"""How long a node may take to fetch an image."""
WAIT_S: Final = {
    "node": NODE_WITHIN_S,
    "pull": PULLED_WITHIN_S,
    "image": IMAGE_WITHIN_S,
    "start": START_WITHIN_S,
}
"""How long a Pod may wait for each of ``PodStatus.waits_for``, in s."""
HOPELESS_S: Final = 2.0
"""How long a hopeless state must last: some nodes see a new Secret later."""


class PendingReason(NamedTuple):
    """What a Pod waits for; ``detail`` is a line for people, with a remedy; ``hopeless``: waiting will not help."""

    waits_for: For
    detail: str = ""
    hopeless: bool = False


def one_line(text: str, longest: int = 600) -> str:
    """Lines joined into one; a text that is too long keeps its end."""
    joined = "; ".join(filter(None, (line.strip() for line in text.splitlines())))
    return joined if len(joined) <= longest else f"…{joined[-longest:]}"


# --- a node ----------------------------------------------------------------------------------------------------------

_COUNTS: Final = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_PREEMPTION: Final = re.compile(r"\.? preemption: .*", re.DOTALL)
_NODES: Final = re.compile(r"\bnode\(s\) ")

_UNPLACED: Final = (
    # (a text of the scheduler, what to try); the first that fits counts.
    ("Insufficient cpu", "add nodes, end other Pods, or lower demand.base_cpus and demand.cpus_per_client"),
    ("Insufficient memory", "add nodes, end other Pods, or lower demand.base_mem and demand.mem_per_client"),
    ("Too many pods", "add nodes, or make fewer and larger groups (max_group)"),
    ("Insufficient", "add nodes, or ask for less"),
    (
        "pod topology spread",
        "too little is free where GROUP_BY wants the next process group: add nodes, or drop the constraint",
    ),
    (
        "pod anti-affinity",
        "a UNIQUE or MAX_PER constraint allows no more process groups on the nodes: "
        "add nodes, or make larger groups (max_group)",
    ),
    (
        "pod affinity rules",
        "too little is free on the nodes where CLUSTER keeps the process groups "
        "together: give the constraint a value, or drop the constraint",
    ),
    ("node affinity/selector", "look at the constraints and at hydra agents: labels may have changed"),
    ("free ports", "name other ports in [kubernetes]"),
    ("untolerated taint", "add tolerations to [kubernetes]"),
    ("unschedulable", "the nodes are cordoned: kubectl uncordon NODE"),
)


def unplaced(reason: str, message: str) -> PendingReason:
    """Why the scheduler has bound a Pod to no node, from its condition ``PodScheduled``."""
    if reason == "SchedulingGated":
        return PendingReason(
            "node", "held back by a scheduling gate; see spec.schedulingGates, and who admits Pods there"
        )
    text = _PREEMPTION.sub("", one_line(message)).rstrip(". ")
    remedy = next((remedy for pattern, remedy in _UNPLACED if pattern in text), "")
    if counts := _COUNTS.fullmatch(text):
        text = f"none of {counts[1]} nodes takes it: {_NODES.sub('', counts[2])}"
    text = text or "the scheduler has not looked at it yet"
    return PendingReason("node", f"{text}; {remedy}" if remedy else text)


# --- an image --------------------------------------------------------------------------------------------------------

_IMAGE_REASONS: Final = frozenset(
    {
        *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"),
        *("ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"),
    }
)
_NOISE: Final = re.compile(
    r'Back-off pulling image "[^"]*"(: ErrImagePull)?(: )?|rpc error: code = \w+ desc = |'
    r'failed to pull and unpack image "[^"]*": |failed to resolve (reference|image) "[^"]*": |'
    r'Failed to apply default image tag "[^"]*": '
)
_LOAD: Final = "push it to a registry that the nodes reach, or load it onto them (kind load docker-image)"
_REGISTRY: Final = "the nodes do not reach the registry: its name, their DNS, a proxy or a firewall"

_UNPULLED: Final = (
    # (a text of the registry or the runtime, what to try, whether another try may help)
    (
        "no match for platform",
        "there is none for the nodes' machine type: build it for that, or choose other nodes",
        False,
    ),
    ("invalid reference format", "correct image in [kubernetes], or --image", False),
    ("not found", f"is the name right? {_LOAD}", False),
    ("manifest unknown", f"is the tag right? {_LOAD}", False),
    (
        "toomanyrequests",
        "a pull rate limit: use a mirror, or a pull secret (pod.imagePullSecrets in [kubernetes])",
        True,
    ),
    ("denied", f"no such image, or a pull secret is missing (pod.imagePullSecrets in [kubernetes]); {_LOAD}", False),
    ("nauthorized", "a pull secret is missing or wrong (pod.imagePullSecrets in [kubernetes])", False),
    ("orbidden", "a pull secret is missing or wrong (pod.imagePullSecrets in [kubernetes])", False),
    ("authorization failed", "a pull secret is missing or wrong (pod.imagePullSecrets in [kubernetes])", False),
    ("x509", "the nodes do not trust the registry's certificate: add its CA to their container runtime", False),
    ("HTTP response to HTTPS", "the registry has no TLS: allow it in the nodes' container runtime", False),
    ("no space left", "the node's disk is full", True),
    ("no such host", _REGISTRY, True),
    ("timeout", _REGISTRY, True),
    ("deadline exceeded", _REGISTRY, True),
    ("connection refused", _REGISTRY, True),
    ("unreachable", _REGISTRY, True),
)


def unpulled(reason: str, message: str, image: str) -> PendingReason:
    """Why the node has no image."""
    cause = _NOISE.sub("", one_line(message)).strip(" :")
    if reason == "InvalidImageName":
        text = f"{image!r} cannot be the name of an image ({cause}); correct image in [kubernetes], or --image"
        return PendingReason("image", text, hopeless=True)
    if reason == "ErrImageNeverPull":
        text = f'{image} is not on the node, and pull_policy is "Never"'
        remedy = 'load the image there (kind load docker-image), or set "IfNotPresent"'
        return PendingReason("image", f"{text}; {remedy}", hopeless=True)
    found = next(((remedy, again) for word, remedy, again in _UNPULLED if word in cause), None)
    text = f"image {image} cannot be pulled: {cause or 'the kubelet tries again'}"
    return (
        PendingReason("image", f"{text}; {found[0]}", hopeless=not found[1]) if found else PendingReason("image", text)
    )


# --- a container -----------------------------------------------------------------------------------------------------

_CREATION: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreCreateHookError",
        "PreStartHookError",
    }
)
_MAY_PASS: Final = ("timed out", "deadline exceeded", "is reserved for", "try again")


def unstarted(statuses: Sequence[Json], *, sandbox: bool) -> PendingReason:
    """What the first container that has not started waits for.

    Args:
        statuses: the statuses of the containers, init containers first.
        sandbox: whether the Pod has its network, so only the image is missing.
    """
    for status in statuses:
        waiting = status.get("state", {}).get("waiting") or {}
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in _IMAGE_REASONS:
            return unpulled(reason, message, status.get("image", ""))
        if reason in _CREATION:
            passes = any(words in message for words in _MAY_PASS)
            return PendingReason("start", f"{reason}: {one_line(message)}{_remedy(message)}", hopeless=not passes)
        if reason == "CrashLoopBackOff":
            return PendingReason("start", one_line(message))
        if reason == "ContainerCreating":
            return PendingReason("pull", "the image is being pulled") if sandbox else PendingReason("start")
    return PendingReason("start")


def _remedy(message: str) -> str:
    if "runAsNonRoot" in message or "non-root" in message:
        return "; the image runs as root: set pod.securityContext.runAsUser in [kubernetes]"
    if message.startswith("secret ") and "not found" in message:
        return "; was the run's Secret deleted?"
    return ""


MAIN: Final = "kubectl.kubernetes.io/default-container"
"""The annotation that names a Pod's main container, as a cluster may inject others."""


@dataclass(frozen=True, slots=True)
class PodStatus:
    """What a Pod's state means for its group.

    Attributes:
        state: the group's state. ``lost``: the node or the cluster ended the group, which may be launched again;
            ``failed``: the group or its settings are the cause.
        node: the node's name; "" while the Pod has no node.
        detail: one line for people: what, why, what to try.
        waits_for: what a Pod that has not started waits for.
        hopeless: whether waiting will not help (a Pod that has not started), or a new Pod will not (a failed one).
    """

    state: GroupState
    node: str
    detail: str = ""
    waits_for: For = ""
    hopeless: bool = False


def status(pod: Json) -> PodStatus:
    """The state of a Pod's group.

    A Pod that is being deleted is ``lost``; a caller that deleted it on purpose ignores that state.
    """
    node = pod["spec"].get("nodeName") or ""
    statuses: list[Json] = pod.get("status", {}).get("containerStatuses") or []
    own: Json = next((each for each in statuses if each.get("name") == _own_name(pod)), {})
    ended = own.get("state", {}).get("terminated")
    if ended and ended.get("exitCode") == 0:
        return PodStatus("finished", node, "exit status 0")
    if disrupted := _disrupted(pod, node):
        state, detail = disrupted
        return PodStatus(state, node, detail, hopeless=state == "failed")
    if ended:
        return _ended(pod, ended, node)
    status_ = pod.get("status", {})
    if status_.get("phase") == "Failed":
        return _failed_before_start(pod, node)
    if status_.get("phase") == "Succeeded":
        return PodStatus("finished", node, "exit status 0")
    if status_.get("phase") == "Unknown":
        return PodStatus("lost", node, f"node {node} does not answer")
    if "running" in own.get("state", {}):
        return PodStatus("running", node)
    waiting = _waiting(pod, node)
    return PodStatus("starting", node, waiting.detail, waiting.waits_for, waiting.hopeless)


def waits(status: PodStatus) -> str:
    """What a Pod that has not started waits for, in a few words."""
    return status.detail or "it starts"


def trimmed(pod: Json) -> Json:
    """A Pod with only the fields that Hydra reads: the API's record of changes is half of a Pod."""
    metadata, spec = pod["metadata"], pod.get("spec", {})
    keys = ("name", "namespace", "uid", "labels", "deletionTimestamp")
    main = {key: value for key, value in (metadata.get("annotations") or {}).items() if key == MAIN}
    containers = [
        {key: each[key] for key in ("name", "resources") if key in each} for each in spec.get("containers", ())
    ]
    return {
        "metadata": {**{key: metadata[key] for key in keys if key in metadata}, "annotations": main},
        "spec": {"nodeName": spec.get("nodeName", ""), "containers": containers},
        "status": pod.get("status", {}),
    }


def _own_name(pod: Json) -> str:
    containers = pod["spec"].get("containers") or [{}]
    return str((pod["metadata"].get("annotations") or {}).get(MAIN) or containers[0].get("name", ""))


def _conditions(pod: Json) -> Mapping[str, Json]:
    return {condition["type"]: condition for condition in pod.get("status", {}).get("conditions") or ()}


def _waiting(pod: Json, node: str) -> PendingReason:
    conditions, status_ = _conditions(pod), pod.get("status", {})
    if not node:
        scheduled = conditions.get("PodScheduled", {})
        return unplaced(scheduled.get("reason", ""), scheduled.get("message", ""))
    statuses = [*(status_.get("initContainerStatuses") or ()), *(status_.get("containerStatuses") or ())]
    return unstarted(statuses, sandbox=conditions.get("PodReadyToStartContainers", {}).get("status") == "True")


# --- what Kubernetes does to Pods ------------------------------------------------------------------------------------

_DISRUPTIONS: Final = {
    # Reasons of the condition DisruptionTarget → the message.
    "PreemptionByScheduler": "a Pod of higher priority took the place of this Pod on node {node}; set priority_class "
    "in [kubernetes]",
    "DeletionByTaintManager": "node {node} was lost, or tainted NoExecute",
    "EvictionByEvictionAPI": "evicted from node {node}, for example because the node was drained",
    "DeletionByPodGC": "node {node} was removed from the cluster",
}
_MORE_MEMORY: Final = "raise demand.base_mem or demand.mem_per_client"
_OWN_FAULT: Final = ("exceeds the", "exceeded its", "exceeds its")
"""Texts of an eviction because the Pod used more than its own limit."""

_REJECTED: Final = {
    # Prefixes of the reasons of a failed Pod that never ran → the message.
    "OutOf": "node {node} had too little left when the Pod arrived; other Pods were faster",
    "UnexpectedAdmissionError": "node {node} refused the Pod",
    "NodeAffinity": "the labels of node {node} have changed",
    "NodePorts": "a port of node {node} was taken when the Pod arrived",
    "TaintToleration": "node {node} has a new taint",
    "NodeShutdown": "node {node} shuts down",
    "Terminated": "node {node} shuts down",
    "Shutdown": "node {node} shuts down",
    "Preempting": "node {node} needed the place of this Pod for a critical Pod",
    "NodeLost": "node {node} does not answer",
}


def _disrupted(pod: Json, node: str) -> tuple[GroupState, str] | None:
    """The state and the message if the node or the cluster ended the Pod, otherwise None."""
    status_ = pod.get("status", {})
    reason, message = status_.get("reason", ""), one_line(status_.get("message", ""))
    target = _conditions(pod).get("DisruptionTarget", {})
    if reason == "Evicted":
        if any(words in message for words in _OWN_FAULT):
            return "failed", f"evicted from node {node}: {message}; the Pod's disk is /work and /tmp"
        remedy = f"; {_MORE_MEMORY}" if "low on resource: memory" in message else ""
        return "lost", f"evicted from node {node}: {message}".rstrip(": ") + remedy
    if reason == "DeadlineExceeded":
        return "failed", "the Pod's activeDeadlineSeconds are over; drop activeDeadlineSeconds from pod in [kubernetes]"
    for prefix, text in _REJECTED.items():
        if reason.startswith(prefix):
            detail = f" ({message})" if message else ""
            return "lost", text.format(node=node) + detail
    if target.get("status") == "True":
        text = _DISRUPTIONS.get(target.get("reason", ""), "")
        detail = one_line(target.get("message", ""))
        return "lost", text.format(node=node) if text else f"ended on node {node}: {detail or target.get('reason')}"
    if pod["metadata"].get("deletionTimestamp"):
        return "lost", "the group's Pod was deleted by another user or process"
    return None


# --- how containers end ----------------------------------------------------------------------------------------------

_CANNOT: Final = 78
"""The exit code of Hydra's scripts that cannot start a group on their node and print the reason."""
_SHELL: Final = 128
"""A shell, and a container's runtime, add this to the number of the signal that ended a process."""


def _ended(pod: Json, ended: Json, node: str, whose: str = "") -> PodStatus:
    reason, detail = ended.get("reason", ""), one_line(ended.get("message") or "")
    if reason == "ContainerStatusUnknown":
        return PodStatus(
            "lost", node, f"node {node} has lost the state of the Pod, for example by a restart of the node"
        )
    if reason == "OOMKilled":
        return PodStatus("failed", node, f"{whose}{_out_of_memory(pod)}")
    if reason in ("StartError", "ContainerCannotRun"):
        text = f"{whose}cannot be started: {detail}; is the image Hydra's own, of this version?"
        return PodStatus("failed", node, text, hopeless=True)
    code = ended.get("exitCode", 0)
    number = ended.get("signal") or (code - _SHELL if code > _SHELL else 0)
    how = f"killed by {end_of(-number)}" if number else f"exit status {code}"
    text = f"{whose}{how}: {detail}" if detail else f"{whose}{how}, and the group wrote nothing to stderr"
    return PodStatus("failed", node, text, hopeless=code == _CANNOT)


def _out_of_memory(pod: Json) -> str:
    # Hydra's init container has the same limit as the group's container.
    own: Json = next((c for c in pod["spec"].get("containers") or () if c.get("name") == _own_name(pod)), {})
    limit = (own.get("resources", {}).get("limits") or {}).get("memory", "")
    if not limit:
        return f"killed as the node ran out of memory; {_MORE_MEMORY}"
    more = f"{_MORE_MEMORY}, or memory_limit_ratio in [kubernetes]"
    return f"killed because the Pod needs more memory than its limit of {limit}; {more}"


def _failed_before_start(pod: Json, node: str) -> PodStatus:
    status_ = pod.get("status", {})
    for container in status_.get("initContainerStatuses") or ():
        ended = container.get("state", {}).get("terminated") or {}
        if ended.get("exitCode"):
            return _ended(pod, ended, node, f"init container {container.get('name', '')}: ")
    detail = ": ".join(filter(None, (status_.get("reason", ""), one_line(status_.get("message", "")))))
    return PodStatus(
        "failed", node, f"the group's Pod failed before it started: {detail or 'the cluster gives no reason'}"
    )
