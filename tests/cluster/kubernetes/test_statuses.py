"""What Pods mean for their groups, what is refused, and events: recorded ones, and ones that no cluster here has."""

from __future__ import annotations

from typing import Any

import pytest

from hydra.kubernetes.api_errors import api_failure, not_made, not_started
from hydra.kubernetes.pod_status import MAIN, PodStatus, status, trimmed
from hydra.model import GroupState
from tests.cluster.kubernetes.objects import Json, recorded
from tests.cluster.kubernetes.stated import container_is, ended, unschedulable, waiting

PODS: Json = recorded("pods")
RECORDED = {
    "runs": PodStatus("running", "node2"),
    "zero": PodStatus("finished", "node1", "exit status 0"),
    "exit3": PodStatus("failed", "node2", "exit status 3: out; one; two"),
    "term": PodStatus("failed", "node2", "killed by SIGTERM: going"),
    "segv": PodStatus("failed", "node1", "killed by SIGSEGV, and the group wrote nothing to stderr"),
    "init": PodStatus("failed", "node2", "init container fetch: exit status 78: hydra: no archive", hopeless=True),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_pods(name: str) -> None:
    assert status(PODS[name]) == RECORDED[name]


@pytest.mark.parametrize(
    ("name", "state", "waits_for", "hopeless", "expected", "remedy"),
    [
        ("oom", "failed", "", False, "needs more memory than its limit of 50Mi; raise demand", "memory_limit_ratio in"),
        ("gated", "starting", "node", False, "held back by a scheduling gate", "spec.schedulingGates, and who admits"),
        ("cpu", "starting", "node", False, "2 Insufficient cpu; add nodes", "demand.base_cpus and demand.cpus_per_cl"),
        ("nosecretb", "starting", "start", True, 'Error: secret "gone" not found', "; was the run's Secret deleted?"),
        ("never", "starting", "image", True, 'and pull_policy is "Never"; load', '), or set "IfNotPresent"'),
        ("mem", "starting", "node", False, "2 Insufficient memory", "demand.base_mem"),
        ("selector", "starting", "node", False, "2 didn't match Pod's node affinity/selector", "the constraints"),
        ("antiaffinity", "starting", "node", False, "2 didn't match pod anti-affinity rules", "larger groups"),
        ("untolerated", "starting", "node", False, "1 had untolerated taint {away: }", "the constraints"),
        ("pull", "starting", "image", False, "connection refused", "do not reach the registry"),
        ("pull-backoff", "starting", "image", False, "connection refused", "do not reach the registry"),
        ("dns", "starting", "image", False, "no such host", "do not reach the registry"),
        ("badname", "starting", "image", True, "invalid reference format", "correct image"),
        ("root", "starting", "start", True, "image will run as root", "pod.securityContext.runAsUser"),
        ("noprogram", "failed", "", True, 'exec: "no-such-program": executable file not found', "Hydra's own"),
        ("deadline", "failed", "", True, "activeDeadlineSeconds", "drop activeDeadlineSeconds"),
        ("outofcpu", "lost", "", False, "node node2 had too little left", "requested: 900000"),
        ("nodeaffinity", "lost", "", False, "the labels of node node2 have changed", ""),
        ("evicted-api", "lost", "", False, "evicted from node node2, for example because the node was drained", ""),
        (
            "preempted",
            "lost",
            "",
            False,
            "a Pod of higher priority took the place of this Pod on node node2",
            "priority_class",
        ),
        ("tainted", "lost", "", False, "node node2 was lost, or tainted NoExecute", ""),
        ("lost", "lost", "", False, "node node1 was lost, or tainted NoExecute", ""),
        ("deleted", "lost", "", False, "the group's Pod was deleted by another user or process", ""),
    ],
)
def test_recorded_pods_say_why_and_what_to_try(
    name: str, state: GroupState, waits_for: str, hopeless: bool, expected: str, remedy: str
) -> None:
    found = status(PODS[name])
    assert (found.state, found.waits_for, found.hopeless) == (state, waits_for, hopeless)
    assert bool(found.node) is (waits_for != "node")
    assert expected in found.detail
    assert remedy in found.detail


def test_every_recorded_pod_has_a_detail_of_one_line() -> None:
    assert [name for name, pod in PODS.items() if "\n" in status(pod).detail] == []
    assert [name for name, pod in PODS.items() if not status(pod).detail] == ["runs"]


# --- what was not recorded -------------------------------------------------------------------------------------------


def pod(reported: Json, *, node: str = "n1", deleted: bool = False, limits: Json | None = None) -> Json:
    container = {"name": "group", "image": "hydra:1", "resources": {"limits": limits} if limits else {}}
    meta: Json = {"name": "p", "annotations": {MAIN: "group"}}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [container]}, "status": reported}


def failed(reason: str, message: str, disrupted: str = "") -> Json:
    more = target(disrupted) if disrupted else {}
    return pod({"phase": "Failed", "reason": reason, "message": message, **more})


def target(reason: str, message: str = "") -> Json:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("it", "state", "expected"),
    [
        (pod(ended(1, message="Traceback\n  a\n\nError: b\n")), "failed", "exit status 1: Traceback; a; Error: b"),
        (pod(ended(137)), "failed", "killed by SIGKILL, and the group wrote nothing to stderr"),
        (pod(ended(163)), "failed", "killed by signal 35"),
        (pod(ended(1, signal=6)), "failed", "killed by SIGABRT"),
        (pod(ended(137, reason="OOMKilled")), "failed", "killed as the node ran out of memory; raise demand.base_mem"),
        (pod(ended(137, "ContainerStatusUnknown", "The container is not there")), "lost", "n1 has lost the state"),
        (pod(ended(0), deleted=True), "finished", "exit status 0"),
        (pod(ended(143), deleted=True), "lost", "deleted by another user or process"),
        (pod(container_is("Running", terminated={"exitCode": 0})), "finished", "exit status 0"),  # a sidecar continues
        (pod({"phase": "Succeeded"}), "finished", "exit status 0"),
        (pod({"phase": "Unknown"}), "lost", "node n1 does not answer"),
        (pod({"phase": "Failed"}), "failed", "the cluster gives no reason"),
        (failed("Odd", "x"), "failed", "before it started: Odd: x"),
        (failed("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container"
                " group was using 300Mi, request is 100Mi, has larger consumption of memory. ", "TerminationByKubelet"),
         "lost", "evicted from node n1: The node was low on resource: memory."),
        (failed("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "), "failed",
         "exceeds the total limit of containers 1Gi"),
        (failed("Evicted", 'Usage of EmptyDir volume "tmp" exceeds the limit "1Mi". '), "failed",
         'EmptyDir volume "tmp" exceeds the limit'),
        (failed("Terminated", "Pod was terminated in response to imminent node shutdown.", "TerminationByKubelet"),
         "lost", "node n1 shuts down"),
        (failed("UnexpectedAdmissionError", "Allocate failed due to no healthy devices, which is unexpected"), "lost",
         "node n1 refused the Pod (Allocate failed"),
        (failed("OutOfpods", "Pod was rejected"), "lost", "too little left"),
        (pod({"phase": "Failed", **target("DeletionByPodGC", "PodGC: node no longer exists")}), "lost", "was removed"),
        (pod({"phase": "Failed", **target("Novelty", "by a later\nKubernetes")}), "lost", "by a later; Kubernetes"),
        (pod({"phase": "Running", "reason": "NodeLost", "message": "Node n1 is unresponsive"}, deleted=True), "lost",
         "node n1 does not answer"),
    ],
)  # fmt: skip
def test_how_groups_end(it: Json, state: GroupState, expected: str) -> None:
    found = status(it)
    assert (found.state, found.node) == (state, "n1")
    assert expected in found.detail
    assert "\n" not in found.detail


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        (pod({}, node=""), PodStatus("starting", "", "the scheduler has not looked at it yet", "node")),
        (pod({"phase": "Pending"}), PodStatus("starting", "n1", "", "start")),
        (pod(waiting("ContainerCreating")), PodStatus("starting", "n1", "", "start")),
        (
            pod(
                {
                    **waiting("ContainerCreating"),
                    "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}],
                }
            ),
            PodStatus("starting", "n1", "the image is being pulled", "pull"),
        ),
        (pod(waiting("PodInitializing")), PodStatus("starting", "n1", "", "start")),
        (pod(waiting("CrashLoopBackOff", "back-off 10s")), PodStatus("starting", "n1", "back-off 10s", "start")),
        (
            pod(waiting("ImagePullBackOff", 'Back-off pulling image "hydra:1"')),
            PodStatus("starting", "n1", "image hydra:1 cannot be pulled: the kubelet tries again", "image"),
        ),
    ],
)
def test_what_a_new_pod_waits_for(it: Json, expected: PodStatus) -> None:
    assert status(it) == expected


PULL = (
    'failed to pull and unpack image "docker.io/library/hydra:1": '
    'failed to resolve reference "docker.io/library/hydra:1": '
)


@pytest.mark.parametrize(
    ("message", "expected", "remedy", "hopeless"),
    [
        (f"rpc error: code = NotFound desc = {PULL}docker.io/library/hydra:1: not found",
         "docker.io/library/hydra:1: not found", "kind load docker-image", True),
        (f"{PULL}pull access denied, repository does not exist or may require authorization: server message:"
         " insufficient_scope: authorization failed", "pull access denied", "imagePullSecrets", True),
        (f"{PULL}unexpected status from HEAD request: 401 Unauthorized", "401", "imagePullSecrets", True),
        (f"{PULL}failed to authorize: failed to fetch anonymous token: unexpected status: 403 Forbidden", "403",
         "imagePullSecrets", True),
        (f'{PULL}failed to do request: Head "https://r/v2/": x509: certificate signed by unknown authority', "x509",
         "add its CA", True),
        (f'{PULL}failed to do request: Head "https://r/v2/": http: server gave HTTP response to HTTPS client', "HTTPS",
         "has no TLS", True),
        (f'{PULL}failed to do request: Head "https://r/v2/": dial tcp 1.2.3.4:443: i/o timeout', "i/o timeout",
         "do not reach", False),
        (f"{PULL}429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit",
         "toomanyrequests", "a mirror", False),
        ('failed to pull and unpack image "docker.io/library/hydra:1": no match for platform in manifest: not found',
         "no match for platform", "machine type", True),
        ('failed to parse image reference "A/b:latest": invalid reference format: repository name must be lowercase',
         "must be lowercase", "correct image", True),
        ("write /var/lib/containerd/x: no space left on device", "no space left", "disk is full", False),
        (f'Back-off pulling image "hydra:1": ErrImagePull: {PULL}docker.io/library/hydra:1: not found',
         "pulled: docker.io/library/hydra:1: not found", "kind load", True),
    ],
)  # fmt: skip
def test_images_that_cannot_be_pulled(message: str, expected: str, remedy: str, hopeless: bool) -> None:
    found = status(pod(waiting("ErrImagePull", message)))
    assert (found.state, found.waits_for, found.hopeless) == ("starting", "image", hopeless)
    assert expected in found.detail
    assert remedy in found.detail
    assert "failed to pull and unpack" not in found.detail


@pytest.mark.parametrize(
    ("reason", "message", "hopeless"),
    [
        ("CreateContainerConfigError", "couldn't find key A in Secret lab/x", True),
        ("CreateContainerConfigError", "failed to sync secret cache: timed out waiting for the condition", False),
        ("CreateContainerError", "context deadline exceeded", False),
        ("CreateContainerError", 'failed to reserve container name "x": name "x" is reserved for "y"', False),
        ("RunContainerError", "failed to create shim task", True),
    ],
)
def test_containers_that_cannot_be_created(reason: str, message: str, hopeless: bool) -> None:
    found = status(pod(waiting(reason, message)))
    assert found == PodStatus("starting", "n1", f"{reason}: {message}", "start", hopeless=hopeless)


@pytest.mark.parametrize(
    ("message", "expected", "remedy"),
    [
        ("0/3 nodes are available: 1 node(s) had untolerated taint {dedicated: gpu}, 2 Too many pods. preemption: 0/3",
         "none of 3 nodes takes it: 1 had untolerated taint {dedicated: gpu}, 2 Too many pods", "max_group"),
        ("0/1 nodes are available: 1 node(s) had untolerated taint {a: b}.", "{a: b}", "tolerations"),
        ("0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.", "topology", "GROUP_BY"),
        ("0/2 nodes are available: 2 node(s) didn't match pod affinity rules.", "affinity rules", "CLUSTER"),
        ("0/2 nodes are available: 2 node(s) were unschedulable.", "2 were unschedulable", "uncordon"),
        ("no nodes available to schedule pods", "no nodes available to schedule pods", ""),
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "1 Insufficient nvidia.com/gpu", "ask for less"),
    ],
)  # fmt: skip
def test_what_the_scheduler_says(message: str, expected: str, remedy: str) -> None:
    found = status(pod(unschedulable(message), node=""))
    assert (found.state, found.waits_for, found.hopeless) == ("starting", "node", False)
    assert expected in found.detail
    assert remedy in found.detail


def test_whoever_is_evicted_for_its_memory_is_told_to_ask_for_more() -> None:
    detail = status(failed("Evicted", "The node was low on resource: memory. ")).detail
    assert detail.endswith("; raise demand.base_mem or demand.mem_per_client")


def test_a_limit_is_the_own_container_s() -> None:
    it = pod(ended(137, reason="OOMKilled"), limits={"memory": "64Mi"})
    it["spec"]["containers"].insert(0, {"name": "istio-proxy", "resources": {"limits": {"memory": "1Gi"}}})
    assert "its limit of 64Mi" in status(it).detail


def test_a_container_beside_the_own_one_does_not_count() -> None:
    states = {"istio-proxy": {"terminated": {"exitCode": 1}}, "group": {"running": {}}}
    messages = [{"name": name, "state": state} for name, state in states.items()]
    it = pod({"phase": "Running", "containerStatuses": messages})
    it["spec"]["containers"].insert(0, {"name": "istio-proxy"})
    assert status(it) == PodStatus("running", "n1")


def test_what_the_driver_leaves_out_of_a_pod_is_not_missed() -> None:
    for name, it in PODS.items():
        it["metadata"]["managedFields"] = [{"manager": "kubelet"}]
        assert status(trimmed(it)) == status(it), name
        assert "managedFields" not in trimmed(it)["metadata"], name


def test_long_output_keeps_its_end() -> None:
    detail = status(pod(ended(1, message="a" * 5000 + "\nthe end"))).detail
    assert detail.endswith("the end")
    assert len(detail) < 700


# --- what the API server refuses --------------------------------------------------------------------------------------


REFUSALS: Json = recorded("refusals")


@pytest.mark.parametrize(
    ("name", "kind", "final", "expected", "remedy"),
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
        (
            "namespace",
            "namespace",
            True,
            "in namespace lab: the namespace does not exist",
            "kubectl create namespace lab",
        ),
        ("terminating", "terminating", True, "in namespace lab: the namespace is being deleted", "wait"),
        ("exists", "conflict", True, 'pods "sleeps" already exists', "hydra kill"),
        ("missing", "missing", True, 'pods "nope" not found', "another user or process delete the object"),
        ("invalid", "invalid", True, 'metadata.name: Invalid value: "Bad_Name"', "[kubernetes]"),
        ("invalid-toleration", "invalid", True, 'Unsupported value: "Sometimes"', "tolerations"),
        ("malformed", "invalid", True, "cannot unmarshal string", "[kubernetes]"),
    ],
)
def test_recorded_refusals(name: str, kind: str, final: bool, expected: str, remedy: str) -> None:
    found = api_failure(**REFUSALS[name], doing="create pods", namespace="lab")
    assert (found.kind, found.final) == (kind, final)
    assert found.what.startswith("cannot create pods in namespace lab: ")
    assert expected in found.what
    assert remedy in found.remedy
    assert "is forbidden: " not in found.what or kind == "rights"


def test_every_recorded_refusal_is_in_the_table() -> None:
    (mark,) = (m for m in test_recorded_refusals.pytestmark if m.name == "parametrize")  # type: ignore[attr-defined]
    assert {row[0] for row in mark.args[1]} == set(REFUSALS)


@pytest.mark.parametrize(
    ("status", "reason", "message", "kind", "final", "expected"),
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
def test_refusals(status: int, reason: str, message: str, kind: str, final: bool, expected: str) -> None:
    found = api_failure(status, reason, message, doing="list nodes", namespace="")
    assert (found.kind, found.final) == (kind, final)
    assert found.what.startswith("cannot list nodes: ")
    assert expected in found.what
    assert "\n" not in found.what + found.remedy


def test_a_range_of_users_is_told() -> None:
    message = (
        'pods "x" is forbidden: unable to validate against any security context constraint: [provider restricted-v2:'
        " .spec.securityContext.runAsUser: Invalid value: 10001: must be in the ranges: [1000680000, 1000689999]]"
    )
    found = api_failure(403, "Forbidden", message, doing="create pods", namespace="lab")
    assert (found.kind, found.final) == ("security", True)
    assert "must be in the ranges: [1000680000, 1000689999]" in found.what
    assert "pod.securityContext.runAsUser" in found.remedy


# --- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("never", 'ErrImageNeverPull: Container image "rig.local/no:1" is not present with pull policy of Never'),
        ("nosecretb", 'Failed: Error: secret "gone" not found (4 times)'),
        ("runs", ""),
        ("pull", 'Failed: Failed to pull image "127.0.0.1:1/no/such:1": '),  # the cause, and not its repetition
    ],
)
def test_recorded_events(of: str, expected: str) -> None:
    found = not_started(event for event in recorded("events") if event["of"] == of)
    assert found.startswith(expected)
    assert bool(found) is bool(expected)


AT = "2026-01-01T00:00:{}Z"
SERIES = {"count": 7, "lastObservedTime": AT.format("09")}
AGAIN = {"lastTimestamp": None, "eventTime": AT.format("04.5"), "series": SERIES}


def warning(reason: str, second: str, **more: Any) -> Json:
    reported = {"type": "Warning", "reason": reason, "message": f"{reason} is why", "lastTimestamp": AT.format(second)}
    return {**reported, **more}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([{"type": "Normal", "reason": "Scheduled", "message": "m", "lastTimestamp": AT.format("02")}], ""),
        ([warning("FailedMount", "03"), warning("FailedScheduling", "01")], "FailedMount: FailedMount is why"),
        ([warning("FailedMount", "03"), warning("Sandbox", "", **AGAIN)], "Sandbox: Sandbox is why (7 times)"),
        ([{"type": "Warning"}], ""),
    ],
)
def test_the_latest_warning_is_told(events: list[Json], expected: str) -> None:
    assert not_started(events) == expected


def test_a_job_s_events_tell_why_it_makes_no_pod() -> None:
    expected = 'Error creating: pods "j-{}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2'
    found = not_made(
        [
            warning("FailedCreate", "01", message="Error creating: Internal error occurred"),
            warning("FailedCreate", "02", message=expected.format("nhzc9")),
            warning("Other", "03"),
        ],
        namespace="lab",
    )
    assert found is not None
    assert (found.kind, found.final) == ("quota", True)
    assert found.what.startswith("cannot create pods in namespace lab: exceeded quota: few")
    assert not_made([warning("Other", "03")], namespace="lab") is None
