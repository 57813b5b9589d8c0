"""What Pods mean for their groups: recorded ones, and those that no cluster at hand brings about."""

from __future__ import annotations

from typing import Any

import pytest

from hydra.cluster.kubernetes.statuses import MAIN, PodStatus, status, trimmed
from hydra.model import GroupState
from tests.cluster.kubernetes.golden import recorded

Json = dict[str, Any]

PODS: Json = recorded("pods")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runs", PodStatus("running", "node2")),
        ("zero", PodStatus("finished", "node1", "exit status 0")),
        ("exit3", PodStatus("failed", "node2", "exit status 3: out; one; two")),
        ("term", PodStatus("failed", "node2", "killed by SIGTERM: going")),
        ("segv", PodStatus("failed", "node1", "killed by SIGSEGV, and it said nothing on stderr")),
        (
            "init",
            PodStatus("failed", "node2", "init container fetch: exit status 78: hydra: no archive", hopeless=True),
        ),
        (
            "oom",
            PodStatus(
                "failed",
                "node2",
                "killed as it needs more memory than its limit of 50Mi; raise demand.base_mem or demand.mem_per_client,"
                " or memory_limit_ratio in [kubernetes]",
            ),
        ),
        (
            "gated",
            PodStatus(
                "starting",
                "",
                "held back by a scheduling gate; see spec.schedulingGates, and who admits Pods there",
                "node",
            ),
        ),
        (
            "cpu",
            PodStatus(
                "starting",
                "",
                "none of 2 nodes takes it: 2 Insufficient cpu; add nodes, end other Pods, or lower demand.base_cpus"
                " and demand.cpus_per_client",
                "node",
            ),
        ),
        (
            "nosecretb",
            PodStatus(
                "starting",
                "node2",
                'CreateContainerConfigError: secret "gone" not found; was the run\'s Secret deleted?',
                "start",
                hopeless=True,
            ),
        ),
        (
            "never",
            PodStatus(
                "starting",
                "node1",
                'rig.local/no:1 is not on the node, and pull_policy is "Never"; load it there (kind load docker-image),'
                ' or set "IfNotPresent"',
                "image",
                hopeless=True,
            ),
        ),
    ],
)
def test_recorded_pods(name: str, expected: PodStatus) -> None:
    assert status(PODS[name]) == expected


@pytest.mark.parametrize(
    ("name", "state", "waits_for", "hopeless", "says", "remedy"),
    [
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
        ("deadline", "failed", "", True, "activeDeadlineSeconds", "drop them"),
        ("outofcpu", "lost", "", False, "node node2 had too little left", "requested: 900000"),
        ("nodeaffinity", "lost", "", False, "the labels of node node2 have changed", ""),
        ("evicted-api", "lost", "", False, "evicted from node node2, as a drain does", ""),
        ("preempted", "lost", "", False, "a Pod of higher priority took its place on node2", "priority_class"),
        ("tainted", "lost", "", False, "node node2 was lost, or tainted NoExecute", ""),
        ("lost", "lost", "", False, "node node1 was lost, or tainted NoExecute", ""),
        ("deleted", "lost", "", False, "its Pod was deleted by somebody else", ""),
    ],
)
def test_recorded_pods_say_why_and_what_to_try(
    name: str, state: GroupState, waits_for: str, hopeless: bool, says: str, remedy: str
) -> None:
    found = status(PODS[name])
    assert (found.state, found.waits_for, found.hopeless) == (state, waits_for, hopeless)
    assert says in found.detail
    assert remedy in found.detail


def test_every_recorded_pod_has_a_detail_of_one_line() -> None:
    assert [name for name, pod in PODS.items() if "\n" in status(pod).detail] == []
    assert [name for name, pod in PODS.items() if not status(pod).detail] == ["runs"]


# --- what was not recorded -------------------------------------------------------------------------------------------


def pod(told: Json, *, node: str = "n1", deleted: bool = False, limits: Json | None = None) -> Json:
    container = {"name": "group", "image": "hydra:1", "resources": {"limits": limits} if limits else {}}
    meta: Json = {"name": "p", "annotations": {MAIN: "group"}}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [container]}, "status": told}


def ended(code: int, phase: str = "Failed", **more: Any) -> Json:
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error", **more}}
    return {"phase": phase, "containerStatuses": [{"name": "group", "state": state}]}


def waiting(reason: str, message: str = "", **more: Any) -> Json:
    state = {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}
    return {"phase": "Pending", "containerStatuses": [{"name": "group", "image": "hydra:1", "state": state}], **more}


def target(reason: str, message: str = "") -> Json:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("it", "state", "says"),
    [
        (pod(ended(1, message="Traceback\n  a\n\nError: b\n")), "failed", "exit status 1: Traceback; a; Error: b"),
        (pod(ended(137)), "failed", "killed by SIGKILL, and it said nothing on stderr"),
        (pod(ended(163)), "failed", "killed by signal 35"),
        (pod(ended(1, signal=6)), "failed", "killed by SIGABRT"),
        (pod(ended(137, reason="OOMKilled")), "failed", "killed as the node ran out of memory; raise demand.base_mem"),
        (
            pod(ended(137, reason="ContainerStatusUnknown", message="The container could not be located")),
            "lost",
            "node n1 lost sight of it",
        ),
        (pod(ended(0), deleted=True), "finished", "exit status 0"),
        (pod(ended(143), deleted=True), "lost", "deleted by somebody else"),
        (pod(ended(0, phase="Running")), "finished", "exit status 0"),  # an injected sidecar goes on
        (pod({"phase": "Succeeded"}), "finished", "exit status 0"),
        (pod({"phase": "Unknown"}), "lost", "node n1 does not answer"),
        (pod({"phase": "Failed"}), "failed", "the cluster does not say why"),
        (pod({"phase": "Failed", "reason": "Odd", "message": "x"}), "failed", "before it started: Odd: x"),
        (
            pod({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. Threshold"
                 " quantity: 100Mi, available: 50Mi. Container group was using 300Mi, request is 100Mi, has larger"
                 " consumption of memory. ", **target("TerminationByKubelet")}),
            "lost",
            "evicted from node n1: The node was low on resource: memory.",
        ),
        (
            pod({"phase": "Failed", "reason": "Evicted",
                 "message": "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "}),
            "failed",
            "exceeds the total limit of containers 1Gi",
        ),
        (
            pod({"phase": "Failed", "reason": "Evicted", "message": 'Usage of EmptyDir volume "tmp" exceeds the limit'
                 ' "1Mi". '}),
            "failed",
            'EmptyDir volume "tmp" exceeds the limit',
        ),
        (
            pod({"phase": "Failed", "reason": "Terminated", "message": "Pod was terminated in response to imminent node"
                 " shutdown.", **target("TerminationByKubelet")}),
            "lost",
            "node n1 shuts down",
        ),
        (
            pod({"phase": "Failed", "reason": "UnexpectedAdmissionError",
                 "message": "Allocate failed due to no healthy devices, which is unexpected"}),
            "lost",
            "node n1 refused the Pod (Allocate failed",
        ),
        (pod({"phase": "Failed", "reason": "OutOfpods", "message": "Pod was rejected"}), "lost", "too little left"),
        (pod({"phase": "Failed", **target("DeletionByPodGC", "PodGC: node no longer exists")}), "lost", "is gone"),
        (pod({"phase": "Failed", **target("Novelty", "by a later\nKubernetes")}), "lost", "by a later; Kubernetes"),
        (pod({"phase": "Running", "reason": "NodeLost", "message": "Node n1 is unresponsive"}, deleted=True), "lost",
         "node n1 does not answer"),
    ],
)  # fmt: skip
def test_how_groups_end(it: Json, state: GroupState, says: str) -> None:
    found = status(it)
    assert (found.state, found.node) == (state, "n1")
    assert says in found.detail
    assert "\n" not in found.detail


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        (pod({}, node=""), PodStatus("starting", "", "the scheduler has not looked at it yet", "node")),
        (pod({"phase": "Pending"}), PodStatus("starting", "n1", "", "start")),
        (pod(waiting("ContainerCreating")), PodStatus("starting", "n1", "", "start")),
        (
            pod(waiting("ContainerCreating", conditions=[{"type": "PodReadyToStartContainers", "status": "True"}])),
            PodStatus("starting", "n1", "the image is being pulled", "pull"),
        ),
        (pod(waiting("PodInitializing")), PodStatus("starting", "n1", "", "start")),
        (
            pod(waiting("CrashLoopBackOff", "back-off 10s restarting failed container")),
            PodStatus("starting", "n1", "back-off 10s restarting failed container", "start"),
        ),
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
    ("message", "says", "remedy", "hopeless"),
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
def test_images_that_cannot_be_pulled(message: str, says: str, remedy: str, hopeless: bool) -> None:
    found = status(pod(waiting("ErrImagePull", message)))
    assert (found.state, found.waits_for, found.hopeless) == ("starting", "image", hopeless)
    assert says in found.detail
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
    assert (found.state, found.waits_for, found.hopeless) == ("starting", "start", hopeless)
    assert found.detail == f"{reason}: {message}"


@pytest.mark.parametrize(
    ("message", "says", "remedy"),
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
def test_what_the_scheduler_says(message: str, says: str, remedy: str) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    found = status(pod({"phase": "Pending", "conditions": [condition]}, node=""))
    assert (found.state, found.waits_for, found.hopeless) == ("starting", "node", False)
    assert says in found.detail
    assert remedy in found.detail


def test_whoever_is_evicted_for_its_memory_is_told_to_ask_for_more() -> None:
    detail = status(
        pod({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "})
    ).detail
    assert detail.endswith("; raise demand.base_mem or demand.mem_per_client")


def test_a_limit_is_the_own_container_s() -> None:
    it = pod(ended(137, reason="OOMKilled"), limits={"memory": "64Mi"})
    it["spec"]["containers"].insert(0, {"name": "istio-proxy", "resources": {"limits": {"memory": "1Gi"}}})
    assert "its limit of 64Mi" in status(it).detail


def test_a_container_beside_the_own_one_does_not_count() -> None:
    it = pod({"phase": "Running", "containerStatuses": [
        {"name": "istio-proxy", "state": {"terminated": {"exitCode": 1}}},
        {"name": "group", "state": {"running": {}}},
    ]})  # fmt: skip
    it["spec"]["containers"].insert(0, {"name": "istio-proxy"})
    assert status(it) == PodStatus("running", "n1")


@pytest.mark.parametrize("name", sorted(PODS))
def test_what_the_driver_leaves_out_of_a_pod_is_not_missed(name: str) -> None:
    it = PODS[name]
    it["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    assert status(trimmed(it)) == status(it)
    assert "managedFields" not in trimmed(it)["metadata"]


def test_long_output_keeps_its_end() -> None:
    detail = status(pod(ended(1, message="a" * 5000 + "\nthe end"))).detail
    assert detail.endswith("the end")
    assert len(detail) < 700
