"""What the framework decides, without a master: messages and the time go in, calls and events come out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.errors import ClusterError, PlacementError
from hydra.mesos import state as module
from hydra.mesos.state import MesosState, TaskProgram
from hydra.model import Constraint, Demand, Group
from tests.cluster.kubernetes.objects import Json
from tests.cluster.stated import Stated, calls_made


def group(name: str, *, cpus: float = 1.0, constraints: tuple[Constraint, ...] = ()) -> Group:
    return Group(name, "subscriber", 0, 1, ("run",), {"KEY": "k"}, Demand(cpus, 64.0), constraints)


def offer(name: str, agent: str = "A", *, cpus: float = 4.0, kind: str = "big") -> Json:
    amounts = {"cpus": cpus, "mem": 1000.0}
    return {
        "id": {"value": name},
        "agent_id": {"value": agent},
        "hostname": f"host-{agent}",
        "url": {"address": {"ip": "10.0.0.7", "port": 5051}},
        "attributes": [{"name": "kind", "type": "TEXT", "text": {"value": kind}}],
        "resources": [{"name": n, "type": "SCALAR", "scalar": {"value": v}} for n, v in amounts.items()],
    }


class Subject(Stated[MesosState]):
    """A registered framework that has these offers and launches these groups, with its clock."""

    def __init__(self, *things: Json | Group) -> None:
        super().__init__(MesosState(TaskProgram(prefix=("/bin/sh", "hydra-run"), environment={"MORE": "m"})))
        self.drive("registered", framework="F", again=False)
        offers = [each for each in things if isinstance(each, dict)]
        if offers:
            self.drive("offers", offers=offers)
        self.launch(*(each for each in things if isinstance(each, Group)))

    def update(self, task: str, state: str, *, agent: str = "A", uuid: str = "u", **more: str) -> None:
        status = {"task_id": {"value": task}, "state": state, "agent_id": {"value": agent}, "uuid": uuid, **more}
        self.drive("update", status=status)

    def launch(self, *groups: Group) -> None:
        self.state.launch(groups, self.now)


def tasks(calls: list[Json]) -> list[str]:
    return [task for call in calls for task in call.get("tasks", [])]


def test_several_groups_of_one_agent_go_into_one_accept() -> None:
    subject = Subject(offer("O1"), offer("O2", "B"), group("a"), group("b"), group("c"))
    accepts = subject.calls("accept")
    assert sorted(tasks(accepts)) == ["a.1", "b.1", "c.1"]
    assert sorted(len(call["tasks"]) for call in accepts) == [1, 2]
    info = accepts[0]["operations"][0]["launch"]["task_infos"][0]
    assert info["command"]["arguments"] == ["/bin/sh", "hydra-run", "run"]
    variables = {v["name"]: v["value"] for v in info["command"]["environment"]["variables"]}
    assert variables | {"KEY": "k", "MORE": "m", "HYDRA_DATA_HOST": "10.0.0.7", "HYDRA_PORTS": ""} == variables


def test_a_group_that_fits_nowhere_is_refused_with_the_constraint() -> None:
    subject = Subject(offer("O1"), offer("O2", "B", kind="small"))
    subject.calls()
    with pytest.raises(PlacementError, match="0 of 2 agents match kind CLUSTER huge; seen: big x1, small x1"):
        subject.launch(group("a", constraints=(Constraint("kind", "CLUSTER", "huge"),)))
    assert subject.calls() == []


def test_two_offers_of_one_agent_are_accepted_together() -> None:
    subject = Subject(offer("O1", cpus=1.0), offer("O2", cpus=1.0), group("a", cpus=1.5))
    (accept,) = subject.calls("accept")
    assert accept["offers"] == ["O1", "O2"]


def test_a_rescinded_offer_is_not_used_and_the_group_waits_for_the_next() -> None:
    subject = Subject(offer("O1"))
    subject.drive("rescinded", offer="O1")
    subject.launch(group("a"))
    assert [call["call"] for call in subject.calls()] == ["revive"]
    subject.drive("offers", offers=[offer("O2")])
    assert subject.calls("accept")[0]["offers"] == ["O2"]


def test_an_update_is_acknowledged_once_it_was_dealt_with_and_one_of_the_master_is_not() -> None:
    subject = Subject(offer("O1"), group("a"))
    subject.calls()
    subject.update("a.1", "TASK_RUNNING", uuid="u1")
    subject.update("a.1", "TASK_RUNNING", uuid="")
    assert [call["status"]["uuid"] for call in subject.calls("acknowledge")] == ["u1"]
    assert [(e.group, e.state) for e in subject.events()] == [("a", "running")]


def test_an_offer_that_was_used_already_is_tried_again_a_bounded_number_of_times() -> None:
    subject = Subject(offer("O1"), group("a"))
    for attempt in range(1, module.ATTEMPTS + 1):
        assert tasks(subject.calls("accept")) == [f"a.{attempt}"]
        assert subject.events() == []
        subject.update(
            f"a.{attempt}", "TASK_DROPPED", uuid="", reason="REASON_INVALID_OFFERS", message="no longer valid"
        )
        subject.drive("offers", offers=[offer(f"P{attempt}")])
    (event,) = subject.events()
    assert (event.state, event.detail) == ("lost", "TASK_DROPPED: no longer valid (REASON_INVALID_OFFERS)")
    assert subject.calls("accept") == []


def test_a_refused_accept_is_tried_again_and_an_uncertain_one_is_asked_about() -> None:
    subject = Subject(offer("O1"), group("a"))
    subject.calls()
    subject.drive("failed", call="accept", tasks=["a.1"], sure=False, message="timed out")
    subject.pass_time(0)
    assert subject.calls("reconcile") == [{"call": "reconcile", "tasks": ["a.1"]}]
    subject.pass_time(module.ASK_AGAIN_S)
    assert tasks(subject.calls("reconcile")) == ["a.1"]
    subject.update("a.1", "TASK_UNKNOWN", uuid="", reason="REASON_RECONCILIATION")
    subject.drive("offers", offers=[offer("O2")])
    assert tasks(subject.calls("accept")) == ["a.2"]
    subject.drive("failed", call="accept", tasks=["a.2"], sure=True, message="400")
    subject.drive("offers", offers=[offer("O3")])
    assert tasks(subject.calls("accept")) == ["a.3"]


def test_an_agent_that_fails_to_launch_is_the_last_choice() -> None:
    subject = Subject(offer("O1"), offer("O2", "B"), group("a"))
    subject.update("a.1", "TASK_FAILED", reason="REASON_CONTAINER_LAUNCH_FAILED", message="cannot fetch")
    subject.calls()
    placed = [subject.state.launch([group(name)], subject.now)[0].agent.id for name in "bcdef"]
    assert placed == ["B", "B", "B", "B", "A"]


def test_a_failed_group_brings_its_last_words_or_goes_without_them_after_a_while() -> None:
    subject = Subject(offer("O1"), group("a"), group("b"))
    subject.calls()
    for task in ("a.1", "b.1"):
        subject.update(task, "TASK_RUNNING")
        subject.update(task, "TASK_FAILED", message="Command exited with status 4")
    assert [call["task"] for call in subject.calls("sandbox")] == ["a.1", "b.1"]
    subject.drive("sandbox", task="a.1", text="no welcome from the controller")
    assert subject.events()[-1].detail.startswith("no welcome from the controller (TASK_FAILED")
    assert subject.events() == []
    subject.pass_time(module.AUTOPSY_S)
    assert [(e.group, e.state) for e in subject.events()] == [("b", "failed")]


@pytest.mark.parametrize("state", ["TASK_UNREACHABLE", "TASK_GONE", "TASK_GONE_BY_OPERATOR", "TASK_LOST"])
def test_a_task_of_a_lost_agent_is_lost_and_killed_should_it_come_back(state: str) -> None:
    subject = Subject(offer("O1"), group("a"))
    subject.update("a.1", "TASK_RUNNING")
    subject.events()
    subject.update("a.1", state, uuid="", reason="REASON_AGENT_REMOVED", message="health check timed out")
    subject.drive("agent_lost", agent="A")
    assert [(e.group, e.state) for e in subject.events()] == [("a", "lost")]
    assert subject.state.agents() == []
    subject.calls()
    subject.update("a.1", "TASK_RUNNING", uuid="", reason="REASON_SLAVE_REREGISTERED")
    assert subject.calls("kill") == [{"call": "kill", "task": "a.1"}]


def test_groups_that_wait_for_a_lost_agent_are_lost_with_it() -> None:
    subject = Subject(offer("O1"))
    subject.drive("rescinded", offer="O1")
    subject.launch(group("a"))
    subject.drive("agent_lost", agent="A")
    assert [(e.group, e.state) for e in subject.events()] == [("a", "lost")]


def test_after_a_failover_every_task_is_asked_for_until_it_is_confirmed() -> None:
    subject = Subject(offer("O1"), group("a"), group("b"))
    for task in ("a.1", "b.1"):
        subject.update(task, "TASK_RUNNING")
    subject.calls()
    subject.drive("disconnected")
    subject.pass_time(5)
    assert subject.calls() == []
    subject.drive("registered", framework="F", again=True)
    subject.pass_time(0)
    assert [call["tasks"] for call in subject.calls("reconcile")] == [[], ["a.1", "b.1"]]
    subject.update("a.1", "TASK_RUNNING", uuid="", reason="REASON_RECONCILIATION")
    subject.pass_time(module.ASK_AGAIN_S)
    assert [call["tasks"] for call in subject.calls("reconcile")] == [["b.1"]]
    subject.update("b.1", "TASK_UNKNOWN", uuid="", reason="REASON_RECONCILIATION")
    assert [(e.group, e.state) for e in subject.events()] == [("a", "running"), ("b", "running"), ("b", "lost")]


def test_offers_that_nobody_needs_are_declined_and_suppressed_until_the_next_launch() -> None:
    subject = Subject(offer("O1"), offer("O2", "B"))
    subject.pass_time(module.HOLD_S - 1)
    assert subject.calls() == []
    subject.pass_time(1)
    subject.pass_time(1)
    subject.pass_time(module.HOLD_S)
    decline, suppress = subject.calls()
    assert (decline["call"], decline["offers"], decline["refuse_s"]) == ("decline", ["O1", "O2"], module.REFUSE_S)
    assert suppress == {"call": "suppress"}
    subject.launch(group("a"))
    assert subject.calls() == [{"call": "revive"}]


def test_a_group_that_gets_no_offer_is_given_up_and_the_agent_known_to_be_fuller() -> None:
    subject = Subject(offer("O1", cpus=4.0))
    subject.drive("rescinded", offer="O1")
    subject.launch(group("a", cpus=2.0))
    subject.drive("offers", offers=[offer("O2", cpus=1.0)])
    assert subject.calls("accept") == []
    subject.pass_time(module.OFFER_WITHIN_S)
    (event,) = subject.events()
    assert event.state == "lost"
    assert "no offer of host-A had enough for the group within 30 s; the agent offers cpus:1;mem:1000" in event.detail
    with pytest.raises(PlacementError, match="the most that is free on a matching agent is cpus 1"):
        subject.launch(group("b", cpus=2.0))


def test_a_killed_group_is_killed_until_it_is_gone_and_one_that_waits_never_starts() -> None:
    subject = Subject(offer("O1"), group("a"))
    subject.calls()
    subject.state.kill(["a", "nobody"], subject.now)
    assert subject.calls("kill") == [{"call": "kill", "task": "a.1"}]
    subject.pass_time(module.ASK_AGAIN_S)
    assert subject.calls("kill") == [{"call": "kill", "task": "a.1"}]
    subject.update("a.1", "TASK_FINISHED")
    assert [e.state for e in subject.events()] == ["killed"]
    subject.launch(group("b"))
    subject.state.kill(["b"], subject.now)
    assert [(e.group, e.state) for e in subject.events()] == [("b", "killed")]
    subject.drive("offers", offers=[offer("O2")])
    assert subject.calls("accept") == []


def test_a_framework_that_was_removed_loses_its_groups_and_launches_no_more() -> None:
    subject = Subject(offer("O1"), group("a"))
    subject.drive("error", message="Framework has been removed")
    assert [(e.group, e.state, e.detail) for e in subject.events()] == [("a", "lost", "Framework has been removed")]
    with pytest.raises(ClusterError, match="Framework has been removed"):
        subject.launch(group("b"))


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\nb"])
def test_an_id_that_mesos_would_refuse_is_refused_at_once(name: str) -> None:
    with pytest.raises(ClusterError, match="cannot be a task id"):
        Subject(offer("O1")).launch(group(name))


def test_an_id_may_stand_once() -> None:
    with pytest.raises(ClusterError, match="running already"):
        Subject(offer("O1")).launch(group("a"), group("a"))


def test_a_launch_on_twice_as_many_offers_costs_twice_as_much() -> None:
    def cost(many: int) -> int:
        subject = Subject(*(offer(f"O{n}", f"A{n}", cpus=16.0) for n in range(many)))
        groups = [group(f"g{n}", constraints=(Constraint("hostname", "GROUP_BY"),)) for n in range(4 * many)]
        calls = calls_made(lambda: subject.launch(*groups))
        assert len(tasks(subject.calls("accept"))) == 4 * many
        return calls

    assert cost(40) < 2.5 * cost(20)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.integers(1, 40)),
        st.tuples(st.just("offer"), st.sampled_from("AB"), st.integers(1, 8)),
        st.tuples(st.just("update"), st.sampled_from(["TASK_RUNNING", "TASK_FINISHED", "TASK_LOST", "TASK_DROPPED"])),
        st.tuples(st.just("lose"), st.sampled_from("AB")),
        st.tuples(st.just("time"), st.sampled_from([1.0, 12.0, 31.0])),
        st.sampled_from([("rescind",), ("again",)]),
    ),
    max_size=40,
)


@pytest.mark.tier("test")
@given(STEPS)
@settings(max_examples=50)
def test_whatever_happens_offers_are_used_once_and_every_group_is_accounted_for(steps: list[tuple[Any, ...]]) -> None:
    subject = Subject()
    held: dict[str, float] = {}
    alive: dict[str, str] = {}
    launched, ended = set[str](), list[str]()

    def settle() -> None:
        for call in subject.calls():
            if call["call"] == "accept":
                assert held.keys() >= set(call["offers"]), "an offer that is gone"
                cpus = sum(held.pop(name) for name in call["offers"])
                infos = call["operations"][0]["launch"]["task_infos"]
                used = sum(p["scalar"]["value"] for i in infos for p in i["resources"] if p["name"] == "cpus")
                assert used <= cpus + 1e-9, "more than was offered"
                alive.update((i["task_id"]["value"], i["agent_id"]["value"]) for i in infos)
            elif call["call"] == "decline":
                for name in call["offers"]:
                    held.pop(name, None)
        ended.extend(e.group for e in subject.events() if e.state not in ("starting", "running"))

    for number, step in enumerate(steps):
        match step:
            case ("launch", tenths):
                try:
                    subject.launch(group(f"g{number}", cpus=tenths / 10))
                    launched.add(f"g{number}")
                except PlacementError:
                    pass
            case ("offer", agent, cpus):
                held[f"O{number}"] = cpus
                subject.drive("offers", offers=[offer(f"O{number}", agent, cpus=cpus)])
            case ("rescind",) if held:
                name = min(held)
                del held[name]
                subject.drive("rescinded", offer=name)
            case ("update", state) if alive:
                task = min(alive)
                reason = {"reason": "REASON_INVALID_OFFERS"} if state == "TASK_DROPPED" else {}
                subject.update(task, state, agent=alive[task], **reason)
                if state != "TASK_RUNNING":
                    del alive[task]
            case ("lose", agent):
                subject.drive("agent_lost", agent=agent)
                held = {n: c for n, c in held.items() if n in subject.state._offered.offers}
                for task in [t for t, a in alive.items() if a == agent]:
                    del alive[task]
                    subject.update(task, "TASK_UNREACHABLE", agent=agent, uuid="")
            case ("again",):
                held.clear()
                subject.drive("registered", framework="F", again=True)
            case ("time", seconds):
                subject.pass_time(seconds)
        settle()
        assert len(ended) == len(set(ended)), "a group ended twice"
        assert launched == {*ended, *subject.state.running()}, "a group is neither running nor ended"
