"""What a run on Kubernetes decides, without a cluster: messages and the time go in, calls and events come out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.cluster.constraints import parse_constraint
from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes import state as module
from hydra.cluster.kubernetes import waiting as patience
from hydra.cluster.kubernetes.pods import CONTAINER, Family
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.cluster.kubernetes.state import KubernetesState
from hydra.errors import ClusterError, PlacementError
from hydra.model import Constraint, Demand, Group, GroupEvent
from tests.cluster.kubernetes.objects import container, node, pod

Json = dict[str, Any]

FAMILY = Family("r1", "lab", {"name": "hydra-r1-keeper", "uid": "u"}, KubernetesSettings(), "hydra:1", archive=False)
QUOTA = 'pods "p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=5, limited: pods=5'
DELETED = {"reason": "Forbidden", "message": 'pods "p" is forbidden: unable to create new content in namespace lab '
           "because it is being terminated"}  # fmt: skip


def group(
    name: str, *, cpus: float = 1.0, ports: int = 0, constraints: tuple[Constraint, ...] = (), key: str = "k"
) -> Group:
    return Group(name, "subscriber", 0, 1, ("run",), {"KEY": key}, Demand(cpus, 64.0, ports=ports), constraints)


class Subject:
    """A run on nodes of 4 CPUs, with its clock."""

    def __init__(self, *nodes: str, cpu: str = "4") -> None:
        self.now = 0.0
        self.state = KubernetesState(FAMILY, ((31000, 31003),))
        self.tell_nodes(*(nodes or ("n1", "n2")), cpu=cpu)

    def say(self, kind: str, **fields: Any) -> None:
        self.state.handle({"kind": kind, **fields}, self.now)
        self.state.tick(self.now)  # as whoever owns it does

    def tell_nodes(self, *nodes: str, cpu: str = "4", pods: tuple[Json, ...] = ()) -> None:
        self.say("nodes", nodes=[node(name, cpu=cpu) for name in nodes], pods=list(pods), partial=False)

    def pod(self, group: str, where: str = "", *, gone: bool = False, deleted: bool = False, **status: Any) -> None:
        """The Pod of a group as the watch tells of it."""
        metadata: Json = {
            "name": names.object_name("r1", group),
            "namespace": "lab",
            "labels": {names.PART: "group", names.GROUP: group},
        }
        if deleted:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec = {"nodeName": where, "containers": [{"name": CONTAINER}]}
        self.say("pod", pod={"metadata": metadata, "spec": spec, "status": status}, gone=gone)

    def runs(self, group: str, where: str = "n1") -> None:
        self.pod(group, where, **running())

    def refuse(self, tag: str, status: int, message: str, reason: str = "") -> None:
        self.say("refused", tag=tag, status=status, reason=reason, message=message)

    def launch(self, *groups: Group) -> list[str]:
        """The nodes on which the groups were placed."""
        return [launch.agent.id for launch in self.state.launch(groups, self.now)]

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.state.tick(self.now)

    def calls(self, kind: str = "") -> list[Json]:
        calls, self.state.calls = self.state.calls, []
        return [call for call in calls if kind in ("", call["call"])]

    def events(self) -> list[GroupEvent]:
        events, self.state.events = self.state.events, []
        return events

    def told(self) -> list[tuple[str, str, bool]]:
        return [(event.group, event.state, event.refused) for event in self.events()]


def running() -> Json:
    return {"phase": "Running", "containerStatuses": [{"name": CONTAINER, "state": {"running": {}}}]}


def ended(code: int, reason: str = "Error", message: str = "") -> Json:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": CONTAINER, "state": state}]}


def waiting(reason: str, message: str = "") -> Json:
    return {
        "phase": "Pending",
        "containerStatuses": [
            {"name": CONTAINER, "image": "hydra:1", "state": {"waiting": {"reason": reason, "message": message}}}
        ],
    }


def unschedulable(message: str = "0/2 nodes are available: 2 Insufficient cpu.") -> Json:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


# --- placing and creating --------------------------------------------------------------------------------------------


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


# --- how groups end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "state", "says", "grace"),
    [
        (ended(0), "finished", "exit status 0", module.GRACE_S),
        (ended(4, message="no welcome"), "failed", "exit status 4: no welcome", module.GRACE_S),
        (ended(137, "OOMKilled"), "failed", "memory", module.GRACE_S),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
            "lost",
            "evicted from node n1: The node was low on resource: memory.",
            0,
        ),
    ],
)
def test_the_end_of_a_pod_is_told_once_and_the_pod_removed(status: Json, state: str, says: str, grace: int) -> None:
    it = Subject()
    it.launch(group("a"))
    it.runs("a")
    it.calls()
    it.events()
    it.pod("a", "n1", **status)
    it.pod("a", "n1", **status)
    it.pod("a", "n1", gone=True, **status)
    (event,) = it.events()
    assert (event.state, event.agent, event.refused) == (state, "n1", False)
    assert says in event.detail
    assert it.calls("delete") == [{"call": "delete", "groups": ["a"], "grace": grace}]


def test_a_group_that_cannot_start_where_it_is_is_not_asked_for_again() -> None:
    it = Subject()
    it.launch(group("a"))
    it.runs("a")
    it.events()
    it.pod("a", "n1", **ended(78, message="hydra: the archive cannot be fetched"))
    (event,) = it.events()
    assert (event.state, event.refused) == ("failed", True)
    assert "the archive cannot be fetched" in event.detail


def test_a_pod_that_somebody_deletes_is_lost_and_its_place_is_free_at_once() -> None:
    it = Subject("n1")
    it.launch(group("a", cpus=4.0))
    it.runs("a")
    it.events()
    it.pod("a", "n1", deleted=True, **running())
    assert it.events() == [], "it may have gone with the whole run"
    it.pass_time(module.LOOK_WITHIN_S)
    (event,) = it.events()
    assert (event.state, event.detail) == ("lost", "its Pod was deleted by somebody else")
    assert it.launch(group("b", cpus=4.0)) == ["n1"]


@pytest.mark.parametrize("there", [True, False])
def test_a_pod_that_somebody_deletes_is_told_of_when_it_is_known_whether_the_run_is_there(there: bool) -> None:
    it = Subject("n1")
    it.state.family = replace(FAMILY, owner={"name": "hydra-r1-keeper"})
    it.launch(group("a"))
    it.runs("a")
    it.events()
    it.pod("a", "n1", deleted=True, **running())
    (call,) = it.calls("look")
    assert it.events() == []
    if there:
        it.say("found", tag=call["tag"])
    else:
        it.refuse(call["tag"], 404, "not found")
    assert [(event.group, event.state) for event in it.events()] == [("a", "lost")]
    assert bool(it.state.fatal[0]) is not there


def test_a_pod_that_was_asked_to_end_is_told_of_when_it_has_ended() -> None:
    it = Subject("n1")
    it.launch(group("a", cpus=4.0))
    it.runs("a")
    it.events()
    it.state.kill(["a"], it.now)
    it.pod("a", "n1", deleted=True, **running())
    assert it.events() == []
    with pytest.raises(PlacementError):
        it.launch(group("b", cpus=4.0))
    it.pod("a", "n1", deleted=True, **ended(143))
    assert [(event.group, event.state) for event in it.events()] == [("a", "killed")]


def test_the_pod_of_a_group_that_was_given_up_is_ended_when_it_comes_after_all() -> None:
    it = Subject("n1")
    it.pod("late", "n1", **running())
    assert [(call["groups"], call["grace"]) for call in it.calls("delete")] == [(["late"], 0)]
    it.pod("late", "n1", deleted=True, **running())
    assert it.calls("delete") == []


def test_groups_on_a_lost_node_keep_nobody_from_being_spread() -> None:
    it = Subject("n1", "n2")
    spread = (parse_constraint(["hostname", "GROUP_BY"]),)
    placed = it.launch(*(replace(group(name), constraints=spread) for name in ("a", "b", "c")))
    (fuller,) = (node for node in ("n1", "n2") if placed.count(node) == 2)
    it.tell_nodes(fuller)  # the other one does not answer any more
    assert it.launch(replace(group("d"), constraints=spread)) == [fuller]


def test_a_pod_that_was_made_is_not_given_up_as_unanswered() -> None:
    it = Subject("n1")
    it.launch(group("a"))
    it.say("made", tag=names.object_name("r1", "a"), name="", uid="")
    it.pass_time(module.CREATED_WITHIN_S + 1)
    assert it.events() == []


def test_pods_that_went_while_nobody_watched_are_lost_and_those_not_made_yet_are_not() -> None:
    it = Subject()
    it.launch(group("a"), group("b"), group("new"))
    it.runs("a")
    it.runs("b")
    it.events()
    it.say("pods", names=[names.object_name("r1", "b")])
    assert it.told() == [("a", "lost", False)]


def test_a_killed_group_is_told_as_killed_however_it_ends_and_asked_again_until_it_does() -> None:
    it = Subject()
    it.launch(group("a"), group("b"))
    it.runs("a")
    it.runs("b")
    it.calls()
    it.events()
    it.state.kill(["a", "b", "nobody"], it.now)
    it.state.kill(["a"], it.now)
    assert it.calls() == [{"call": "delete", "groups": ["a", "b"], "grace": module.GRACE_S}]
    it.pod("a", "n1", **ended(143))
    assert it.told() == [("a", "killed", False)]
    it.pass_time(module.KILL_AGAIN_S - 1)
    assert it.calls() == []
    it.pass_time(1)
    assert it.calls() == [{"call": "delete", "groups": ["b"], "grace": module.GRACE_S}]
    it.pod("b", "n1", gone=True, **running())
    assert it.told() == [("b", "killed", False)]


def test_a_group_that_is_killed_before_its_pod_is_there_is_deleted_once_it_is() -> None:
    it = Subject()
    it.launch(group("a"))
    it.state.kill(["a"], it.now)
    it.calls()
    it.pod("a", "n1", **waiting("ContainerCreating"))
    assert it.told() == []
    it.pass_time(module.KILL_AGAIN_S)
    assert [call["groups"] for call in it.calls("delete")] == [["a"]]
    it.pod("a", "n1", gone=True, **waiting("ContainerCreating"))
    assert it.told() == [("a", "killed", False)]


# --- Pods that do not start ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "status", "within_s", "says"),
    [
        ("", unschedulable(), patience.NODE_WITHIN_S, "2 Insufficient cpu"),
        ("n1", waiting("ErrImagePull", "connection refused"), patience.IMAGE_WITHIN_S, "connection refused"),
        ("n1", waiting("ErrImageNeverPull"), patience.HOPELESS_S, 'pull_policy is "Never"'),
        ("n1", waiting("CreateContainerConfigError", "no such"), patience.HOPELESS_S, "no such"),
    ],
)
def test_a_pod_that_does_not_start_is_given_up_in_time(where: str, status: Json, within_s: float, says: str) -> None:
    it = Subject()
    it.launch(group("a"))
    it.calls()
    it.pod("a", where, **status)
    it.pass_time(within_s - 0.5)
    it.pod("a", where, **status)
    assert it.events() == []
    it.pass_time(0.5)
    (event,) = it.events()
    assert (event.state, event.refused) == ("failed", True)
    assert says in event.detail
    assert it.calls("delete") == [{"call": "delete", "groups": ["a"], "grace": module.GRACE_S}]


def test_each_reason_to_wait_has_its_own_time() -> None:
    it = Subject()
    it.launch(group("a"))
    it.pod("a", "", **unschedulable())
    it.pass_time(patience.NODE_WITHIN_S - 1)
    it.pod("a", "n1", **waiting("ErrImagePull", "connection refused"))
    it.pass_time(patience.IMAGE_WITHIN_S - 1)
    it.pod("a", "n1", **waiting("ContainerCreating"))
    it.pass_time(patience.START_WITHIN_S - 1)
    assert it.events() == []
    it.runs("a")
    it.pass_time(1000)
    assert it.told() == [("a", "running", False)]


@pytest.mark.parametrize("answers", [True, False])
def test_a_start_that_takes_too_long_is_asked_about(answers: bool) -> None:
    it = Subject()
    it.launch(group("a"))
    it.pod("a", "n1", **waiting("ContainerCreating"))
    it.calls()
    it.pass_time(patience.START_WITHIN_S)
    it.pass_time(0)
    assert it.calls() == [{"call": "why", "pod": names.object_name("r1", "a"), "uid": ""}]
    warning = {"type": "Warning", "reason": "FailedMount", "message": "no such volume"}
    if answers:
        it.say("why", pod=names.object_name("r1", "a"), events=[warning])
    it.pass_time(module.WHY_WITHIN_S)
    (event,) = it.events()
    assert event.detail.startswith("it did not start within 120 s")
    assert event.detail.endswith("FailedMount: no such volume") == answers
    assert event.refused


def test_a_hopeless_pod_that_starts_after_all_is_kept() -> None:
    it = Subject()
    it.launch(group("a"))
    it.pod("a", "n1", **waiting("CreateContainerConfigError", 'secret "s" not found'))
    it.pass_time(patience.HOPELESS_S - 0.5)
    it.pod("a", "n1", **waiting("ContainerCreating"))
    it.pass_time(patience.HOPELESS_S)
    assert it.events() == []


# --- what the API server refuses -------------------------------------------------------------------------------------


def test_a_refused_pod_is_a_refused_group_with_the_reason_and_a_remedy() -> None:
    it = Subject()
    it.launch(group("a"), group("b"))
    it.calls()
    it.refuse(names.object_name("r1", "a"), 403, QUOTA, "Forbidden")
    (event,) = it.events()
    assert (event.group, event.state, event.refused) == ("a", "failed", True)
    assert "exceeded quota: few" in event.detail
    assert "max_group" in event.detail
    assert it.calls() == [], "there is nothing to delete"


def test_a_refused_secret_refuses_those_who_need_it_and_is_made_anew_the_next_time() -> None:
    it = Subject()
    it.launch(group("a"), group("b"), group("other", key="other"))
    (call,) = it.calls()
    tag = call["then"][0]["body"]["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"]
    it.refuse(tag, 403, 'secrets "s" is forbidden: User "u" cannot create resource "secrets"', "Forbidden")
    assert it.told() == [("a", "failed", True), ("b", "failed", True)]
    it.launch(group("c"))
    (call,) = it.calls()
    assert [wanted["tag"] for wanted in call["first"]] == [tag]


def test_a_pod_whose_creation_had_no_answer_may_be_there_and_is_deleted() -> None:
    it = Subject()
    it.launch(group("a"))
    it.calls()
    it.refuse(names.object_name("r1", "a"), 0, "timed out")
    assert it.told() == [("a", "failed", True)]
    assert [call["groups"] for call in it.calls("delete")] == [["a"]]


def test_a_pod_of_which_nothing_is_heard_is_lost_and_deleted() -> None:
    it = Subject()
    it.launch(group("a"))
    it.calls()
    it.pass_time(module.CREATED_WITHIN_S)
    assert it.told() == [("a", "lost", False)]
    assert [call["groups"] for call in it.calls("delete")] == [["a"]]


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
    assert Subject().state.left(stopped) == says


def test_what_the_end_has_left_is_told_once() -> None:
    it = Subject()
    _nobody_knows_who_asks(it)
    assert "goes by itself as its keeper ends" in it.state.fatal[1]
    assert it.state.left({"left": -1, "status": 401, "reason": "", "message": "Unauthorized"}) == ""


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


# --- whatever happens ------------------------------------------------------------------------------------------------

Fate = Literal["runs", "ends", "dies", "goes", "deleted", "refused", "stuck"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.integers(1, 40)),
        st.tuples(
            st.just("fate"),
            st.sampled_from(["runs", "ends", "dies", "goes", "deleted", "refused", "stuck"]),
            st.sampled_from(["n1", "n2"]),
        ),
        st.tuples(st.just("kill")),
        st.tuples(st.just("relist")),
        st.tuples(st.just("time"), st.sampled_from([1.0, 12.0, 31.0, 130.0])),
    ),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=100)
def test_whatever_happens_no_node_is_overdrawn_and_every_group_ends_once_or_is_there(
    steps: list[tuple[Any, ...]],
) -> None:
    it = Subject()
    alive: list[str] = []
    there: set[str] = set()
    launched, gone = set[str](), list[str]()
    for number, step in enumerate(steps):
        match step:
            case ("launch", tenths):
                free = {agent.id: agent.resources.cpus for agent in it.state.agents()}
                name = f"g{number}"
                try:
                    (where,) = it.launch(group(name, cpus=tenths / 10))
                except PlacementError:
                    assert max(free.values()) < tenths / 10 + 1e-9
                else:
                    assert tenths / 10 <= free[where] + 1e-9
                    launched.add(name)
                    alive.append(name)
            case ("fate", fate, where) if alive:
                name = alive[0]
                _meets(it, name, fate, where, there)
            case ("kill",) if alive:
                it.state.kill([alive[-1]], it.now)
            case ("relist",):
                it.say("pods", names=sorted(names.object_name("r1", name) for name in there))
            case ("time", seconds):
                it.pass_time(seconds)
        for event in it.events():
            if event.state not in ("starting", "running"):
                gone.append(event.group)
                alive.remove(event.group)
                there.discard(event.group)
        assert len(gone) == len(set(gone)), "a group ended twice"
        assert launched == {*gone, *alive}
        with pytest.raises((ClusterError, PlacementError)):
            it.launch(group("big", cpus=100.0))
        for name in alive:
            with pytest.raises(ClusterError, match="running already"):
                it.launch(group(name))
    it.state.kill(alive, it.now)
    for name in alive:
        it.pod(name, "n1", gone=True, **running())
    assert {event.group for event in it.events()} == set(alive)


def _meets(it: Subject, name: str, fate: Fate, where: str, there: set[str]) -> None:
    match fate:
        case "runs":
            there.add(name)
            it.runs(name, where)
        case "ends":
            it.pod(name, where, **ended(0))
        case "dies":
            it.pod(name, where, **ended(137, "OOMKilled"))
        case "goes":
            it.pod(name, where, gone=True, **running())
        case "deleted":
            it.pod(name, where, deleted=True, **running())
        case "refused":
            it.refuse(names.object_name("r1", name), 403, QUOTA)
        case "stuck":
            there.add(name)
            it.pod(name, "", **unschedulable())
