"""What a run on Kubernetes decides: where groups go, what is created, when nothing can be, and what its engine adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from hydra.engine.driver_engine import DriverProcess
from hydra.engine.placement import parse_constraint
from hydra.errors import ClusterError, PlacementError
from hydra.kubernetes import node_inventory as module
from hydra.kubernetes import object_names
from hydra.kubernetes.engine import KubernetesEngine
from hydra.kubernetes.keeper_job import owner
from hydra.kubernetes.program_delivery import ProgramDelivery
from hydra.model import Constraint
from hydra.system import wait_alone
from tests.cluster.kubernetes.objects import container, node, pod
from tests.cluster.kubernetes.stated import DELETED, FAMILY, Json, Subject, ended, group, running
from tests.cluster.stated import calls_made


def test_all_pods_of_a_launch_are_created_at_once_behind_one_secret_for_each_environment() -> None:
    subject = Subject()
    subject.launch(group("a"), group("b"), group("c", key="other"))
    (call,) = subject.calls()
    assert call["call"] == "create"
    assert [wanted["path"] for wanted in call["first"]] == ["/api/v1/namespaces/lab/secrets"] * 2
    assert [wanted["path"] for wanted in call["then"]] == ["/api/v1/namespaces/lab/pods"] * 3
    secrets = {wanted["tag"]: wanted["body"]["stringData"] for wanted in call["first"]}
    used = [wanted["body"]["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"] for wanted in call["then"]]
    assert [secrets[name] for name in used] == [{"KEY": "k"}, {"KEY": "k"}, {"KEY": "other"}]
    subject.launch(group("d"))
    (call,) = subject.calls()
    assert call["first"] == [], "that environment is there"


def test_a_group_that_fits_nowhere_is_refused_with_the_reason_and_none_of_its_launch_is_created() -> None:
    subject = Subject()
    with pytest.raises(PlacementError, match=r"group b .*the most that is free on a matching agent is cpus 4"):
        subject.launch(group("a"), group("b", cpus=5.0))
    assert subject.calls() == [{"call": "nodes"}], "others may have ended meanwhile"
    assert subject.launch(group("a", cpus=4.0), group("b", cpus=4.0)) in (["n1", "n2"], ["n2", "n1"])


def test_what_our_pods_hold_is_not_free_whoever_tells_of_them() -> None:
    subject = Subject("n1")
    subject.launch(group("a", cpus=1.5, ports=2))
    own = pod("n1", container("1500m", "64Mi"))
    own["metadata"] |= {"name": object_names.object_name("r1", "a"), "namespace": "lab"}
    own["metadata"]["labels"] = object_names.labels("r1", "group")
    others = pod("n1", container("500m"))
    others["metadata"] |= {"name": "theirs", "namespace": "other"}
    subject.list_nodes("n1", pods=(own, others))
    (agent,) = subject.state.agents()
    assert agent.resources.cpus == 2.0
    assert agent.resources.ports == ((31002, 31003),)
    subject.pod("a", "n1", **ended(0))
    subject.list_nodes("n1", pods=(others,))
    (agent,) = subject.state.agents()
    assert agent.resources.cpus == 3.5
    assert agent.resources.ports == ((31000, 31003),)


def test_a_pod_that_the_scheduler_has_put_elsewhere_counts_there() -> None:
    subject = Subject()
    (placed,) = subject.launch(group("a", cpus=3.0))
    other = {"n1": "n2", "n2": "n1"}[placed]
    subject.runs("a", other)
    assert [(e.group, e.state, e.agent) for e in subject.events()] == [("a", "running", other)]
    assert {agent.id: agent.resources.cpus for agent in subject.state.agents()} == {placed: 4.0, other: 1.0}


def test_an_id_may_stand_once_at_a_time() -> None:
    subject = Subject()
    with pytest.raises(ClusterError, match="running already"):
        subject.launch(group("a"), group("a"))
    subject.launch(group("a"))
    with pytest.raises(ClusterError, match="running already"):
        subject.launch(group("a"))


# --- the end of everything -------------------------------------------------------------------------------------------


Happens = Callable[[Subject], None]


def _refused(status: int, message: str, reason: str) -> Happens:
    def happens(it: Subject) -> None:
        it.launch(group("z"))
        it.refuse(object_names.object_name("r1", "z"), status, message, reason)

    return happens


_namespace_ends = _refused(403, DELETED["message"], DELETED["reason"])
_no_namespace = _refused(404, 'namespaces "lab" not found', "NotFound")
_unauthorized = _refused(401, "Unauthorized", "Unauthorized")


def _no_run(it: Subject) -> None:
    keeper = {"metadata": {"name": "k", "labels": {object_names.PART: "keeper"}}, "spec": {}, "status": {}}
    it.calls()
    it.drive("pod", pod=keeper, gone=True)
    it.drive("pod", pod=keeper, gone=True)
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
    it.drive("failed", what="the process failed", remedy="")


@pytest.mark.parametrize(
    ("happens", "expected", "is_removed"),
    [
        (_namespace_ends, "namespace lab: the namespace is being deleted", True),
        (_no_namespace, "namespace lab: the namespace does not exist", True),
        (_unauthorized, r"who asks \(Unauthorized\); log in to the cluster again, and continue with", False),
        (_no_run, "the run was removed from namespace lab", True),
        (_run_is_being_deleted, "the run was removed from namespace lab", True),
        (_driver_fails, "the process failed", False),
    ],
)
def test_nothing_is_launched_any_more_after(happens: Happens, expected: str, is_removed: bool) -> None:
    subject = Subject()
    happens(subject)
    subject.calls()
    with pytest.raises(ClusterError, match=expected):
        subject.launch(group("b"))
    assert subject.calls() == []
    assert bool(subject.state.standing.left({"left": 2})) is not is_removed, "unless somebody else removes the run"


UNDELETED = "cannot delete what belongs to the run in namespace lab: "
BY_ITSELF = (
    "; the cluster removes the run when the Pod that watches this machine ends: see hydra ps; "
    "hydra kill r1 removes the run now"
)


@pytest.mark.parametrize(
    ("stopped", "expected"),
    [
        ({"left": 0}, ""),
        ({"left": 2}, "2 Pods are still in namespace lab; see hydra ps, and hydra kill r1"),
        (
            {"left": -1, "status": 401, "reason": "", "message": "Unauthorized"},
            f"{UNDELETED}the API server does not know who asks (Unauthorized){BY_ITSELF}",
        ),
        ({"left": -1, "status": 0, "reason": "", "message": "no answer"}, f"{UNDELETED}no answer{BY_ITSELF}"),
    ],
)
def test_what_the_end_has_left_is_one_line(stopped: Json, expected: str) -> None:
    assert Subject().state.standing.left(stopped) == expected


def test_what_the_end_has_left_is_told_once() -> None:
    subject = Subject()
    _unauthorized(subject)
    assert "the cluster removes the run when the Pod that watches this machine ends" in subject.state.fatal[1]
    assert subject.state.standing.left({"left": -1, "status": 401, "reason": "", "message": "Unauthorized"}) == ""


def test_a_keeper_that_comes_again_ends_nothing() -> None:
    subject = Subject()
    subject.drive("refused", tag="owner", status=0, reason="", message="no connection")
    subject.launch(group("b"))


def test_the_nodes_are_asked_for_again_when_one_is_lost_but_not_all_the_time() -> None:
    it = Subject().with_groups("a", "b")
    for name in ("a", "b"):
        it.runs(name)
        it.pod(name, "n1", phase="Failed", reason="NodeLost")
    assert len(it.calls("nodes")) == 1
    it.list_nodes("n2")
    assert it.launch(group("c")) == ["n2"]


def test_a_launch_on_thrice_as_many_nodes_costs_thrice_as_much() -> None:
    def cost(many: int) -> int:
        subject = Subject(*(f"n{n}" for n in range(many)), cpu="16")
        groups = [group(f"g{n}", constraints=(Constraint("hostname", "GROUP_BY"),)) for n in range(3 * many)]
        calls = calls_made(lambda: subject.launch(*groups))
        assert len(subject.calls()[0]["then"]) == 3 * many
        return calls

    assert cost(60) < 3.5 * cost(20)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_where_others_have_taken_all_room_of_a_node_the_spread_is_placements() -> None:
    subject = Subject()
    others = pod("n2", container("3900m"))
    others["metadata"] |= {"name": "theirs", "namespace": "other"}
    spread = (parse_constraint(["hostname", "GROUP_BY"]),)

    def asked() -> list[tuple[bool, bool]]:
        """Of each Pod: whether the scheduler spreads it, and whether its node is required."""
        specs = [wanted["body"]["spec"] for call in subject.calls("create") for wanted in call["then"]]
        terms = [str(spec["affinity"]["nodeAffinity"][REQUIRED]) for spec in specs]
        return [("topologySpreadConstraints" in spec, "n1" in text) for spec, text in zip(specs, terms, strict=True)]

    subject.list_nodes("n1", "n2", pods=(others,))
    assert subject.launch(group("a", constraints=spread)) == ["n1"]
    assert asked() == [(True, False)], "the scheduler agrees"
    assert subject.launch(group("b", constraints=spread)) == ["n1"]
    assert asked() == [(False, True)]
    subject.list_nodes("n1", "n2")
    assert subject.launch(group("c", constraints=spread)) == ["n2"]
    assert asked() == [(True, False)]


def test_groups_on_a_cordoned_node_go_on_and_what_has_to_be_with_them_has_no_place() -> None:
    subject = Subject("n1", "n2")
    spread, together = parse_constraint(["hostname", "GROUP_BY"]), parse_constraint(["hostname", "CLUSTER"])
    placed = subject.launch(*(group(name, constraints=(spread,)) for name in ("a", "b", "c")))
    (fuller,) = (node for node in ("n1", "n2") if placed.count(node) == 2)
    (emptier,) = {"n1", "n2"} - {fuller}
    (where,) = subject.launch(replace(group("p", constraints=(together,)), role="publisher"))
    assert where == emptier
    subject.drive("nodes", nodes=[node(fuller), node(emptier, cordoned=True)], pods=[], partial=False)
    assert subject.launch(group("d", constraints=(spread,))) == [fuller]
    with pytest.raises(PlacementError, match=f"hostname CLUSTER refuses 1 .* by agent: {emptier}"):
        subject.launch(replace(group("q", constraints=(together,)), role="publisher"))


# --- what the engine adds ---------------------------------------------------------------------------------------------


OWNER = owner({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hydra-r1-keeper", "uid": "u"}})
FOUND: Json = {"kind": "found", "tag": "owner"}
NO_JOB: Json = {"kind": "refused", "tag": "owner", "status": 404, "reason": "NotFound", "message": "no such Job"}
UNREACHABLE: Json = {"kind": "refused", "tag": "owner", "status": 0, "reason": "", "message": "nobody answers"}


class AnsweringDriver:
    """An engine over a driver that answers each kind of call so; its clock continues while it is waited for."""

    def __init__(self, **answers: Json) -> None:
        self.closed = False
        self.now = 0.0
        self.calls: list[str] = []
        self.answers = answers
        self._answers: list[Json] = []
        self.state = Subject("n1").state
        self.state.family = replace(FAMILY, owner=OWNER)
        # Groups start as they are.
        delivery = SimpleNamespace(is_archived=lambda _: False, prepared=lambda group: group)
        self.engine = KubernetesEngine(
            cast(DriverProcess, self), self.state, cast(ProgramDelivery, delivery), "192.0.2.1", clock=lambda: self.now
        )

    def send(self, calls: Iterable[Json]) -> None:
        for call in calls:
            self.calls.append(call["call"])
            self._answers += [self.answers[call["call"]]] if call["call"] in self.answers else []

    def receive(self, wait_s: float = 0.0) -> list[Json]:
        self.now += wait_s
        self.closed = "stop" in self.calls
        reported, self._answers = self._answers, []
        return reported

    def ended(self) -> str:
        return "the process ended"

    def close(self) -> None:
        self.closed = True

    def nodes(self) -> list[str]:
        return [agent.id for agent in self.engine.agents()]


@pytest.mark.parametrize(
    ("left", "expected"), [(0, ""), (3, "hydra: 3 Pods are still in namespace lab; see hydra ps, and hydra kill r1\n")]
)
def test_the_end_says_what_the_removal_has_left(left: int, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    requests = AnsweringDriver(stop={"kind": "stopped", "left": left})
    requests.engine.launch([group("a")])
    requests.engine.close()
    assert requests.calls == ["create", "stop"]
    assert capsys.readouterr().err == expected


def test_without_its_driver_there_are_no_nodes_to_tell_of() -> None:
    requests = AnsweringDriver()
    assert requests.nodes() == ["n1"]
    requests.calls.append("stop")  # another process has ended it
    for ask in (requests.engine.agents, lambda: requests.engine.launch([group("a")])):
        with pytest.raises(ClusterError, match="the process ended"):
            ask()


# --- whether the run is there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [FOUND, UNREACHABLE])
def test_a_run_that_is_there_or_of_which_nobody_knows_goes_on(answer: Json) -> None:
    requests = AnsweringDriver(look=answer)
    requests.engine.confirm(wait_alone)
    assert requests.calls == ["look"]


def test_a_run_that_has_failed_already_is_not_asked_about() -> None:
    requests = AnsweringDriver(look=FOUND)
    requests.state.standing.fatal = ("the token expired", "renew it")
    with pytest.raises(ClusterError, match="the token expired"):
        requests.engine.confirm(wait_alone)
    assert requests.calls == []


def test_a_run_that_somebody_has_removed_says_so() -> None:
    with pytest.raises(ClusterError, match=r"the run was removed from namespace lab: by hydra kill"):
        AnsweringDriver(look=NO_JOB).engine.confirm(wait_alone)


# --- the nodes as they are before anything is placed -----------------------------------------------------------------


FORBIDDEN: Json = {"kind": "refused", "tag": "nodes", "status": 403, "reason": "Forbidden", "message": "no"}


def told(*nodes: str) -> Json:
    return {"kind": "nodes", "nodes": [node(name) for name in nodes], "pods": [], "partial": False}


def test_a_node_that_came_since_the_row_before_is_an_agent() -> None:
    requests = AnsweringDriver(nodes=told("n1", "n2"))
    assert requests.nodes() == ["n1"], "they were told just now"
    requests.now = 60.0
    assert requests.nodes() == ["n1", "n2"]
    requests.answers["nodes"] = told("n2")
    assert requests.engine.launch([]) == []
    assert requests.nodes() == ["n1", "n2"]
    assert requests.calls.count("nodes") == 1, "at most once a row"


@pytest.mark.parametrize(("answers", "waited_s"), [({}, module.LISTED_WITHIN_S), ({"nodes": FORBIDDEN}, 0.0)])
def test_a_cluster_that_tells_no_nodes_is_waited_for_once(answers: dict[str, Json], waited_s: float) -> None:
    """For a moment, once a row."""
    requests = AnsweringDriver(**answers)
    requests.now = module.REFRESH_S
    assert requests.nodes() == ["n1"]
    assert requests.now == pytest.approx(module.REFRESH_S + waited_s, abs=0.2)
    again = requests.now
    (launch,) = requests.engine.launch([group("a")])
    assert launch.agent.id == "n1", "by what is known"
    assert (requests.now, requests.calls) == (again, ["nodes", "create"])
