"""Errors of the API server and events of Pods → one line for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from hydra.kubernetes.nodes import Json
from hydra.kubernetes.pod_status import one_line

Kind = Literal[
    "quota", "security", "webhook", "rights", "namespace", "terminating", "conflict", "credentials", "invalid",
    "missing", "unavailable", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiFailure:
    """Why a call failed.

    Attributes:
        kind: the kind of the reason.
        what: what failed and why, one line.
        remedy: what to try.
        final: whether another try would fail too.
    """

    kind: Kind
    what: str
    remedy: str
    final: bool


_FORBIDDEN: Final = re.compile(r'^[\w.]+ "[^"]*" is forbidden: ')
_SIGNS: Final[tuple[tuple[str, Kind], ...]] = (
    # (a pattern of the message, with any status; its kind); the first that fits counts.
    (r"being terminated|NamespaceTerminating", "terminating"),
    (r"exceeded quota|failed quota|(maximum|minimum) [\w.-]+ usage per|limit to request ratio", "quota"),
    (r"violates PodSecurity|security context constraint", "security"),
    (r"object has been modified|object is being deleted", "unavailable"),
    (r"denied the request|calling webhook|denied request", "webhook"),
    (r'User "system:anonymous"|certificate has expired|provide credentials', "credentials"),
    (r'^namespaces? "[^"]*" not found', "namespace"),
)
_STATUSES: Final[dict[int, Kind]] = {
    0: "unavailable", 400: "invalid", 401: "credentials", 403: "rights", 404: "missing", 409: "conflict",
    413: "invalid", 415: "invalid", 422: "invalid", 429: "unavailable",
}  # fmt: skip
_HOPELESS: Final = re.compile(r"certificate verify failed|CERTIFICATE_VERIFY_FAILED|Name or service not known")
"""Reasons without a connection that another try does not repair."""


_WHAT_PODS_MUST_HAVE: Final = (
    "ask the cluster's operator what Pods must have; labels, annotations and pod in [kubernetes] add these fields"
)


def api_failure(status: int, reason: str, message: str, *, doing: str, namespace: str) -> ApiFailure:
    """Why the API server did not carry out a request.

    Args:
        status: the HTTP status; 0 if there was no answer.
        reason: the API's reason, such as ``AlreadyExists``; may be "".
        message: the API's text for people.
        doing: the request, such as ``create pods``.
        namespace: the namespace of the request; "" if it has none.
    """
    kind = _kind(status, message)
    text = one_line(_FORBIDDEN.sub("", message)) or reason or (f"status {status}" if status else "no connection")
    where = f" in namespace {namespace}" if namespace else ""
    try_again = kind == "unavailable" and not (status == 0 and _HOPELESS.search(message))
    unreachable = (
        "is the API server running? kubectl cluster-info"
        if try_again
        else "look at the cluster's entry in your kubeconfig"
    )
    why, remedy = {
        "quota": (text, _quota_remedy(message)),
        "security": (text, _security_remedy(message)),
        "webhook": (text, _WHAT_PODS_MUST_HAVE),
        "rights": (text, _rights_remedy(message)),
        "namespace": ("the namespace does not exist", f"kubectl create namespace {namespace}, or name another one"),
        "terminating": (
            "the namespace is being deleted",
            "wait until it is deleted and create it again, or name another namespace",
        ),
        "conflict": (text, "hydra ps and hydra kill find a run of the same name; or give this run another name"),
        "credentials": (f"the API server does not know who asks ({text})", "log in to the cluster again"),
        "invalid": (text, "look at what [kubernetes] adds to Pods: pod, tolerations, labels, annotations"),
        "missing": (text, "did another user or process delete the object?"),
        "unavailable": (text, unreachable),
        "other": (text, ""),
    }[kind]
    unanswered = kind == "webhook" and "calling webhook" in message
    return ApiFailure(kind, f"cannot {doing}{where}: {why}", remedy, final=not (try_again or unanswered))


def is_full(message: str) -> bool:
    """Whether the message is about a quota that is used up."""
    return "exceeded quota" in message


def _kind(status: int, message: str) -> Kind:
    if status == 0:
        return "unavailable"
    for sign, kind in _SIGNS:
        if re.search(sign, message):
            return kind
    return "unavailable" if status >= 500 else _STATUSES.get(status, "other")


def _quota_remedy(message: str) -> str:
    if "must specify" in message:
        unset = " and ".join(f"{each}_limit_ratio" for each in ("cpu", "memory") if f"limits.{each}" in message)
        return f"set {unset} in [kubernetes]" if unset else "ask for a quota without limits, or for another namespace"
    if "pods=" in message:
        return "make fewer and larger groups (max_group), or ask for a larger quota"
    if re.search(r"cpu|memory", message):
        return "change the demand of clients and servers, or ask for another quota"
    return "ask for a larger quota"


def _security_remedy(message: str) -> str:
    if "must be in the range" in message:  # OpenShift
        return "set pod.securityContext.runAsUser and runAsGroup in [kubernetes] to a number of that range"
    return "drop what pod in [kubernetes] adds, or use a namespace whose Pod Security allows it"


def _rights_remedy(message: str) -> str:
    if "service account" in message:
        return "kubectl get serviceaccounts lists the accounts; service_account in [kubernetes] names the account"
    if "PriorityClass" in message:
        return "kubectl get priorityclasses lists the classes; priority_class in [kubernetes] names the class"
    return "is the namespace right? an administrator gives the rights: kubectl apply conf/kubernetes"


# --- events ----------------------------------------------------------------------------------------------------------


_NOISE: Final = frozenset({"MissingClusterDNS", "DNSConfigForming", "BackOff"})
"""Reasons of warnings that do not keep a Pod from starting, or only repeat another warning."""
_BARE: Final = re.compile(r"Error: \w+")
"""A message that contains only the reason of another warning."""


_CREATING: Final = "Error creating: "
_FORBIDDEN_STATUS: Final = 403
"""The status of what a quota or an admission rule rejects; the events of a Job do not contain a status."""


def not_started(events: Iterable[Json]) -> str:
    """The latest warning among a Pod's events, ``FailedMount: …``, one line; "" if there is none."""
    events_ = [(_when(event), event.get("reason") or "", event.get("message") or "", event) for event in events]
    warnings = [
        each for each in events_
        if each[3].get("type") == "Warning" and each[1] not in _NOISE and not _BARE.fullmatch(each[2])
    ]  # fmt: skip
    if not warnings:
        return ""
    _, reason, message, event = max(warnings, key=lambda each: each[0])
    times = (event.get("series") or {}).get("count") or event.get("count") or 1
    text = ": ".join(filter(None, (reason, one_line(message))))
    return f"{text} ({times} times)" if times > 1 else text


def not_made(events: Iterable[Json], *, namespace: str) -> ApiFailure | None:
    """Why the cluster creates no Pod for a Job, by the Job's events; None if they contain no reason."""
    refusals = [
        (_when(event), message.removeprefix(_CREATING))
        for event in events
        if (message := event.get("message") or "").startswith(_CREATING)
    ]
    if not refusals:
        return None
    _, message = max(refusals)
    return api_failure(_FORBIDDEN_STATUS, "", message, doing="create pods", namespace=namespace)


def _when(event: Json) -> str:
    """The event's time as the API writes it: the texts compare like the times."""
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")
