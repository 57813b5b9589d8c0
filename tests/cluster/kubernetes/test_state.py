"""What a run on Kubernetes decides: where groups are placed, what is created, and when nothing can be any more."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from hydra.cluster.constraints import parse_constraint
from hydra.cluster.kubernetes import names
from hydra.errors import ClusterError, PlacementError
from hydra.model import Constraint
from tests.cluster.kubernetes.objects import container, node, pod
from tests.cluster.kubernetes.stated import DELETED, Json, Subject, ended, group, running


def test_all_pods_of_a_launch_are_created_at_once_behind_one_secret_for_each_environment() -> None:
    it = Subject()
    it.launch(group("a"), group("b"), group("c", key="other"))
    (call,) = it.calls()
    assert call["call"] == "create"
    assert [wanted["path"] for wanted in call["first"]] == ["/api/v1/namespaces/lab/secrets"] * 2
    assert [wanted["path"] for wanted in call["then"]] == ["/api/v1/namespaces/lab/pods"] * 3
    secrets = {wanted["tag"]: wanted["body"]["stringData"] for wanted in call["first"]}
    used = [wanted["body"]["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"] for wanted in call["then"]]
    assert [secrets[name] for name in used] == [{"KEY": "k"}, {"KEY": "k"}, {"KEY": "other"}]
    it.launch(group("d"))
    (call,) = it.calls()
    assert call["first"] == [], "that environment is there"


def test_a_group_that_fits_nowhere_is_refused_with_the_reason_and_none_of_its_launch_is_created() -> None:
    it = Subject()
    with pytest.raises(PlacementError, match=r"group b .*the most that is free on a matching agent is cpus 4"):
        it.launch(group("a"), group("b", cpus=5.0))
    assert it.calls() == [{"call": "nodes"}], "others may have ended meanwhile"
    assert it.launch(group("a", cpus=4.0), group("b", cpus=4.0)) in (["n1", "n2"], ["n2", "n1"])


def test_what_our_pods_hold_is_not_free_whoever_tells_of_them() -> None:
    it = Subject("n1")
    it.launch(group("a", cpus=1.5, ports=2))
    ours = pod("n1", container("1500m", "64Mi"))
    ours["metadata"] |= {"name": names.object_name("r1", "a"), "namespace": "lab"}
    ours["metadata"]["labels"] = names.labels("r1", "group")
    theirs = pod("n1", container("500m"))
    theirs["metadata"] |= {"name": "theirs", "namespace": "other"}
    it.tell_nodes("n1", pods=(ours, theirs))
    (agent,) = it.state.agents()
    assert agent.resources.cpus == 2.0
    assert agent.resources.ports == ((31002, 31003),)
    it.pod("a", "n1", **ended(0))
    it.tell_nodes("n1", pods=(theirs,))
    (agent,) = it.state.agents()
    assert agent.resources.cpus == 3.5
    assert agent.resources.ports == ((31000, 31003),)


def test_a_pod_that_the_scheduler_has_put_elsewhere_counts_there() -> None:
    it = Subject()
    (placed,) = it.launch(group("a", cpus=3.0))
    other = {"n1": "n2", "n2": "n1"}[placed]
    it.runs("a", other)
    assert [(e.group, e.state, e.agent) for e in it.events()] == [("a", "running", other)]
    assert {agent.id: agent.resources.cpus for agent in it.state.agents()} == {placed: 4.0, other: 1.0}


def test_an_id_may_stand_once_at_a_time() -> None:
    it = Subject()
    with pytest.raises(ClusterError, match="running already"):
        it.launch(group("a"), group("a"))
    it.launch(group("a"))
    with pytest.raises(ClusterError, match="running already"):
        it.launch(group("a"))


# --- the end of everything -------------------------------------------------------------------------------------------


def _namespace_ends(it: Subject) -> None:
    it.launch(group("z"))
    it.refuse(names.object_name("r1", "z"), 403, str(DELETED["message"]), str(DELETED["reason"]))


def _namespace_is_gone(it: Subject) -> None:
    it.launch(group("z"))
    it.refuse(names.object_name("r1", "z"), 404, 'namespaces "lab" not found', "NotFound")


def _nobody_knows_who_asks(it: Subject) -> None:
    it.launch(group("z"))
    it.refuse(names.object_name("r1", "z"), 401, "Unauthorized", "Unauthorized")


def _run_is_gone(it: Subject) -> None:
    keeper = {"metadata": {"name": "k", "labels": {names.PART: "keeper"}}, "spec": {}, "status": {}}
    it.calls()
    it.say("pod", pod=keeper, gone=True)
    it.say("pod", pod=keeper, gone=True)
    (call,) = it.calls()
    assert (call["call"], call["path"]) == ("look", "/apis/batch/v1/namespaces/lab/jobs/hydra-r1-keeper")
    it.refuse(call["tag"], 404, 'jobs.batch "hydra-r1-keeper" not found', "NotFound")


def _run_is_being_deleted(it: Subject) -> None:
    it.launch(group("a"))
    it.runs("a")
    it.calls()
    it.pod("a", "n1", deleted=True, **running())
    (call,) = it.calls("look")
    it.refuse(call["tag"], 404, 'jobs.batch "hydra-r1-keeper" not found', "NotFound")


def _driver_fails(it: Subject) -> None:
    it.say("failed", what="the process failed", remedy="")


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        (_namespace_ends, "namespace lab: it is being deleted"),
        (_namespace_is_gone, "namespace lab: it does not exist"),
        (_nobody_knows_who_asks, r"who asks \(Unauthorized\); log in to the cluster anew, and go on with --resume"),
        (_run_is_gone, "the run was removed from namespace lab"),
        (_run_is_being_deleted, "the run was removed from namespace lab"),
        (_driver_fails, "the process failed"),
    ],
)
def test_nothing_is_launched_any_more_after(happens: Any, says: str) -> None:
    it = Subject()
    happens(it)
    it.calls()
    with pytest.raises(ClusterError, match=says):
        it.launch(group("b"))
    assert it.calls() == []


@pytest.mark.parametrize(
    ("stopped", "says"),
    [
        ({"left": 0}, ""),
        ({"left": 2}, "2 Pods are still in namespace lab; see hydra ps, and hydra kill r1"),
        (
            {"left": -1, "status": 401, "reason": "", "message": "Unauthorized"},
            "cannot delete what belongs to the run in namespace lab: the API server does not know who asks"
            " (Unauthorized); it goes by itself as its keeper ends: hydra ps tells, hydra kill r1 removes it at once",
        ),
        (
            {"left": -1, "status": 0, "reason": "", "message": "Connection refused"},
            "cannot delete what belongs to the run in namespace lab: Connection refused; it goes by itself as its"
            " keeper ends: hydra ps tells, hydra kill r1 removes it at once",
        ),
    ],
)
def test_what_the_end_has_left_is_one_line(stopped: Json, says: str) -> None:
    assert Subject().state.standing.left(stopped) == says


@pytest.mark.parametrize(
    ("happens", "removed"),
    [
        (_namespace_ends, True),
        (_namespace_is_gone, True),
        (_run_is_gone, True),
        (_nobody_knows_who_asks, False),
        (_driver_fails, False),
    ],
)
def test_what_is_left_is_told_of_unless_somebody_else_removes_the_run(happens: Any, removed: bool) -> None:
    it = Subject()
    happens(it)
    assert bool(it.state.standing.left({"left": 2})) is not removed


def test_what_the_end_has_left_is_told_once() -> None:
    it = Subject()
    _nobody_knows_who_asks(it)
    assert "goes by itself as its keeper ends" in it.state.fatal[1]
    assert it.state.standing.left({"left": -1, "status": 401, "reason": "", "message": "Unauthorized"}) == ""


def test_a_keeper_that_comes_again_ends_nothing() -> None:
    it = Subject()
    it.say("refused", tag="owner", status=0, reason="", message="no connection")
    it.launch(group("b"))


def test_the_nodes_are_asked_for_again_when_one_is_lost_but_not_all_the_time() -> None:
    it = Subject()
    it.launch(group("a"), group("b"))
    for name in ("a", "b"):
        it.runs(name)
        it.pod(name, "n1", phase="Failed", reason="NodeLost")
    assert len(it.calls("nodes")) == 1
    it.tell_nodes("n2")
    assert it.launch(group("c")) == ["n2"]


def test_five_hundred_groups_are_placed_on_two_hundred_nodes_in_half_a_second_of_cpu() -> None:
    took_s = []
    for _ in range(3):  # of which the least counts: what else the machine does only adds to it
        it = Subject(*(f"n{n}" for n in range(200)), cpu="16")
        groups = [group(f"g{n}", constraints=(Constraint("hostname", "GROUP_BY"),)) for n in range(500)]
        began = time.process_time()
        it.launch(*groups)
        took_s.append(time.process_time() - began)
        assert len(it.calls()[0]["then"]) == 500
    assert min(took_s) < 0.5


def test_where_others_have_taken_all_room_of_a_node_the_spread_is_placements() -> None:
    it = Subject()
    theirs = pod("n2", container("3900m"))
    theirs["metadata"] |= {"name": "theirs", "namespace": "other"}
    spread = (parse_constraint(["hostname", "GROUP_BY"]),)

    def asked() -> list[tuple[bool, bool]]:
        """Of each Pod: whether the scheduler spreads it, and whether its node is required."""
        specs = [wanted["body"]["spec"] for call in it.calls("create") for wanted in call["then"]]
        where = [
            str(spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]) for spec in specs
        ]
        return [("topologySpreadConstraints" in spec, "n1" in text) for spec, text in zip(specs, where, strict=True)]

    it.tell_nodes("n1", "n2", pods=(theirs,))
    assert it.launch(group("a", constraints=spread)) == ["n1"]
    assert asked() == [(True, False)], "the scheduler agrees"
    assert it.launch(group("b", constraints=spread)) == ["n1"]
    assert asked() == [(False, True)]
    it.tell_nodes("n1", "n2")
    assert it.launch(group("c", constraints=spread)) == ["n2"]
    assert asked() == [(True, False)]


def test_groups_on_a_cordoned_node_go_on_and_what_has_to_be_with_them_has_no_place() -> None:
    it = Subject("n1", "n2")
    spread, together = parse_constraint(["hostname", "GROUP_BY"]), parse_constraint(["hostname", "CLUSTER"])
    placed = it.launch(*(group(name, constraints=(spread,)) for name in ("a", "b", "c")))
    (fuller,) = (node for node in ("n1", "n2") if placed.count(node) == 2)
    (emptier,) = {"n1", "n2"} - {fuller}
    (where,) = it.launch(replace(group("p", constraints=(together,)), role="publisher"))
    assert where == emptier
    it.say("nodes", nodes=[node(fuller), node(emptier, cordoned=True)], pods=[], partial=False)
    assert it.launch(group("d", constraints=(spread,))) == [fuller]
    with pytest.raises(PlacementError, match=f"hostname CLUSTER refuses 1 .* by agent: {emptier}"):
        it.launch(replace(group("q", constraints=(together,)), role="publisher"))
