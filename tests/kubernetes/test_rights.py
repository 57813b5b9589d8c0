"""The rights in conf/kubernetes are enough for every command, and none of them is for nothing.

The audit log of the apiserver shows what was asked, and whether it was allowed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hydra.config.file_locations import conf_dir
from tests.integration.command import UNKNOWN, table
from tests.kubernetes.accounts import RBAC, Account
from tests.kubernetes.labs import Lab, published
from tests.kubernetes.pods import namespace
from tests.kubernetes.rig import Rig
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")

MANIFESTS = conf_dir() / "kubernetes"

Right = tuple[str, str]
"""Verb and resource."""

OF_IN_CLUSTER: set[Right] = {("get", "pods"), ("get", "pods/log"), ("get", "pods/exec"), ("create", "pods/exec")}
OF_MISHAPS: set[Right] = {("list", "events")}
"""Asked only where a Pod does not start for a minute."""
COMMON_RIGHTS: set[Right] = {("create", "selfsubjectaccessreviews")}
"""What Kubernetes lets every account do."""
OPTIONAL: Right = ("list", "pods")
"""In all namespaces: what usage.yaml gives. Without it a run gets on with its own."""


class User(Lab):
    """An account with the rights of role.yaml and nodes.yaml, in a namespace of its own."""

    @property
    def where(self) -> list[object]:
        return ["--master", "k8s://hydra", "--namespace", self.space, "--config", self.folder / "hydra.toml"]

    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, one entry for each: a watch has another one when it begins."""
        return [each for each in self.rig.audited(self.account.user) if each["stage"] == "ResponseComplete"]

    def phases(self, part: str) -> list[str]:
        """Its Pods that are such a part of a run."""
        return [pod["status"]["phase"] for pod in self.pods(part)]


@pytest.fixture
def user(rig: Rig, tmp_path: Path) -> Iterator[User]:
    api = rig.api()
    with namespace(api) as space:
        account = Account(rig, space, "hydra")
        for each in (*manifest("role.yaml"), *manifest("nodes.yaml")):
            if each["kind"] == "ServiceAccount":
                continue  # it is there, with a token
            cluster = each["kind"].startswith("Cluster")
            if cluster:
                # Other tests have theirs.
                each["metadata"]["name"] += f"-{space}"
            if "roleRef" in each and cluster:
                each["roleRef"]["name"] += f"-{space}"
                each["subjects"][0]["namespace"] = space
            where = RBAC if cluster else f"{RBAC}/namespaces/{space}"
            api.create(f"{where}/{each['kind'].lower()}s", each)
        (tmp_path / "hydra.toml").write_text(published(rig))
        try:
            yield User(rig, space, account, tmp_path)
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                api.delete(f"{RBAC}/{kind}/hydra-nodes-{space}")


def manifest(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def granted() -> set[Right]:
    rules = [rule for name in ("role.yaml", "nodes.yaml") for each in manifest(name) for rule in each.get("rules", ())]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


def right(call: dict[str, Any]) -> Right:
    about = call["objectRef"]
    sub = about.get("subresource")
    return call["verb"], f"{about['resource']}/{sub}" if sub else about["resource"]


def allowed(call: dict[str, Any]) -> bool:
    return str(call["annotations"]["authorization.k8s.io/decision"]) == "allow"


def test_the_role_is_enough_for_every_command_and_all_of_it_is_used(user: User, tmp_path: Path) -> None:
    user.hydra("check", "zmqrate", "--clients", 2)
    user.hydra("agents", "--for", "zmqrate")
    run = tmp_path / "rates"
    user.hydra(
        *("zmqrate", "--clients", 2, "--implementation", "native", "--published", "--duration", 0.2, "--no-flaky"),
        *("--start-rate", 100_000, "--interval", "--search-steps", 3, "--set", "warmup_s=0", "--out", run),
        expect=UNKNOWN,
    )
    assert [row["clients"] for row in table(run)] == ["2"]

    endless = ("zmqfixed", "--clients", 2, "--implementation", "native", "--rate", 10, "--duration", 600)
    with user.measuring(*endless) as going:
        wait_until(lambda: user.phases("group") == ["Running"] * 2, "its Pods", LONG_S)
        # The keeper comes again. Meanwhile Hydra looks whether its Job, and with it the run, is still there.
        for pod in user.pods("keeper"):
            user.delete_pod(pod["metadata"]["name"])
        wait_until(lambda: ("get", "jobs") in map(right, user.calls()), "a look at the Job")
        (left,) = json.loads(user.hydra("ps", "--json").stdout)
        assert left["run"] == "run"
        user.hydra("kill", "run")
        assert going.wait() > 0
    assert user.phases("group") == []

    requests = user.calls()
    refused = {(right(call), call["objectRef"].get("namespace", "")) for call in requests if not allowed(call)}
    assert refused <= {(OPTIONAL, "")}
    elsewhere = {call["objectRef"]["namespace"] for call in requests if "namespace" in call["objectRef"]}
    assert elsewhere == {user.space}
    used = {right(call) for call in requests if allowed(call)}
    assert used - granted() == COMMON_RIGHTS
    assert granted() - used == OF_IN_CLUSTER | OF_MISHAPS


def test_the_number_of_calls_does_not_depend_on_that_of_clients(user: User, tmp_path: Path) -> None:
    counts = []
    for clients in (10, 100):
        before = len(user.calls())
        run = tmp_path / f"of-{clients}"
        user.hydra(
            *("zmqfixed", "--clients", clients, "--implementation", "native", "--rate", 10, "--duration", 1),
            *("--set", "warmup_s=0", "--out", run),
        )
        assert [row["clients"] for row in table(run)] == [str(clients)]
        counts.append(Counter(right(call) for call in user.calls()[before:]))
    for each in counts:
        # Groups that are killed one after the other take a call each, and none if they have ended before.
        assert 1 <= each.pop(("deletecollection", "pods")) <= 3
    few, many = counts
    assert few == many
    assert few["create", "pods"] == 2
