"""What conf/kubernetes asks a cluster for: it is YAML, and no right in it is one that runs do without."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hydra.cluster.kubernetes import checking, names
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.config.places import conf_dir

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


def objects(path: Path) -> list[dict[str, Any]]:
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
    match node:
        case dict():
            for key, value in node.items():
                if key == "matchLabels":
                    yield value
                else:
                    yield from selectors(value)
        case list():
            for value in node:
                yield from selectors(value)


def test_there_are_the_files_that_the_documentation_names() -> None:
    assert [path.name for path in FILES] == [
        *("namespace.yaml", "network-policy.yaml", "nodes.yaml", "role.yaml", "usage.yaml")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_object_can_be_applied_to_any_namespace(path: Path) -> None:
    for each in objects(path):
        assert {"apiVersion", "kind", "metadata"} <= set(each)
        assert "namespace" not in each["metadata"]


def test_the_role_gives_what_a_run_needs_and_no_more() -> None:
    assert rules(FOLDER / "role.yaml", "Role") == RIGHTS


def test_hydra_check_looks_for_rights_that_the_role_gives() -> None:
    for group, resource, verbs in checking.RIGHTS:
        assert set(verbs) <= RIGHTS[group, resource]


def test_the_documentation_tells_the_same_rights() -> None:
    text = (Path(__file__).parents[3] / "docs" / "kubernetes.md").read_text()
    told = dict(re.findall(r"^\| ([\w/]+) \| ((?:\w+, )*\w+) \|", text.partition("<!-- rights")[2], re.MULTILINE))
    assert {resource: verbs for (_, resource), verbs in RIGHTS.items()} == {
        resource: set(told.get(resource, "").split(", ")) for _, resource in RIGHTS
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
    group = names.labels("r", "group").items()
    assert list(selectors(run))
    assert all(labels.items() <= group for labels in selectors(run))
    (selected,) = selectors(controller)
    assert selected.items() <= names.labels("r", "controller").items()
    assert not selected.items() <= group
