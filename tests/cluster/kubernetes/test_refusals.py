"""What the API server refuses, recorded and known, and what events tell."""

from __future__ import annotations

from typing import Any

import pytest

from hydra.cluster.kubernetes.refusals import not_made, not_started, refusal
from tests.cluster.kubernetes.golden import recorded

Json = dict[str, Any]

REFUSALS: Json = recorded("refusals")


@pytest.mark.parametrize(
    ("name", "kind", "final", "says", "remedy"),
    [
        ("quota-pods", "quota", True, "exceeded quota: few, requested: pods=1", "max_group"),
        ("quota-cpu", "quota", True, "exceeded quota: cpus, requested: requests.cpu=2", "change the demand"),
        ("quota-unset", "quota", True, "must specify limits.cpu", "set cpu_limit_ratio and memory_limit_ratio in"),
        ("limitrange", "quota", True, "minimum memory usage per Container is 64Mi", "change the demand"),
        ("security", "security", True, 'violates PodSecurity "restricted:latest"', "pod in [kubernetes]"),
        ("policy", "webhook", True, "denied request: Pods need the label team", "labels, annotations and pod"),
        ("webhook-away", "webhook", False, 'failed calling webhook "hook.example.com"', "operator"),
        ("rights", "rights", True, 'User "hydra" cannot create resource "pods"', "conf/kubernetes"),
        ("rights-nodes", "rights", True, 'cannot list resource "nodes"', "conf/kubernetes"),
        ("account", "rights", True, 'serviceaccount "hydra" not found', "service_account"),
        ("priority", "rights", True, "no PriorityClass with name low", "priority_class"),
        ("credentials", "credentials", True, "(Unauthorized)", "log in"),
        ("namespace", "namespace", True, "in namespace lab: it does not exist", "kubectl create namespace lab"),
        ("terminating", "terminating", True, "in namespace lab: it is being deleted", "wait"),
        ("exists", "conflict", True, 'pods "sleeps" already exists', "hydra kill"),
        ("missing", "missing", True, 'pods "nope" not found', "deleted by somebody else"),
        ("invalid", "invalid", True, 'metadata.name: Invalid value: "Bad_Name"', "[kubernetes]"),
        ("invalid-toleration", "invalid", True, 'Unsupported value: "Sometimes"', "tolerations"),
        ("malformed", "invalid", True, "cannot unmarshal string", "[kubernetes]"),
    ],
)
def test_recorded_refusals(name: str, kind: str, final: bool, says: str, remedy: str) -> None:
    found = refusal(**REFUSALS[name], doing="create pods", namespace="lab")
    assert (found.kind, found.final) == (kind, final)
    assert found.what.startswith("cannot create pods in namespace lab: ")
    assert says in found.what
    assert remedy in found.remedy
    assert "is forbidden: " not in found.what or kind == "rights"


def test_every_recorded_refusal_is_in_the_table() -> None:
    (mark,) = (m for m in test_recorded_refusals.pytestmark if m.name == "parametrize")  # type: ignore[attr-defined]
    assert {row[0] for row in mark.args[1]} == set(REFUSALS)


@pytest.mark.parametrize(
    ("status", "reason", "message", "kind", "final", "says"),
    [
        (0, "", "Connection refused", "unavailable", False, "Connection refused"),
        (0, "", "", "unavailable", False, "no connection"),
        (0, "", "certificate verify failed: self-signed certificate", "unavailable", True, "self-signed"),
        (0, "", "Name or service not known", "unavailable", True, "Name or service"),
        (500, "InternalError", "etcdserver: leader changed", "unavailable", False, "leader changed"),
        (503, "ServiceUnavailable", "the server is currently unable", "unavailable", False, "unable"),
        (504, "Timeout", "request timed out", "unavailable", False, "timed out"),
        (429, "TooManyRequests", "too many requests", "unavailable", False, "too many"),
        (409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q": the object has been modified; please'
         " apply your changes to the latest version and try again", "unavailable", False, "modified"),
        (409, "AlreadyExists", 'object is being deleted: pods "x" already exists', "unavailable", False, "deleted"),
        (403, "Forbidden", 'nodes is forbidden: User "system:anonymous" cannot list resource "nodes"', "credentials",
         True, "anonymous"),
        (400, "BadRequest", 'admission webhook "k.io" denied the request: no', "webhook", True, "request: no"),
        (403, "Forbidden", 'admission webhook "validate.kyverno.svc-fail" denied the request: \n\npolicy Pod/x\n for'
         " resource violation", "webhook", True, "denied the request:; policy Pod/x; for resource violation"),
        (403, "Forbidden", 'secrets "x" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=9,'
         " limited: secrets=9", "quota", True, "requested: secrets=1"),
        (402, "", "pay", "other", True, "pay"),
        (404, "NotFound", "", "missing", True, "NotFound"),
        (418, "", "", "other", True, "status 418"),
    ],
)  # fmt: skip
def test_refusals(status: int, reason: str, message: str, kind: str, final: bool, says: str) -> None:
    found = refusal(status, reason, message, doing="list nodes", namespace="")
    assert (found.kind, found.final) == (kind, final)
    assert found.what.startswith("cannot list nodes: ")
    assert says in found.what
    assert "\n" not in found.what + found.remedy


def test_a_range_of_users_is_told() -> None:
    message = (
        'pods "x" is forbidden: unable to validate against any security context constraint: [provider restricted-v2:'
        " .spec.securityContext.runAsUser: Invalid value: 10001: must be in the ranges: [1000680000, 1000689999]]"
    )
    found = refusal(403, "Forbidden", message, doing="create pods", namespace="lab")
    assert (found.kind, found.final) == ("security", True)
    assert "must be in the ranges: [1000680000, 1000689999]" in found.what
    assert "pod.securityContext.runAsUser" in found.remedy


# --- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (
            "never",
            'ErrImageNeverPull: Container image "rig.local/no:1" is not present with pull policy of Never (3 times)',
        ),
        ("nosecretb", 'Failed: Error: secret "gone" not found (4 times)'),
        ("runs", ""),
    ],
)
def test_recorded_events(of: str, says: str) -> None:
    assert not_started(event for event in recorded("events") if event["of"] == of) == says


def test_the_cause_is_told_and_not_its_repetition() -> None:
    told = not_started(event for event in recorded("events") if event["of"] == "pull")
    assert told.startswith('Failed: Failed to pull image "127.0.0.1:1/no/such:1": ')


def warning(reason: str, at: str, **more: Any) -> Json:
    return {"type": "Warning", "reason": reason, "message": f"{reason} is why", "lastTimestamp": at, **more}


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], ""),
        ([{"type": "Normal", "reason": "Scheduled", "message": "m", "lastTimestamp": "2026-01-01T00:00:02Z"}], ""),
        (
            [warning("FailedMount", "2026-01-01T00:00:03Z"), warning("FailedScheduling", "2026-01-01T00:00:01Z")],
            "FailedMount: FailedMount is why",
        ),
        (
            [
                warning("FailedMount", "2026-01-01T00:00:03Z"),
                {**warning("FailedCreatePodSandBox", ""), "lastTimestamp": None, "eventTime": "2026-01-01T00:00:04.5Z",
                 "series": {"count": 7, "lastObservedTime": "2026-01-01T00:00:09.000000Z"}},
            ],
            "FailedCreatePodSandBox: FailedCreatePodSandBox is why (7 times)",
        ),
        ([{"type": "Warning"}], ""),
    ],
)  # fmt: skip
def test_the_latest_warning_is_told(events: list[Json], says: str) -> None:
    assert not_started(events) == says


def test_a_job_s_events_tell_why_it_makes_no_pod() -> None:
    says = 'Error creating: pods "j-{}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2'
    found = not_made(
        [
            warning("FailedCreate", "2026-01-01T00:00:01Z", message="Error creating: Internal error occurred"),
            warning("FailedCreate", "2026-01-01T00:00:02Z", message=says.format("nhzc9")),
            warning("Other", "2026-01-01T00:00:03Z"),
        ],
        namespace="lab",
    )
    assert found is not None
    assert (found.kind, found.final) == ("quota", True)
    assert found.what.startswith("cannot create pods in namespace lab: exceeded quota: few")
    assert not_made([warning("Other", "2026-01-01T00:00:03Z")], namespace="lab") is None
