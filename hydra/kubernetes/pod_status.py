"""A Pod as the API's JSON has it → the state of its group, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hydra.events.clients import end_of
from hydra.kubernetes.nodes import Json
from hydra.kubernetes.pending_pods import For, Waiting, one_line, unplaced, unstarted
from hydra.model import GroupState

MAIN: Final = "kubectl.kubernetes.io/default-container"
"""The annotation that names a Pod's own container: others may be injected beside it."""


@dataclass(frozen=True, slots=True)
class PodStatus:
    """What a Pod means for its group.

    Attributes:
        state: of the group. ``lost``: nothing speaks against the group, it may be launched again elsewhere;
            ``failed``: its own fault, or its settings'.
        node: "" while the Pod is bound to none.
        detail: one line for people: what, why, what to try.
        waits_for: what a Pod that has not started waits for.
        hopeless: of one that has not started: waiting will not help; of a failed one: neither will another Pod.
    """

    state: GroupState
    node: str
    detail: str = ""
    waits_for: For = ""
    hopeless: bool = False


def status(pod: Json) -> PodStatus:
    """The state of a Pod's group.

    A Pod that is being deleted is ``lost``: whoever deletes it on purpose knows better.
    """
    node = pod["spec"].get("nodeName") or ""
    own = _own(pod)
    ended = own.get("state", {}).get("terminated")
    if ended and ended.get("exitCode") == 0:
        return PodStatus("finished", node, "exit status 0")
    if disrupted := _disrupted(pod, node):
        state, detail = disrupted
        return PodStatus(state, node, detail, hopeless=state == "failed")
    if ended:
        return _ended(pod, ended, node)
    told = pod.get("status", {})
    if told.get("phase") == "Failed":
        return _failed_before_it_started(pod, node)
    if told.get("phase") == "Succeeded":
        return PodStatus("finished", node, "exit status 0")
    if told.get("phase") == "Unknown":
        return PodStatus("lost", node, f"node {node} does not answer")
    if "running" in own.get("state", {}):
        return PodStatus("running", node)
    waiting = _waiting(pod, node)
    return PodStatus("starting", node, waiting.detail, waiting.waits_for, waiting.hopeless)


def waits(status: PodStatus) -> str:
    """What a Pod that has not started waits for, in a few words."""
    return status.detail or "it starts"


def trimmed(pod: Json) -> Json:
    """A Pod without what nobody here reads: the record of who has changed which field is half of it."""
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


def _own(pod: Json) -> Json:
    """The status of the Pod's own container, {} while there is none."""
    statuses: list[Json] = pod.get("status", {}).get("containerStatuses") or []
    return next((s for s in statuses if s.get("name") == _own_name(pod)), {})


def _own_name(pod: Json) -> str:
    containers = pod["spec"].get("containers") or [{}]
    return str((pod["metadata"].get("annotations") or {}).get(MAIN) or containers[0].get("name", ""))


def _conditions(pod: Json) -> Mapping[str, Json]:
    return {condition["type"]: condition for condition in pod.get("status", {}).get("conditions") or ()}


def _waiting(pod: Json, node: str) -> Waiting:
    conditions, told = _conditions(pod), pod.get("status", {})
    if not node:
        scheduled = conditions.get("PodScheduled", {})
        return unplaced(scheduled.get("reason", ""), scheduled.get("message", ""))
    statuses = [*(told.get("initContainerStatuses") or ()), *(told.get("containerStatuses") or ())]
    return unstarted(statuses, sandbox=conditions.get("PodReadyToStartContainers", {}).get("status") == "True")


# --- what Kubernetes does to Pods ------------------------------------------------------------------------------------

_DISRUPTIONS: Final = {
    # Reasons of the condition DisruptionTarget → what to tell.
    "PreemptionByScheduler": "a Pod of higher priority took its place on {node}; set priority_class in [kubernetes]",
    "DeletionByTaintManager": "node {node} was lost, or tainted NoExecute",
    "EvictionByEvictionAPI": "evicted from node {node}, as a drain does",
    "DeletionByPodGC": "node {node} is gone from the cluster",
}
_MORE_MEMORY: Final = "raise demand.base_mem or demand.mem_per_client"
_OWN_FAULT: Final = ("exceeds the", "exceeded its", "exceeds its")
"""Of an eviction: the Pod used more than its own limit."""

_REJECTED: Final = {
    # Reasons of a failed Pod that never ran; prefix → what to tell.
    "OutOf": "node {node} had too little left when the Pod came; other Pods were faster",
    "UnexpectedAdmissionError": "node {node} refused the Pod",
    "NodeAffinity": "the labels of node {node} have changed",
    "NodePorts": "a port of node {node} was taken when the Pod came",
    "TaintToleration": "node {node} has a new taint",
    "NodeShutdown": "node {node} shuts down",
    "Terminated": "node {node} shuts down",
    "Shutdown": "node {node} shuts down",
    "Preempting": "node {node} needed its place for a critical Pod",
    "NodeLost": "node {node} does not answer",
}


def _disrupted(pod: Json, node: str) -> tuple[GroupState, str] | None:
    """What has been done to the Pod from outside, None if nothing."""
    told = pod.get("status", {})
    reason, message = told.get("reason", ""), one_line(told.get("message", ""))
    target = _conditions(pod).get("DisruptionTarget", {})
    if reason == "Evicted":
        if any(words in message for words in _OWN_FAULT):
            return "failed", f"evicted from node {node}: {message}; its disk is /work and /tmp"
        remedy = f"; {_MORE_MEMORY}" if "low on resource: memory" in message else ""
        return "lost", f"evicted from node {node}: {message}".rstrip(": ") + remedy
    if reason == "DeadlineExceeded":
        return "failed", "its activeDeadlineSeconds are over; drop them from pod in [kubernetes]"
    for prefix, text in _REJECTED.items():
        if reason.startswith(prefix):
            said = f" ({message})" if message else ""
            return "lost", text.format(node=node) + said
    if target.get("status") == "True":
        text = _DISRUPTIONS.get(target.get("reason", ""), "")
        said = one_line(target.get("message", ""))
        return "lost", text.format(node=node) if text else f"ended on node {node}: {said or target.get('reason')}"
    if pod["metadata"].get("deletionTimestamp"):
        return "lost", "its Pod was deleted by somebody else"
    return None


# --- how containers end ----------------------------------------------------------------------------------------------

_CANNOT: Final = 78
"""The exit code of our scripts that cannot start a group where they are, and say why."""
_SHELL: Final = 128
"""A shell, and a container's runtime, add this to the number of the signal that ended a process."""


def _ended(pod: Json, ended: Json, node: str, whose: str = "") -> PodStatus:
    reason, said = ended.get("reason", ""), one_line(ended.get("message") or "")
    if reason == "ContainerStatusUnknown":
        return PodStatus("lost", node, f"node {node} lost sight of it, as after a restart of the node")
    if reason == "OOMKilled":
        return PodStatus("failed", node, f"{whose}{_out_of_memory(pod)}")
    if reason in ("StartError", "ContainerCannotRun"):
        text = f"{whose}cannot be started: {said}; is the image Hydra's own, of this version?"
        return PodStatus("failed", node, text, hopeless=True)
    code = ended.get("exitCode", 0)
    number = ended.get("signal") or (code - _SHELL if code > _SHELL else 0)
    how = f"killed by {end_of(-number)}" if number else f"exit status {code}"
    text = f"{whose}{how}: {said}" if said else f"{whose}{how}, and it said nothing on stderr"
    return PodStatus("failed", node, text, hopeless=code == _CANNOT)


def _out_of_memory(pod: Json) -> str:
    # An init container of ours has the limit of the group.
    own: Json = next((c for c in pod["spec"].get("containers") or () if c.get("name") == _own_name(pod)), {})
    limit = (own.get("resources", {}).get("limits") or {}).get("memory", "")
    if not limit:
        return f"killed as the node ran out of memory; {_MORE_MEMORY}"
    more = f"{_MORE_MEMORY}, or memory_limit_ratio in [kubernetes]"
    return f"killed as it needs more memory than its limit of {limit}; {more}"


def _failed_before_it_started(pod: Json, node: str) -> PodStatus:
    told = pod.get("status", {})
    for container in told.get("initContainerStatuses") or ():
        ended = container.get("state", {}).get("terminated") or {}
        if ended.get("exitCode"):
            return _ended(pod, ended, node, f"init container {container.get('name', '')}: ")
    said = ": ".join(filter(None, (told.get("reason", ""), one_line(told.get("message", "")))))
    return PodStatus("failed", node, f"its Pod failed before it started: {said or 'the cluster does not say why'}")
