"""What `hydra check` says of network policies, quotas and the first Pod."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hydra.cluster.kubernetes import checking, names

Json = dict[str, Any]
OURS = {names.MANAGED_BY: names.MANAGER}


def policy(**spec: Any) -> Json:
    return {"metadata": {"name": "strict"}, "spec": spec}


@pytest.mark.parametrize(
    ("found", "restricts"),
    [
        (policy(podSelector={}), "ingress"),
        (policy(podSelector={}, policyTypes=["Ingress", "Egress"]), "ingress and egress"),
        (policy(podSelector={"matchLabels": OURS}, policyTypes=["Egress"]), "egress"),
        (policy(podSelector={"matchLabels": {**OURS, "team": "lab"}}), "ingress"),
        (policy(podSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), "ingress"),
        (policy(podSelector={"matchLabels": {"app": "database"}}), ""),
        (policy(podSelector={"matchLabels": {names.MANAGED_BY: "helm"}}), ""),
        (policy(podSelector={"matchLabels": {names.MANAGED_BY: "helm", "app": "x"}}), ""),
    ],
)
def test_policies_that_may_choose_our_pods_are_told(found: Json, restricts: str) -> None:
    lines = list(checking.policies([found]))
    assert [line.split(":")[0] for line in lines] == (
        [f"network policy strict restricts the {restricts} of Pods here"] if restricts else []
    )


def test_quotas_are_told_with_what_is_used() -> None:
    quota = {
        "metadata": {"name": "few"},
        "status": {"hard": {"pods": "10", "cpu": "4"}, "used": {"pods": "3"}},
    }
    fresh = {"metadata": {"name": "fresh"}, "spec": {"hard": {"pods": "1"}}}
    assert list(checking.quotas([quota, fresh])) == ["quota few: cpu 0 of 4, pods 3 of 10"]


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("max", ["its container has no limit of processes"]),
        ("1024", ["its container may have 1024 processes"]),
        ("", []),
    ],
)
def test_the_first_pod_tells_how_many_processes_there_may_be(limit: str, says: list[str]) -> None:
    first, *rest = checking.told({"node": "n1", "address": "10.0.0.1", "pids_max": limit})
    assert first == "a Pod on n1 reached this machine at 10.0.0.1"
    assert [re.split(r"[;:]", line)[0] for line in rest] == says
