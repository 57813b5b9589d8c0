"""What a Pod that has not started waits for, and what to try: the scheduler's and the kubelet's messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from hydra.kubernetes.nodes import Json

For = Literal["", "node", "pull", "image", "start"]
"""A node that takes the Pod, an image that is fetched, one that could not be, the container's start; "" nothing."""

NODE_WITHIN_S: Final = 30.0
"""How long a Pod waits for a node: Pods of the step before may still be ending."""
IMAGE_WITHIN_S: Final = 20.0
"""How long a node tries again whose attempt to fetch an image has failed."""
START_WITHIN_S: Final = 120.0
"""How long a Pod that has a node may take to start, its image fetched, before it is asked what keeps it."""
PULLED_WITHIN_S: Final = 600.0
"""How long a node may take to fetch an image."""
PATIENCE_S: Final = {
    "node": NODE_WITHIN_S,
    "pull": PULLED_WITHIN_S,
    "image": IMAGE_WITHIN_S,
    "start": START_WITHIN_S,
}
"""How long each of what a Pod waits for (``PodStatus.waits_for``) may last."""
HOPELESS_S: Final = 2.0
"""A Secret that was just made is not seen by each node at once."""


class Waiting(NamedTuple):
    """What is waited for; ``detail`` is one line for people, with a remedy; ``hopeless`` is what never comes."""

    waits_for: For
    detail: str = ""
    hopeless: bool = False


def one_line(text: str, longest: int = 600) -> str:
    """Lines joined into one; the end is what counts where it is too long."""
    joined = "; ".join(filter(None, (line.strip() for line in text.splitlines())))
    return joined if len(joined) <= longest else f"…{joined[-longest:]}"


# --- a node ----------------------------------------------------------------------------------------------------------

_COUNTS: Final = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_PREEMPTION: Final = re.compile(r"\.? preemption: .*", re.DOTALL)
_NODES: Final = re.compile(r"\bnode\(s\) ")

_UNPLACED: Final = (
    # (what the scheduler says, what to try); the first that fits is told.
    ("Insufficient cpu", "add nodes, end other Pods, or lower demand.base_cpus and demand.cpus_per_client"),
    ("Insufficient memory", "add nodes, end other Pods, or lower demand.base_mem and demand.mem_per_client"),
    ("Too many pods", "add nodes, or make fewer and larger groups (max_group)"),
    ("Insufficient", "add nodes, or ask for less"),
    (
        "pod topology spread",
        "too little is free where GROUP_BY wants the next group: add nodes, or drop the constraint",
    ),
    ("pod anti-affinity", "more groups than nodes for UNIQUE or MAX_PER: add nodes, or make larger groups (max_group)"),
    ("pod affinity rules", "too little is free where CLUSTER keeps the groups together: name its value, or drop it"),
    ("node affinity/selector", "look at the constraints and at hydra agents: labels may have changed"),
    ("free ports", "name other ports in [kubernetes]"),
    ("untolerated taint", "add tolerations to [kubernetes]"),
    ("unschedulable", "kubectl uncordon them"),
)


def unplaced(reason: str, message: str) -> Waiting:
    """Why the scheduler has bound a Pod to no node, from its condition ``PodScheduled``."""
    if reason == "SchedulingGated":
        return Waiting("node", "held back by a scheduling gate; see spec.schedulingGates, and who admits Pods there")
    text = _PREEMPTION.sub("", one_line(message)).rstrip(". ")
    remedy = next((remedy for says, remedy in _UNPLACED if says in text), "")
    if counts := _COUNTS.fullmatch(text):
        text = f"none of {counts[1]} nodes takes it: {_NODES.sub('', counts[2])}"
    text = text or "the scheduler has not looked at it yet"
    return Waiting("node", f"{text}; {remedy}" if remedy else text)


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
    # (what the registry or the runtime says, what to try, whether another try may help)
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


def unpulled(reason: str, message: str, image: str) -> Waiting:
    """Why the image is not on the node."""
    says = _NOISE.sub("", one_line(message)).strip(" :")
    if reason == "InvalidImageName":
        text = f"{image!r} cannot be the name of an image ({says}); correct image in [kubernetes], or --image"
        return Waiting("image", text, hopeless=True)
    if reason == "ErrImageNeverPull":
        text = f'{image} is not on the node, and pull_policy is "Never"'
        remedy = 'load it there (kind load docker-image), or set "IfNotPresent"'
        return Waiting("image", f"{text}; {remedy}", hopeless=True)
    found = next(((remedy, again) for word, remedy, again in _UNPULLED if word in says), None)
    text = f"image {image} cannot be pulled: {says or 'the kubelet tries again'}"
    return Waiting("image", f"{text}; {found[0]}", hopeless=not found[1]) if found else Waiting("image", text)


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


def unstarted(statuses: Sequence[Json], *, sandbox: bool) -> Waiting:
    """What the first container waits for that has not started.

    Args:
        statuses: of the containers, init containers first.
        sandbox: whether the Pod has its network: only the image is missing then.
    """
    for status in statuses:
        waiting = status.get("state", {}).get("waiting") or {}
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in _IMAGE_REASONS:
            return unpulled(reason, message, status.get("image", ""))
        if reason in _CREATION:
            passes = any(words in message for words in _MAY_PASS)
            return Waiting("start", f"{reason}: {one_line(message)}{_remedy(message)}", hopeless=not passes)
        if reason == "CrashLoopBackOff":
            return Waiting("start", one_line(message))
        if reason == "ContainerCreating":
            return Waiting("pull", "the image is being pulled") if sandbox else Waiting("start")
    return Waiting("start")


def _remedy(message: str) -> str:
    if "runAsNonRoot" in message or "non-root" in message:
        return "; the image runs as root: set pod.securityContext.runAsUser in [kubernetes]"
    if message.startswith("secret ") and "not found" in message:
        return "; was the run's Secret deleted?"
    return ""
