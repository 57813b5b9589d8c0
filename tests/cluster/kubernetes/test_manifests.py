"""The files in conf: conf/kubernetes, what `hydra check` and `hydra ps` show with it, [kubernetes] in hydra.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hydra.config.cluster import load_engine
from hydra.config.file_locations import conf_dir
from hydra.errors import ConfigError
from hydra.kubernetes import object_names, preflight
from hydra.kubernetes.run_removal import rows
from hydra.kubernetes.settings import KubernetesSettings
from tests.cluster.kubernetes.objects import Json

FOLDER = conf_dir() / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))

RIGHTS = {
    # (group of the API, resource): verbs. The test with a real cluster proves that they are enough, and used.
    ("", "pods"): {"create", "get", "list", "watch", "deletecollection"},
    ("", "secrets"): {"create", "deletecollection"},
    ("batch", "jobs"): {"create", "get", "list", "deletecollection"},
    ("", "events"): {"list"},
    ("networking.k8s.io", "networkpolicies"): {"list"},
    ("", "resourcequotas"): {"list"},
    ("", "pods/log"): {"get"},
    ("", "pods/exec"): {"get", "create"},
}
IN_ALL_NAMESPACES = {"nodes.yaml": {("", "nodes"): {"list"}}, "usage.yaml": {("", "pods"): {"list"}}}


def objects(path: Path) -> list[Json]:
    return list(yaml.safe_load_all(path.read_text()))


def rules(path: Path, kind: str) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for rule in (rule for each in objects(path) if each["kind"] == kind for rule in each["rules"]):
        assert set(rule) == {"apiGroups", "resources", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


def selectors(node: object) -> Iterator[Mapping[str, str]]:
    """The labels of every selector below a node."""
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inside:
        yield from [value] if key == "matchLabels" else selectors(value)


def test_there_are_the_files_that_the_documentation_names() -> None:
    assert [path.stem for path in FILES] == ["namespace", "network-policy", "nodes", "role", "usage"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_object_can_be_applied_to_any_namespace(path: Path) -> None:
    for each in objects(path):
        assert {"apiVersion", "kind", "metadata"} <= set(each)
        assert "namespace" not in each["metadata"]


def test_the_role_gives_what_a_run_needs_and_no_more() -> None:
    assert rules(FOLDER / "role.yaml", "Role") == RIGHTS


def test_hydra_check_looks_for_rights_that_the_role_gives() -> None:
    for group, resource, verbs in preflight.RIGHTS:
        assert set(verbs) <= RIGHTS[group, resource]


def test_the_documentation_tells_the_same_rights() -> None:
    text = (Path(__file__).parents[3] / "docs" / "kubernetes.md").read_text()
    reported = dict(re.findall(r"^\| ([\w/]+) \| ((?:\w+, )*\w+) \|", text.partition("<!-- rights")[2], re.MULTILINE))
    assert {resource: verbs for (_, resource), verbs in RIGHTS.items()} == {
        resource: set(reported.get(resource, "").split(", ")) for _, resource in RIGHTS
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_holds_in_all_namespaces_only_reads(path: Path) -> None:
    assert rules(path, "ClusterRole") == IN_ALL_NAMESPACES.get(path.name, {})


def test_every_binding_names_a_role_of_its_file_and_the_account_of_the_settings() -> None:
    account = KubernetesSettings().service_account
    bindings = 0
    for path in FILES:
        kinds = {(each["kind"], each["metadata"]["name"]) for each in objects(path)}
        for each in objects(path):
            if each["kind"].endswith("Binding"):
                bindings += 1
                assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in kinds
                assert [(s["kind"], s["name"]) for s in each["subjects"]] == [("ServiceAccount", account)]
    assert bindings == 3
    assert account in {each["metadata"]["name"] for each in objects(FOLDER / "role.yaml")}


def test_the_namespace_refuses_pods_that_are_not_restricted() -> None:
    (namespace,) = objects(FOLDER / "namespace.yaml")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_policies_select_the_pods_of_runs() -> None:
    run, controller = objects(FOLDER / "network-policy.yaml")
    group = object_names.labels("r", "group").items()
    assert list(selectors(run))
    assert all(labels.items() <= group for labels in selectors(run))
    (selected,) = selectors(controller)
    assert selected.items() <= object_names.labels("r", "controller").items()
    assert not selected.items() <= group


# --- the output of `hydra check` -------------------------------------------------------------------------------------


OWN_LABELS = {object_names.MANAGED_BY: object_names.MANAGER}


def policy(**spec: Any) -> Json:
    return {"metadata": {"name": "strict"}, "spec": spec}


@pytest.mark.parametrize(
    ("found", "restricts"),
    [
        (policy(podSelector={}), "ingress"),
        (policy(podSelector={}, policyTypes=["Ingress", "Egress"]), "ingress and egress"),
        (policy(podSelector={"matchLabels": OWN_LABELS}, policyTypes=["Egress"]), "egress"),
        (policy(podSelector={"matchLabels": {**OWN_LABELS, "team": "lab"}}), "ingress"),
        (policy(podSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), "ingress"),
        (policy(podSelector={"matchLabels": {"app": "database"}}), ""),
        (policy(podSelector={"matchLabels": {object_names.MANAGED_BY: "helm"}}), ""),
        (policy(podSelector={"matchLabels": {object_names.MANAGED_BY: "helm", "app": "x"}}), ""),
    ],
)
def test_policies_that_may_choose_our_pods_are_told(found: Json, restricts: str) -> None:
    lines = list(preflight.policies([found]))
    assert [line.split(":")[0] for line in lines] == (
        [f"network policy strict restricts the {restricts} of Pods here"] if restricts else []
    )


def test_quotas_are_told_with_what_is_used() -> None:
    quota = {"metadata": {"name": "few"}, "status": {"hard": {"pods": "10", "cpu": "4"}, "used": {"pods": "3"}}}
    fresh = {"metadata": {"name": "fresh"}, "spec": {"hard": {"pods": "1"}}}
    assert list(preflight.quotas([quota, fresh])) == ["quota few: cpu 0 of 4, pods 3 of 10"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("max", "the Pod's container has no limit of processes"),
        ("1024", "the Pod's container may have 1024 processes"),
        ("", ""),
    ],
)
def test_the_first_pod_tells_how_many_processes_there_may_be(limit: str, expected: str) -> None:
    first, *rest = preflight.first_pod_lines({"node": "n1", "address": "10.0.0.1", "pids_max": limit})
    assert first == "a Pod on n1 reached this machine at 10.0.0.1"
    assert [re.split(r"[;:]", line)[0] for line in rest] == ([expected] if expected else [])


# --- what `hydra ps` lists --------------------------------------------------------------------------------------------


def thing(run: str, node: str = "", *, named: bool = True) -> Json:
    annotations = {"annotations": {object_names.RUN_NAME: run}} if named else {}
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"labels": object_names.labels(run, "group"), **annotations}, "spec": spec}


def test_runs_are_told_by_their_whole_names_in_order() -> None:
    # The Pods that a Job makes carry the label only.
    jobs = [thing("zmq rate 2"), thing("kafka")]
    pods = [thing("zmq rate 2", "n1", named=False), thing("zmq rate 2", "n2"), thing("zmq rate 2", "n2")]
    assert rows(jobs, pods) == [
        {"run": "kafka", "jobs": 1, "pods": 0, "nodes": 0},
        {"run": "zmq rate 2", "jobs": 1, "pods": 3, "nodes": 2},
    ]


def test_pods_without_a_job_and_without_a_name_are_listed_too() -> None:
    lost = {"run": object_names.slug("Lost One"), "jobs": 0, "pods": 1, "nodes": 0}
    assert rows([], [thing("Lost One", named=False)]) == [lost]


def test_nothing_there_is_nothing_listed() -> None:
    assert rows([], []) == []


# --- [kubernetes] in hydra.toml ---------------------------------------------------------------------------------------


TABLES = """
[kubernetes]
node_lost_s = 5
[kubernetes.labels]
team = "messaging"
[kubernetes.annotations]
"example.com/cost-centre" = "42, and more"
[[kubernetes.tolerations]]
key = "dedicated"
operator = "Exists"
[[kubernetes.tolerations]]
key = "slow"
effect = "NoExecute"
tolerationSeconds = 3
[kubernetes.pod]
runtimeClassName = "gvisor"
dnsConfig = { options = [{ name = "ndots", value = "1" }] }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "hydra.toml"
    path.write_text(f"[[agents]]\nid = 'a'\n{text}")
    return path


def test_what_comes_with_hydra_is_the_default() -> None:
    assert load_engine("kubernetes") == KubernetesSettings()


def test_what_comes_with_hydra_in_comments_can_be_used(tmp_path: Path) -> None:
    table = "[kubernetes]\n" + (conf_dir() / "hydra.toml").read_text().partition("\n[kubernetes]\n")[2]
    bare = re.sub(r"^# ([a-zA-Z_]+ = |\[|\")", r"\1", table, flags=re.MULTILINE)
    settings = load_engine("kubernetes", written(tmp_path, bare))
    (toleration,) = settings.tolerations
    assert toleration == {"key": "dedicated", "operator": "Equal", "value": "benchmarks", "effect": "NoSchedule"}
    assert (settings.labels, settings.pod) == ({"team": "messaging"}, {"runtimeClassName": "gvisor"})


def test_tables_and_lists_are_as_in_a_pods_yaml(tmp_path: Path) -> None:
    settings = load_engine("kubernetes", written(tmp_path, TABLES))
    wanted = tomllib.loads(TABLES)["kubernetes"]
    assert settings == KubernetesSettings(**{**wanted, "tolerations": tuple(wanted["tolerations"])})


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("namespce = 'x'", "namespce: unknown key; did you mean namespace?"),
        ("namespace = 'My_own'", "namespace: must be lower-case letters, digits and -, not 'My_own'"),
        ("pull_policy = 'Sometimes'", "pull_policy: must be one of Always, IfNotPresent, Never, not 'Sometimes'"),
        ("labels = 'team'", 'labels: must be a table; write { name = "value" }'),
        ("labels = { team = 3 }", "labels.team: must be a valid string; write the value in quotes"),
        ("labels = { team = { name = 'x' } }", "labels.team: must be a valid string"),
        ("labels = { team = 'my team' }", "labels.team: must be at most 63 letters, digits, -, _ and ., of which the "),
        ("annotations = { a = true }", "annotations.a: must be a valid string; write the value in quotes"),
        ("tolerations = { key = 'x' }", "tolerations: must be a list, not a table; write [ ] around the value"),
        ("tolerations = ['x']", "tolerations.0: must be a table, not 'x'; write { name = \"value\" }"),
        ("tolerations = [{}, { efect = '' }]", "tolerations.1.efect: is no key of a toleration: key, operator, value"),
        ("tolerations = [{ tolerationSeconds = '3' }]", "tolerations.0.tolerationSeconds: must be a whole number, not"),
        ("pod = { containers = [] }", "pod.containers: would replace what Hydra writes there"),
        ("tolerations = [{ key = true }]", "tolerations.0.key: must be a text in quotes, not True"),
        ("pod = ['x']", 'pod: must be a table, not a list; write { name = "value" }'),
        ("ports = 'many'", "ports: must be a range within 1-65535, as in '31000-32000', not 'many'"),
        ("ports = '2-1'", "ports: must be a range within 1-65535, as in '31000-32000', not '2-1'"),
        ("ports = 31000", "ports: must be a valid string, not 31000; write the value in quotes"),
        ("cpu_limit_ratio = 0.5", "cpu_limit_ratio: must be 0 for no limit, or 1 or more, not 0.5"),
        ("memory_limit_ratio = 0.99", "memory_limit_ratio: must be 0 for no limit, or 1 or more, not 0.99"),
        ("memory_limit_ratio = 1e3", "memory_limit_ratio: must be 0 to 100, not 1000"),
        ("node_lost_s = 0", "node_lost_s: must be 1 to 3600 s, not 0 s"),
        ("in_cluster = 'yes'", "in_cluster: must be a valid boolean, not 'yes'"),
    ],
)
def test_a_refusal_is_one_line_with_the_key_and_what_would_be_right(tmp_path: Path, text: str, refusal: str) -> None:
    path = written(tmp_path, f"[kubernetes]\n{text}\n")
    with pytest.raises(ConfigError) as error:
        load_engine("kubernetes", path)
    assert str(error.value).startswith(f"{path}: kubernetes.{refusal}")
    assert "\n" not in str(error.value)


def test_a_flag_is_blamed_for_itself_and_not_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[kubernetes]\nnamespace = 'good'\n")
    with pytest.raises(ConfigError) as error:
        load_engine("kubernetes", path, {"namespace": "B A D", "python_image": "python:3.12"})
    assert str(error.value) == "--namespace: must be lower-case letters, digits and -, not 'B A D'"
