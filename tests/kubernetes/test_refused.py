"""What a cluster refuses, or ends by its rules: one line states this and what to try, and the next row may succeed."""

from __future__ import annotations

import os

import pytest

from hydra.events.group_events import GroupExit, Launched
from tests.integration.command import events, table
from tests.kubernetes import images
from tests.kubernetes.api import ApiError
from tests.kubernetes.labs import Lab, printed_line
from tests.kubernetes.pods import pod
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")

FIXED = ("zmqfixed", "--rate", 100, "--client", "native")
ONE = (*FIXED, "--clients", 2, "--duration", 1)
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def line_of(lab: Lab, *words: object, expect: int = 1) -> str:
    """The one line with which a command refuses."""
    return printed_line(lab.measure(*words, expect=expect).stderr, "hydra")


soak = pytest.mark.skipif("HYDRA_SOAK_SEEDS" not in os.environ, reason="takes half a minute: make soak")


@pytest.mark.parametrize(
    ("settings", "image", "pull", "expected"),
    [
        pytest.param("", "rig.local/nothing:1", "Never", "is not on the node, and pull_policy", id="not there"),
        pytest.param("", "rig.local/nothing:1", "Always", "nothing:1 cannot be pulled: ", id="pull", marks=soak),
        pytest.param("", "UPPER/case", "Always", "repository name must be lowercase; correct image", id="name"),
        pytest.param("pod.nodeSelector.disk = 'fast'", "", "Never", "affinity/selector", id="nowhere", marks=soak),
        pytest.param("pod.hostNetwork = true", "", "Never", "violates PodSecurity", id="security"),
        pytest.param("priority_class = 'highest'", "", "Never", "PriorityClass", id="priority"),
    ],
)
def test_what_cannot_start_is_refused_before_anything_is_measured(
    lab: Lab, settings: str, image: str, pull: str, expected: str
) -> None:
    lab.settings(settings, image=image, pull=pull)
    assert expected in line_of(lab, *ONE)


def test_an_image_without_hydra_is_what_its_user_gave(lab: Lab) -> None:
    lab.settings(image=images.PYTHON)
    assert "holds no Hydra" in line_of(lab, *ONE, expect=2)


def test_an_address_that_pods_do_not_reach_is_refused_before_a_group_is_launched(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As --advertise it is refused before a Pod is made; of a controller's own Pod it is believed.
    monkeypatch.setenv("HYDRA_POD_IP", "127.0.0.1")
    line = line_of(lab, *ONE)
    assert events(lab.run, Launched) == []
    assert "Pods do not reach this machine at 127.0.0.1: " in line
    assert "--advertise" in line


def test_a_quota_refuses_a_row_and_the_next_one_heals_when_it_is_lifted(lab: Lab) -> None:
    quotas = f"/api/v1/namespaces/{lab.space}/resourcequotas"
    # The keeper, a publisher and a group of two subscribers.
    lab.rig.api().create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}})
    with lab.measuring(*FIXED, "--clients", "2,4,5", "--duration", 2) as command:
        wait_until(lambda: "exceeded quota" in command.output(), "the refusal", LONG_S)
        lab.rig.api().delete(f"{quotas}/few")
        # A failed row is tried once more; by then the quota may be removed, or not yet.
        assert command.wait() in (0, 3), command.output()
    rows = table(lab.run)
    assert [row["clients"] for row in rows] == ["2", "4", "5"]
    assert rows[0]["failed_clients"] == rows[2]["failed_clients"] == "0"
    assert "max_group" in command.output()


def test_an_eviction_is_told_and_the_next_row_has_all(lab: Lab) -> None:
    with lab.measuring(*FIXED, "--clients", "2,3", "--duration", 3) as command:
        lab.await_clients()
        name = lab.a_subscriber()
        lab.await_window()
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": lab.space}}
        lab.rig.api().create(f"/api/v1/namespaces/{lab.space}/pods/{name}/eviction", body)
        command.wait()
    two, three = table(lab.run)
    assert (two["failed_clients"], three["failed_clients"]) == ("2", "0"), command.output()
    (reported,) = events(lab.run, GroupExit)
    assert "evicted from node node2, for example because the node was drained" in reported


def test_a_group_without_memory_is_told_so(lab: Lab) -> None:
    lab.settings("memory_limit_ratio = 1")
    demand = ("--set", "subscriber.demand.base_mem=8", "--set", "subscriber.demand.mem_per_client=1")
    lab.measure("zmqfixed", "--client", "pyzmq", "--clients", 2, "--duration", 1, *demand, expect=1)
    # Now and then the container runtime misses that it was the kernel.
    messages = [e for e in events(lab.run, GroupExit) if "needs more memory than its limit of" in e]
    assert messages
    assert "memory_limit_ratio" in messages[0]


def test_a_rule_of_admission_is_named(lab: Lab) -> None:
    api = lab.rig.api()
    named = {"metadata": {"name": f"no-groups-{lab.space}"}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    wanted = "has(object.metadata.labels) && 'team' in object.metadata.labels"
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": wanted, "message": "Pods need a label team"}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": lab.space}}}
    binding = {"policyName": f"no-groups-{lab.space}", "validationActions": ["Deny"], "matchResources": here}
    api.create(f"{ADMISSION}/validatingadmissionpolicies", {**named, "spec": policy})
    api.create(f"{ADMISSION}/validatingadmissionpolicybindings", {**named, "spec": binding})
    try:
        wait_until(lambda: "Pods need a label team" in _tried(lab), "the rule", LONG_S)
        assert "Pods need a label team" in line_of(lab, *ONE)
        lab.settings('labels.team = "lab"')
        lab.measure(*ONE)
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            api.delete(f"{ADMISSION}/{kind}/no-groups-{lab.space}")


def _tried(lab: Lab) -> str:
    """The API's answer to a Pod that is not made for good."""
    try:
        lab.rig.api().create(f"/api/v1/namespaces/{lab.space}/pods?dryRun=All", pod("p", "i", ["true"]))
    except ApiError as e:
        return e.text
    return ""
