"""The Pod of a group, and the Secret of its environment."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from hydra.cluster.artifacts import script
from hydra.cluster.kubernetes import pods
from hydra.cluster.kubernetes.scripts import source
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.cluster.resources import Need, need_of
from hydra.model import Agent, Constraint, Demand, Group, Launch, Resources

Json = dict[str, Any]

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "hydra-r-keeper", "uid": "u"}
GROUP = Group(
    id="publisher-3",
    role="publisher",
    first_client=1,
    count=10,
    command=("python", "-m", "hydra.client"),
    environment={"HYDRA_CONTROL_CLIENT_SECRET": "s3cret"},
    demand=Demand(base_cpus=0.1, cpus_per_client=0.05, base_mem=30, mem_per_client=7, ports=2),
    constraints=(Constraint("hostname", "UNIQUE"),),
)
LAUNCH = Launch(GROUP, Agent("n1", "n1", {}, Resources()), (31000, 31001))


def family(**settings: Any) -> pods.Family:
    return pods.Family("r", "lab", OWNER, KubernetesSettings(**settings), "hydra:1", archive=False)


def group_pod(*, archive: bool = False, **settings: Any) -> Json:
    return pods.group_pod(
        family(**settings), LAUNCH, ["python", "-c", "print('$(HOME) $x')"], "the-secret",
        archive=archive, grace_s=7,
    )  # fmt: skip


def test_a_group_becomes_a_pod() -> None:
    pod = group_pod()
    assert pod["metadata"] == {
        "name": "hydra-r-publisher-3",
        "namespace": "lab",
        "labels": {
            "app.kubernetes.io/managed-by": "hydra",
            "hydra/run": "r",
            "hydra/part": "group",
            "hydra/group": "publisher-3",
            "hydra/role": "publisher",
            "sidecar.istio.io/inject": "false",
        },
        "annotations": {
            "hydra/run-name": "r",
            "kubectl.kubernetes.io/default-container": "group",
            "sidecar.istio.io/inject": "false",
            "linkerd.io/inject": "disabled",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        },
        "ownerReferences": [OWNER],
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
    assert fetch["command"][2].replace("$$", "$") == source("fetch")
    assert fetch["envFrom"] == container["envFrom"]
    assert fetch["resources"] == container["resources"]
    assert container["command"][:3] == ["sh", "/hydra/hydra-run", "python"]
    for each in (fetch, container):
        assert {"name": "hydra", "mountPath": "/hydra"} in each["volumeMounts"]
    assert {"name": "hydra", "emptyDir": {}} in spec["volumes"]


def test_the_archive_s_script_is_called_as_the_archive_calls_it() -> None:
    assert pods.RUNNER == script.RUNNER


def test_the_scripts_for_pods_are_python_of_old() -> None:
    ast.parse(source("fetch"), feature_version=(3, 8))


def test_every_opening_of_a_run_has_names_and_labels_of_its_own() -> None:
    kin = replace(family(), opening="0a1b2c3d")
    pod = pods.group_pod(kin, LAUNCH, ["true"], "the-secret", archive=False, grace_s=7)
    assert pod["metadata"]["name"] == "hydra-r-publisher-3-0a1b2"
    assert pod["metadata"]["labels"]["hydra/opening"] == "0a1b2c3d"
    names = {pods.environment(each, {"A": "b"})["metadata"]["name"] for each in (kin, family())}
    assert len(names) == 2


def test_the_constraints_count_the_pods_of_the_same_role_and_run() -> None:
    spec = group_pod()["spec"]
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == {
        "hydra/run": "r", "hydra/part": "group", "hydra/role": "publisher",
    }  # fmt: skip


@pytest.mark.parametrize("archive", [False, True])
def test_a_pod_keeps_to_the_standard_restricted(archive: bool) -> None:
    """As https://kubernetes.io/docs/concepts/security/pod-security-standards/ lists it."""
    spec = group_pod(archive=archive)["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
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
    assert spec["tolerations"] == [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12}
        for key in ("not-ready", "unreachable")
    ] + [{"key": "dedicated", "operator": "Exists"}]
    assert (spec["priorityClassName"], spec["imagePullSecrets"]) == ("low", [{"name": "reg"}])
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsNonRoot"]) == (5, True)


def test_a_job_s_template_is_dressed_like_a_pod() -> None:
    template = {"metadata": {"labels": {"hydra/run": "r"}}, "spec": {"containers": []}}
    dressed = pods.dressed(family(priority_class="low"), template)
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
    assert pods.merged(document, patch) == result


@pytest.mark.parametrize(
    ("ratios", "need", "expected"),
    [
        ((0, 0), Need(1.5, 100), {"requests": {"cpu": "1500m", "memory": "100Mi"}}),
        ((1.5, 2), Need(0.001, 0.1), {"requests": {"cpu": "1m", "memory": "1Mi"},
                                      "limits": {"cpu": "2m", "memory": "256Mi"}}),
        ((2, 2), Need(0, 0), {"requests": {"cpu": "0m", "memory": "0Mi"}}),
    ],
)  # fmt: skip
def test_limits_follow_the_ratios(ratios: tuple[float, float], need: Need, expected: Json) -> None:
    settings = KubernetesSettings(cpu_limit_ratio=ratios[0], memory_limit_ratio=ratios[1])
    assert pods.resources(settings, need) == expected


def test_a_whole_demand_is_what_the_pod_requests() -> None:
    demand = pods.whole(Demand(base_cpus=0.0114, base_mem=10.2, mem_per_client=0.3, ports=3), 10)
    assert demand == Demand(base_cpus=0.012, base_mem=14, ports=3)
    assert pods.whole(Demand(base_cpus=0.1, cpus_per_client=0.014), 1).base_cpus == 0.114
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
    orphan = pods.Family("r", "lab", {}, KubernetesSettings(), "hydra:1", archive=False)
    assert "ownerReferences" not in pods.metadata(orphan, "n", "keeper")


@pytest.mark.parametrize(
    ("image", "version", "expected"),
    [("", "2.0.1", "hydra:2.0.1"), ("", "2.0.1+dirty", "hydra:2.0.1-dirty"), ("reg/h:1", "2.0.1", "reg/h:1")],
)
def test_own_image(image: str, version: str, expected: str) -> None:
    assert pods.own_image(KubernetesSettings(image=image), version) == expected
