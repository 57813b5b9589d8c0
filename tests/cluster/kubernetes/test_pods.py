"""The Pod of a group, the Secret of its environment, and their names: what Kubernetes admits, and distinct names."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.engine.artifacts import start_script
from hydra.engine.resources import ResourceNeed, need_of
from hydra.kubernetes import object_names, pods
from hydra.kubernetes.pods import source
from hydra.kubernetes.settings import KubernetesSettings
from hydra.model import Agent, Constraint, Demand, Group, Launch, Resources

Json = dict[str, Any]

POD = "hydra-r-publisher-3"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "hydra-r-keeper", "uid": "u"}
DEMAND = Demand(base_cpus=0.1, cpus_per_client=0.05, base_mem=30, mem_per_client=7, ports=2)
SECRET = {"HYDRA_CONTROL_CLIENT_SECRET": "s3cret"}
UNIQUE = (Constraint("hostname", "UNIQUE"),)
GROUP = Group("publisher-3", "publisher", 1, 10, ("python", "-m", "hydra.client"), SECRET, DEMAND, UNIQUE)
LAUNCH = Launch(GROUP, Agent("n1", "n1", {}, Resources()), (31000, 31001))


def family(**settings: Any) -> pods.RunObjects:
    return pods.RunObjects("r", "lab", OWNER, KubernetesSettings(**settings), "hydra:1", archive=False)


def group_pod(*, archive: bool = False, **settings: Any) -> Json:
    command = ["python", "-c", "print('$(HOME) $x')"]
    return pods.group_pod(family(**settings), LAUNCH, command, "the-secret", archive=archive, grace_s=7)


def test_a_group_becomes_a_pod() -> None:
    pod = group_pod()
    metadata = pod["metadata"]
    assert (metadata["name"], metadata["namespace"], metadata["ownerReferences"]) == (POD, "lab", [OWNER])
    its = {"run": "r", "part": "group", "group": "publisher-3", "role": "publisher"}
    labels = {f"hydra/{name}": value for name, value in its.items()}
    not_istio = {"sidecar.istio.io/inject": "false"}
    assert metadata["labels"] == {"app.kubernetes.io/managed-by": "hydra", **labels, **not_istio}
    assert metadata["annotations"] == {
        "hydra/run-name": "r",
        "kubectl.kubernetes.io/default-container": "group",
        "linkerd.io/inject": "disabled",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        **not_istio,
    }
    spec = pod["spec"]
    (container,) = spec["containers"]
    assert spec["terminationGracePeriodSeconds"] == 7
    assert "initContainers" not in spec
    assert container["resources"] == {"requests": {"cpu": "600m", "memory": "100Mi"}, "limits": {"memory": "256Mi"}}
    assert [port["containerPort"] for port in container["ports"]] == [31000, 31001]
    assert {"name": "HYDRA_PORTS", "value": "31000,31001"} in container["env"]
    assert container["envFrom"] == [{"secretRef": {"name": "the-secret"}}]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}


def test_the_kubelet_replaces_nothing_in_a_command() -> None:
    assert group_pod()["spec"]["containers"][0]["command"][-1] == "print('$$(HOME) $$x')"


def test_nothing_of_the_environment_stands_in_the_pod() -> None:
    assert "s3cret" not in str(group_pod(archive=True))


def test_an_archive_is_fetched_and_starts_the_command() -> None:
    spec = group_pod(archive=True)["spec"]
    (fetch,), (container,) = spec["initContainers"], spec["containers"]
    assert fetch["command"][:2] == ["python3", "-c"]
    assert fetch["command"][2].replace("$$", "$") == source("fetch_archive")
    assert fetch["envFrom"] == container["envFrom"]
    assert fetch["resources"] == container["resources"]
    assert container["command"][:3] == ["sh", "/hydra/hydra-run", "python"]
    for each in (fetch, container):
        assert {"name": "hydra", "mountPath": "/hydra"} in each["volumeMounts"]
    assert {"name": "hydra", "emptyDir": {}} in spec["volumes"]


def test_the_archive_s_script_is_called_as_the_archive_calls_it() -> None:
    assert pods.RUNNER == start_script.RUNNER


def test_the_scripts_for_pods_are_python_of_old() -> None:
    ast.parse(source("fetch_archive"), feature_version=(3, 8))


def test_every_opening_of_a_run_has_names_and_labels_of_its_own() -> None:
    kin = replace(family(), opening="0a1b2c3d")
    pod = pods.group_pod(kin, LAUNCH, ["true"], "the-secret", archive=False, grace_s=7)
    assert pod["metadata"]["name"] == f"{POD}-0a1b2"
    assert pod["metadata"]["labels"]["hydra/opening"] == "0a1b2c3d"
    secrets = {pods.environment(each, {"A": "b"})["metadata"]["name"] for each in (kin, family())}
    assert len(secrets) == 2


def test_the_constraints_count_the_pods_of_the_same_role_and_run() -> None:
    spec = group_pod()["spec"]
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    own = {"hydra/run": "r", "hydra/part": "group", "hydra/role": "publisher"}
    assert term["labelSelector"]["matchLabels"] == own


@pytest.mark.parametrize("archive", [False, True])
def test_a_pod_keeps_to_the_standard_restricted(archive: bool) -> None:
    """As https://kubernetes.io/docs/concepts/security/pod-security-standards/ lists it."""
    spec = group_pod(archive=archive)["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        assert container["securityContext"].items() >= own.items()
        assert not any("hostPort" in port for port in container.get("ports", ()))
    assert all(volume.keys() == {"name", "emptyDir"} for volume in spec["volumes"])


# --- what the user wants of all Pods ---------------------------------------------------------------------------------


def test_the_user_s_fields_are_merged_into_every_pod() -> None:
    pod = group_pod(
        labels={"team": "a", "hydra/run": "mine", "sidecar.istio.io/inject": "true"},
        annotations={"note": "b"},
        tolerations=({"key": "dedicated", "operator": "Exists"},),
        priority_class="low",
        node_lost_s=12,
        pod={"imagePullSecrets": [{"name": "reg"}], "securityContext": {"runAsUser": 5}, "dnsPolicy": "Default"},
    )
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    assert (labels["team"], labels["hydra/run"], labels["sidecar.istio.io/inject"]) == ("a", "r", "true")
    assert pod["metadata"]["annotations"]["note"] == "b"
    its = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12}
    lost = [{"key": f"node.kubernetes.io/{key}", **its} for key in ("not-ready", "unreachable")]
    assert spec["tolerations"] == [*lost, {"key": "dedicated", "operator": "Exists"}]
    assert (spec["priorityClassName"], spec["imagePullSecrets"]) == ("low", [{"name": "reg"}])
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsNonRoot"]) == (5, True)


def test_a_job_s_template_is_dressed_like_a_pod() -> None:
    template = {"metadata": {"labels": {"hydra/run": "r"}}, "spec": {"containers": []}}
    dressed = pods.with_user_settings(family(priority_class="low"), template)
    assert dressed["spec"]["priorityClassName"] == "low"
    assert template == {"metadata": {"labels": {"hydra/run": "r"}}, "spec": {"containers": []}}


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        # From the appendix of RFC 7386.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches(document: Any, patch: Any, result: Any) -> None:
    assert pods.merge_patch(document, patch) == result


@pytest.mark.parametrize(
    ("ratios", "need", "expected"),
    [
        ((0, 0), ResourceNeed(1.5, 100), [("1500m", "100Mi")]),
        ((1.5, 2), ResourceNeed(0.001, 0.1), [("1m", "1Mi"), ("2m", "256Mi")]),
        ((2, 2), ResourceNeed(0, 0), [("0m", "0Mi")]),
    ],
)
def test_limits_follow_the_ratios(
    ratios: tuple[float, float], need: ResourceNeed, expected: list[tuple[str, str]]
) -> None:
    found = pods.resources(KubernetesSettings(cpu_limit_ratio=ratios[0], memory_limit_ratio=ratios[1]), need)
    assert [*found] == ["requests", "limits"][: len(expected)]
    assert [(each["cpu"], each["memory"]) for each in found.values()] == expected


def test_a_whole_demand_is_what_the_pod_requests() -> None:
    demand = pods.requested_resources(Demand(base_cpus=0.0114, base_mem=10.2, mem_per_client=0.3, ports=3), 10)
    assert demand == Demand(base_cpus=0.012, base_mem=14, ports=3)
    assert pods.requested_resources(Demand(), 1000) == Demand(), "nothing is no more than nothing"
    assert pods.requested_resources(Demand(base_cpus=0.1, cpus_per_client=0.014), 1).base_cpus == 0.114
    assert pods.resources(KubernetesSettings(), need_of(demand, 99))["requests"] == {"cpu": "12m", "memory": "14Mi"}


# --- the others ------------------------------------------------------------------------------------------------------


def test_equal_environments_are_one_secret() -> None:
    one, same = (pods.environment(family(), values) for values in ({"A": "1", "B": "2"}, {"B": "2", "A": "1"}))
    other = pods.environment(family(), {"A": "1", "B": "3"})
    assert one == same
    assert one["metadata"]["name"] != other["metadata"]["name"]
    assert one["metadata"]["name"].startswith("hydra-r-env-")
    assert one["stringData"] == {"A": "1", "B": "2"}
    assert one["metadata"]["ownerReferences"] == [OWNER]


def test_before_there_is_an_owner_no_reference_stands_there() -> None:
    orphan = pods.RunObjects("r", "lab", {}, KubernetesSettings(), "hydra:1", archive=False)
    assert "ownerReferences" not in pods.metadata(orphan, "n", "keeper")


@pytest.mark.parametrize(
    ("image", "version", "expected"),
    [("", "2.0.1", "hydra:2.0.1"), ("", "2.0.1+dirty", "hydra:2.0.1-dirty"), ("reg/h:1", "2.0.1", "reg/h:1")],
)
def test_own_image(image: str, version: str, expected: str) -> None:
    assert pods.own_image(KubernetesSettings(image=image), version) == expected


# --- names and labels ------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
TEXTS = st.text("azAZ09-_./ \0\n\u0308äß漢🐍", min_size=1, max_size=80)


@given(TEXTS, TEXTS)
@settings(max_examples=20)
def test_any_run_and_part_make_a_name_that_kubernetes_admits(run: str, what: str) -> None:
    name = object_names.object_name(run, what)
    assert _NAME.fullmatch(name)
    assert len(name) <= 63
    for value in object_names.labels(run, "group", group=what).values():
        assert _NAME.fullmatch(value)
        assert len(value) <= 63


@given(TEXTS, TEXTS)
@settings(max_examples=20)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (object_names.slug(one) == object_names.slug(other)) == (one == other)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ",hydra/run"),
        ({"run": "r1"}, ",hydra/run=r1"),
        ({"run": "r1", "parts": ("keeper", "group")}, ",hydra/run=r1,hydra/part in (group,keeper)"),
        ({"run": "r1", "opening": "0a1b2"}, ",hydra/run=r1,hydra/opening=0a1b2"),
    ],
)
def test_selectors(arguments: dict[str, object], expected: str) -> None:
    assert object_names.selector(**arguments) == f"app.kubernetes.io/managed-by=hydra{expected}"  # type: ignore[arg-type]


def test_groups_are_named_in_a_further_term() -> None:
    assert object_names.among(["s2", "S2"]) == f"hydra/group in (s2,{object_names.slug('S2')})"
