"""The Pods that hydra.kubernetes.pods makes, in a cluster: admitted, placed, started from an archive."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from hydra.engine.artifacts.archive import Artifact
from hydra.engine.artifacts.archive_server import ArtifactServer
from hydra.engine.placement import parse_constraint
from hydra.kubernetes import nodes, pod_status, pods
from hydra.kubernetes.settings import KubernetesSettings
from hydra.kubernetes.state import KubernetesState
from hydra.model import Agent, Demand, Group, Launch, Resources
from tests.kubernetes import images
from tests.kubernetes.pods import namespace, pod
from tests.kubernetes.rig import Rig
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")

Json = dict[str, Any]

GROUP: Final = Group("publisher-1", "publisher", 1, 1, (), {"WHO": "it"}, Demand(base_cpus=0.01, base_mem=30, ports=2))


@pytest.fixture
def space(rig: Rig) -> Iterator[str]:
    with namespace(rig.api()) as name:
        yield name


def family(space: str, **settings: Any) -> pods.RunObjects:
    return pods.RunObjects("a run", space, {}, KubernetesSettings(**settings), images.PYTHON, archive=False)


def made(kin: pods.RunObjects, *, name: str = "publisher-1", node: str = "node1", **more: Any) -> Json:
    group = replace(GROUP, id=name, constraints=tuple(map(parse_constraint, more.get("constraints", ()))))
    launch = Launch(group, Agent(node, node, {}, Resources()), (31000, 31001))
    secret = pods.environment(kin, group.environment)["metadata"]["name"]
    return pods.group_pod(kin, launch, ("sleep", "60"), secret, archive=more.get("archive", False), grace_s=0)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"archive": True},
        {"constraints": (["hostname", "UNIQUE"], ["group", "CLUSTER", "cpu4-mem16"], ["group", "GROUP_BY", "2"])},
        {"constraints": (["group", "CLUSTER"], ["group", "UNLIKE", "a|b|"], ["group", "LIKE", ".*"])},
        {"constraints": (["group", "GROUP_BY"], ["group", "GROUP_BY", "3"], ["group", "MAX_PER", "2"])},
    ],
)
def test_pods_are_admitted_at_the_level_restricted(rig: Rig, space: str, more: Json) -> None:
    settings: Json = {
        "cpu_limit_ratio": 1.5,
        "labels": {"team": "a"},
        "annotations": {"note": "b"},
        "tolerations": ({"key": "dedicated", "operator": "Exists"},),
        "pod": {"imagePullSecrets": [{"name": "registry"}], "securityContext": {"runAsUser": 4711}},
    }
    for kin in (family(space), family(space, **settings)):
        rig.api().create(f"/api/v1/namespaces/{space}/pods?dryRun=All&fieldValidation=Strict", made(kin, **more))


def test_a_secret_is_admitted(rig: Rig, space: str) -> None:
    secret = pods.environment(family(space), {"HYDRA_A": "1", "x.y-z": "$ü\n"})
    rig.api().create(f"/api/v1/namespaces/{space}/secrets?dryRun=All&fieldValidation=Strict", secret)


@pytest.mark.parametrize(
    ("constraints", "prefer", "found"),
    [
        ((), "node2", ["node2", "node2", "node2"]),
        ((["hostname", "UNIQUE"],), "node1", ["", "node1", "node2"]),
        ((["hostname", "GROUP_BY"],), "node1", ["node1", "node1", "node2"]),
        ((["group", "CLUSTER"],), "node2", ["node2", "node2", "node2"]),
        ((["group", "CLUSTER", "cpu16-mem60"],), "node1", ["node2", "node2", "node2"]),
        ((["group", "UNLIKE", "cpu16-mem60"],), "node2", ["node1", "node1", "node1"]),
        ((["group", "LIKE", "cpu.*"],), "node2", ["node2", "node2", "node2"]),
    ],
)
def test_the_scheduler_keeps_the_constraints(
    rig: Rig, space: str, constraints: tuple[list[str], ...], prefer: str, found: list[str]
) -> None:
    api, path, kin = rig.api(), f"/api/v1/namespaces/{space}/pods", family(space)
    for number in range(3):
        api.create(path, made(kin, name=f"publisher-{number}", constraints=constraints, node=prefer))

    def decided() -> list[pod_status.PodStatus] | None:
        seen = [pod_status.status(pod) for pod in api.items(path)]
        return seen if all(each.node or each.detail.startswith("none of") for each in seen) else None

    seen = wait_until(decided, "the scheduler", LONG_S, saw=lambda: api.items(path))
    assert seen is not None
    assert sorted(each.node for each in seen) == found


def test_the_scheduler_takes_what_placement_spreads_over_the_nodes_that_have_room(rig: Rig, space: str) -> None:
    api, path = rig.api(), f"/api/v1/namespaces/{space}/pods"

    def listed() -> Json:
        return {"nodes": api.items("/api/v1/nodes"), "pods": api.items("/api/v1/pods"), "partial": False}

    # What others need meanwhile is left on both nodes.
    most = min(agent.resources.mem for agent in nodes.agents(listed()["nodes"], listed()["pods"], ()))
    filler = pod("filler", images.PYTHON, ["sleep", "60"], nodeName="node1")
    filler["spec"]["containers"][0]["resources"] = {"requests": {"memory": f"{round(0.7 * most)}Mi"}}
    api.create(path, filler)
    state = KubernetesState(family(space, memory_limit_ratio=0), ())
    state.handle({"kind": "nodes", **listed()}, 0.0)
    spread, demand = (parse_constraint(["hostname", "GROUP_BY"]),), Demand(0.01, round(0.35 * most))
    groups = [replace(GROUP, id=f"g{n}", command=("sleep", "60"), demand=demand, constraints=spread) for n in range(2)]
    assert [launch.agent.id for launch in state.launch(groups, 0.0)] == ["node2", "node2"]
    (call,) = state.calls
    for wanted in (*call["first"], *call["then"]):
        api.create(wanted["path"], wanted["body"])

    def placed() -> bool:
        return [each["spec"].get("nodeName") for each in api.items(path)].count("node2") == 2

    wait_until(placed, "the scheduler", LONG_S, saw=lambda: api.items(path))


def test_the_nodes_become_agents(rig: Rig, space: str) -> None:
    api = rig.api()
    listed = api.items("/api/v1/nodes")
    agents = nodes.agents(listed, api.items("/api/v1/pods"), ((31000, 32000),))
    found = [(agent.id, agent.attributes["group"]) for agent in agents]
    assert found == [("node1", "cpu4-mem16"), ("node2", "cpu16-mem60")]
    assert all(agent.resources.cpus > 0 and agent.resources.mem > 0 for agent in agents)
    assert nodes.left_out(listed, []) == []


def test_a_group_starts_from_an_archive_in_an_image_with_python_only(rig: Rig, space: str, tmp_path: Path) -> None:
    script = b"""#!/bin/sh
echo "$* | $WHO $HYDRA_AGENT $HYDRA_DATA_HOST $HYDRA_PORTS $PWD $(id -u)" >&2
echo x >/tmp/x && echo x >/work/x && exit 7
"""
    archive, entry = tmp_path / "archive.tar", tarfile.TarInfo("hydra-run")
    entry.size, entry.mode = len(script), 0o755
    with tarfile.open(archive, "w") as tar:
        tar.addfile(entry, io.BytesIO(script))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    with closing(ArtifactServer(Artifact(archive, archive.name, "", sha256), rig.place.gateway)) as server:
        api, kin = rig.api(), family(space, memory_limit_ratio=0)
        values = {**GROUP.environment, "HYDRA_ARCHIVE_URL": server.url, "HYDRA_ARCHIVE_SHA256": sha256}
        secret = pods.environment(kin, values)
        api.create(f"/api/v1/namespaces/{space}/secrets", secret)
        launch = Launch(GROUP, Agent("node2", "node2", {}, Resources()), (31000, 31001))
        words, its = ["python", "$(WHO) $$ $x"], secret["metadata"]["name"]
        pod = pods.group_pod(kin, launch, words, its, archive=True, grace_s=0)
        path = f"/api/v1/namespaces/{space}/pods"
        api.create(path, pod)

        def ended() -> pod_status.PodStatus | None:
            seen = pod_status.status(api.get(f"{path}/{pod['metadata']['name']}"))
            return seen if seen.state not in ("starting", "running") else None

        seen = wait_until(ended, "its end", LONG_S)
        address = api.get(f"{path}/{pod['metadata']['name']}")["status"]["podIP"]
    assert seen == pod_status.PodStatus(
        "failed", "node2", f"exit status 7: python $(WHO) $$ $x | it node2 {address} 31000,31001 /work 10001"
    )
