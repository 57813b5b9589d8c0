"""What becomes of a Pod that does not start or is refused, and how a group ends: once, and no node is overdrawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.engine.placement import parse_constraint
from hydra.errors import ClusterError, PlacementError
from hydra.kubernetes import object_names
from hydra.kubernetes import pod_status as patience
from hydra.kubernetes import state as module
from hydra.kubernetes.node_inventory import BOOKED_S
from tests.cluster.kubernetes.stated import FAMILY, QUOTA, Json, Subject, ended, group, running, unschedulable, waiting


@pytest.mark.parametrize(
    ("where", "status", "within_s", "expected"),
    [
        ("", unschedulable(), patience.NODE_WITHIN_S, "2 Insufficient cpu"),
        ("n1", waiting("ErrImagePull", "connection refused"), patience.IMAGE_WITHIN_S, "connection refused"),
        ("n1", waiting("ErrImageNeverPull"), patience.HOPELESS_S, 'pull_policy is "Never"'),
        ("n1", waiting("CreateContainerConfigError", "no such"), patience.HOPELESS_S, "no such"),
    ],
)
def test_a_pod_that_does_not_start_is_given_up_in_time(
    where: str, status: Json, within_s: float, expected: str
) -> None:
    it = Subject().with_groups("a")
    it.pod("a", where, **status)
    it.pass_time(within_s - 0.5)
    it.pod("a", where, **status)
    assert it.events() == []
    it.pass_time(0.5)
    (event,) = it.events()
    assert (event.state, event.refused) == ("failed", True)
    assert expected in event.detail
    assert it.calls("delete") == [{"call": "delete", "groups": ["a"], "grace": module.GRACE_S}]


def test_each_reason_to_wait_has_its_own_time() -> None:
    it = Subject().with_groups("a")
    it.pod("a", "", **unschedulable())
    it.pass_time(patience.NODE_WITHIN_S - 1)
    it.pod("a", "n1", **waiting("ErrImagePull", "connection refused"))
    it.pass_time(patience.IMAGE_WITHIN_S - 1)
    it.pod("a", "n1", **waiting("ContainerCreating"))
    it.pass_time(patience.START_WITHIN_S - 1)
    assert it.events() == []
    it.runs("a")
    it.pass_time(1000)
    assert it.group_states() == [("a", "running", False)]


@pytest.mark.parametrize("answers", [True, False])
def test_a_start_that_takes_too_long_is_asked_about(answers: bool) -> None:
    it = Subject().with_groups("a")
    it.pod("a", "n1", **waiting("ContainerCreating"))
    it.calls()
    it.pass_time(patience.START_WITHIN_S)
    it.pass_time(0)
    assert it.calls() == [{"call": "why", "pod": object_names.object_name("r1", "a"), "uid": ""}]
    warning = {"type": "Warning", "reason": "FailedMount", "message": "no such volume"}
    if answers:
        it.drive("why", pod=object_names.object_name("r1", "a"), events=[warning])
    it.pass_time(module.WHY_WITHIN_S)
    (event,) = it.events()
    assert event.detail.startswith("the group did not start within 120 s")
    assert event.detail.endswith("FailedMount: no such volume") == answers
    assert event.refused


def test_a_hopeless_pod_that_starts_after_all_is_kept() -> None:
    it = Subject().with_groups("a")
    it.pod("a", "n1", **waiting("CreateContainerConfigError", 'secret "s" not found'))
    it.pass_time(patience.HOPELESS_S - 0.5)
    it.pod("a", "n1", **waiting("ContainerCreating"))
    it.pass_time(patience.HOPELESS_S)
    assert it.events() == []


# --- what the API server refuses -------------------------------------------------------------------------------------


def test_a_refused_pod_is_a_refused_group_with_the_reason_and_a_remedy() -> None:
    it = Subject().with_groups("a", "b")
    it.refuse(object_names.object_name("r1", "a"), 403, QUOTA, "Forbidden")
    (event,) = it.events()
    assert (event.group, event.state, event.refused) == ("a", "failed", True)
    assert "exceeded quota: few" in event.detail
    assert "max_group" in event.detail
    assert it.calls() == [], "there is nothing to delete"


def test_a_refused_secret_refuses_those_who_need_it_and_is_made_anew_the_next_time() -> None:
    subject = Subject()
    subject.launch(group("a"), group("b"), group("other", key="other"))
    (call,) = subject.calls()
    tag = call["then"][0]["body"]["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"]
    subject.refuse(tag, 403, 'secrets "s" is forbidden: User "u" cannot create resource "secrets"', "Forbidden")
    assert subject.group_states() == [("a", "failed", True), ("b", "failed", True)]
    subject.launch(group("c"))
    (call,) = subject.calls()
    assert [wanted["tag"] for wanted in call["first"]] == [tag]


@pytest.mark.parametrize(("answered", "reported"), [(True, ("a", "failed", True)), (False, ("a", "lost", False))])
def test_a_pod_that_may_be_there_is_deleted(answered: bool, reported: tuple[str, str, bool]) -> None:
    it = Subject().with_groups("a")
    if answered:
        it.refuse(object_names.object_name("r1", "a"), 0, "timed out")
    else:
        it.pass_time(module.CREATED_WITHIN_S)
    assert it.group_states() == [reported]
    assert [call["groups"] for call in it.calls("delete")] == [["a"]]


# --- a quota that the run's ending Pods still hold -------------------------------------------------------------


def full(*, answered: bool = True) -> tuple[Subject, str, Json]:
    """Groups a and b are ending; the Pod of c is asked for, and has been refused by a quota if that is answered."""
    it = Subject().with_groups("a", "b", on="n1")
    it.state.kill(["a", "b"], it.now)
    it.launch(group("c"))
    it.events()
    (wanted,) = it.calls("create")[-1]["then"]
    c = object_names.object_name("r1", "c")
    if answered:
        it.refuse(c, 403, QUOTA, "Forbidden")
    return it, c, {"call": "create", "first": [], "then": [wanted]}


def test_a_quota_that_pods_of_ours_still_hold_is_waited_for_until_they_have_gone() -> None:
    it, c, again = full()
    it.pod("a", "n1", deleted=True, **ended(143))  # it is there still
    it.events()
    it.pass_time(5)
    assert it.calls("create") == []
    it.pod("a", "n1", removed=True, **ended(143))
    assert it.calls("create") == [], "the quota does not know it yet"
    it.pass_time(BOOKED_S)
    assert it.calls("create") == [again]
    it.refuse(c, 403, QUOTA, "Forbidden")
    it.pod("b", "n1", removed=True, **running())
    it.pass_time(BOOKED_S)
    assert it.calls("create") == [again]
    assert it.group_states() == [("b", "killed", False)]
    it.drive("made", tag=c, name=c, uid="u")
    it.runs("c")
    assert it.group_states() == [("c", "running", False)]


@pytest.mark.parametrize(
    ("message", "end", "waited_s"),
    [
        (QUOTA, "all have gone", BOOKED_S),
        (QUOTA, "unseen", BOOKED_S),
        (QUOTA, "too late", patience.NODE_WITHIN_S),
        (QUOTA, "killed", 0.0),
        ('pods "p" is forbidden: failed quota: few: must specify limits.cpu', "at once", 0.0),
    ],
)
def test_a_quota_that_has_no_room_in_time_refuses_as_ever(message: str, end: str, waited_s: float) -> None:
    it = Subject().with_groups("a", on="n1")
    it.state.kill(["a"], it.now)
    it.with_groups("c")
    began, c = it.now, object_names.object_name("r1", "c")
    it.refuse(c, 403, message, "Forbidden")
    if end in ("all have gone", "unseen"):
        if end == "unseen":
            it.drive("pods", names=[])
        else:
            it.pod("a", "n1", removed=True, **running())
        it.pass_time(BOOKED_S)
        it.refuse(c, 403, message, "Forbidden")
    elif end == "killed":
        it.state.kill(["c"], it.now)
        it.pass_time(0)
    elif end == "too late":
        it.pass_time(patience.NODE_WITHIN_S - 0.1)
        assert it.events() == []
        it.pass_time(0.1)
    messages = [event for event in it.events() if event.group == "c"]
    outcome = ("killed", False) if end == "killed" else ("failed", True)
    assert [(event.state, event.refused) for event in messages] == [outcome]
    assert "quota: few" in messages[0].detail
    assert it.now - began == pytest.approx(waited_s)


@pytest.mark.parametrize("apart_s", [0.03, 0.95])
def test_of_two_pods_that_go_one_after_the_other_the_room_of_each_is_tried(apart_s: float) -> None:
    it, c, again = full()
    it.pod("a", "n1", removed=True, **running())
    it.pass_time(apart_s)
    it.pod("b", "n1", removed=True, **running())
    it.pass_time(BOOKED_S - apart_s)
    assert it.calls("create") == [again]
    it.refuse(c, 403, QUOTA, "Forbidden")  # it counts the second one still
    it.pass_time(BOOKED_S)
    assert it.calls("create") == [again]
    assert ("c", "failed", True) not in it.group_states()


def test_pods_that_go_one_by_one_have_what_waits_tried_once_a_second() -> None:
    it, c, _ = full()
    tried: list[float] = []
    for _ in range(40):
        it.pod("others", "n1", removed=True, **running())
        it.pass_time(0.125)
        if it.calls("create"):
            tried.append(it.now)
            it.refuse(c, 403, QUOTA, "Forbidden")
    assert tried == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_refusal_that_comes_late_may_be_of_the_time_before_the_pods_went() -> None:
    it, c, again = full(answered=False)
    for name in ("a", "b"):
        it.pod(name, "n1", removed=True, **running())
    it.pass_time(3 * BOOKED_S)
    it.events()
    it.refuse(c, 403, QUOTA, "Forbidden")
    assert it.calls("create") == [again]
    it.pass_time(3 * BOOKED_S)
    it.refuse(c, 403, QUOTA, "Forbidden")  # the request was sent long after their end
    assert it.group_states() == [("c", "failed", True)]


# --- how a group ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "state", "expected", "grace"),
    [
        (ended(0), "finished", "exit status 0", module.GRACE_S),
        (ended(4, message="no welcome"), "failed", "exit status 4: no welcome", module.GRACE_S),
        (ended(78, message="hydra: no archive"), "refused", "hydra: no archive", module.GRACE_S),
        (ended(137, "OOMKilled"), "failed", "memory", module.GRACE_S),
        ({"phase": "Failed", "reason": "Evicted", "message": "few disks"}, "lost", "from node n1: few disks", 0),
    ],
)
def test_the_end_of_a_pod_is_told_once_and_the_pod_removed(status: Json, state: str, expected: str, grace: int) -> None:
    it = Subject().with_groups("a", on="n1")
    it.pod("a", "n1", **status)
    it.pod("a", "n1", **status)
    it.pod("a", "n1", removed=True, **status)
    (event,) = it.events()
    assert (event.state, event.agent) == (state.replace("refused", "failed"), "n1")
    assert event.refused == (state == "refused"), "whether it is asked for again"
    assert expected in event.detail
    assert it.calls("delete") == [{"call": "delete", "groups": ["a"], "grace": grace}]


def test_a_pod_that_somebody_deletes_is_lost_and_its_place_is_free_at_once() -> None:
    it = Subject("n1").with_groups("a", on="n1", cpus=4.0)
    it.pod("a", "n1", deleted=True, **running())
    assert it.events() == [], "it may have gone with the whole run"
    it.pass_time(module.LOOK_WITHIN_S)
    (event,) = it.events()
    assert (event.state, event.detail) == ("lost", "the group's Pod was deleted by another user or process")
    assert it.launch(group("b", cpus=4.0)) == ["n1"]


@pytest.mark.parametrize("present", [True, False])
def test_a_pod_that_somebody_deletes_is_told_of_when_it_is_known_whether_the_run_is_there(present: bool) -> None:
    subject = Subject("n1")
    subject.state.family = replace(FAMILY, owner={"name": "hydra-r1-keeper"})
    subject.launch(group("a"))
    subject.runs("a")
    subject.events()
    subject.pod("a", "n1", deleted=True, **running())
    (call,) = subject.calls("look")
    assert subject.events() == []
    if present:
        subject.drive("found", tag=call["tag"])
    else:
        subject.refuse(call["tag"], 404, "not found")
    assert [(event.group, event.state) for event in subject.events()] == [("a", "lost")]
    assert bool(subject.state.fatal[0]) is not present


def test_a_pod_that_was_asked_to_end_is_told_of_when_it_has_ended() -> None:
    it = Subject("n1").with_groups("a", on="n1", cpus=4.0)
    it.state.kill(["a"], it.now)
    it.pod("a", "n1", deleted=True, **running())
    assert it.events() == []
    with pytest.raises(PlacementError):
        it.launch(group("b", cpus=4.0))
    it.pod("a", "n1", deleted=True, **ended(143))
    assert [(event.group, event.state) for event in it.events()] == [("a", "killed")]


def test_the_pod_of_a_group_that_was_given_up_is_ended_when_it_comes_after_all() -> None:
    subject = Subject("n1")
    subject.pod("late", "n1", **running())
    assert [(call["groups"], call["grace"]) for call in subject.calls("delete")] == [(["late"], 0)]
    subject.pod("late", "n1", deleted=True, **running())
    assert subject.calls("delete") == []


def test_groups_on_a_lost_node_keep_nobody_from_being_spread() -> None:
    subject = Subject("n1", "n2")
    spread = (parse_constraint(["hostname", "GROUP_BY"]),)
    placed = subject.launch(*(replace(group(name), constraints=spread) for name in ("a", "b", "c")))
    (fuller,) = (node for node in ("n1", "n2") if placed.count(node) == 2)
    subject.list_nodes(fuller)  # the other one does not answer any more
    assert subject.launch(replace(group("d"), constraints=spread)) == [fuller]


def test_a_pod_that_was_made_is_not_given_up_as_unanswered() -> None:
    it = Subject("n1").with_groups("a")
    it.drive("made", tag=object_names.object_name("r1", "a"), name="", uid="")
    it.pass_time(module.CREATED_WITHIN_S + 1)
    assert it.events() == []


def test_pods_that_went_while_nobody_watched_are_lost_and_those_not_made_yet_are_not() -> None:
    subject = Subject()
    subject.launch(group("a"), group("b"), group("new"))
    subject.runs("a")
    subject.runs("b")
    subject.events()
    subject.drive("pods", names=[object_names.object_name("r1", "b")])
    assert subject.group_states() == [("a", "lost", False)]


def test_a_killed_group_is_told_as_killed_however_it_ends_and_asked_again_until_it_does() -> None:
    it = Subject().with_groups("a", "b", on="n1")
    it.state.kill(["a", "b", "nobody"], it.now)
    it.state.kill(["a"], it.now)
    assert it.calls() == [{"call": "delete", "groups": ["a", "b"], "grace": module.GRACE_S}]
    it.pod("a", "n1", **ended(143))
    assert it.group_states() == [("a", "killed", False)]
    it.pass_time(module.KILL_AGAIN_S - 1)
    assert it.calls() == []
    it.pass_time(1)
    assert it.calls() == [{"call": "delete", "groups": ["b"], "grace": module.GRACE_S}]
    it.pod("b", "n1", removed=True, **running())
    assert it.group_states() == [("b", "killed", False)]


def test_a_group_that_is_killed_before_its_pod_is_there_is_deleted_once_it_is() -> None:
    it = Subject().with_groups("a")
    it.state.kill(["a"], it.now)
    it.calls()
    it.pod("a", "n1", **waiting("ContainerCreating"))
    assert it.group_states() == []
    it.pass_time(module.KILL_AGAIN_S)
    assert [call["groups"] for call in it.calls("delete")] == [["a"]]
    it.pod("a", "n1", removed=True, **waiting("ContainerCreating"))
    assert it.group_states() == [("a", "killed", False)]


# --- whatever happens ------------------------------------------------------------------------------------------------

Fate = Literal["runs", "ends", "dies", "goes", "deleted", "refused", "stuck"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.integers(1, 40)),
        st.tuples(st.just("fate"), st.sampled_from(get_args(Fate)), st.sampled_from(["n1", "n2"])),
        st.sampled_from([("kill",), ("relist",)]),
        st.tuples(st.just("time"), st.sampled_from([1.0, 12.0, 31.0, 130.0])),
    ),
    max_size=40,
)


@pytest.mark.tier("test")
@given(STEPS)
@settings(max_examples=50)
def test_whatever_happens_no_node_is_overdrawn_and_every_group_ends_once(steps: list[tuple[Any, ...]]) -> None:
    subject = Subject()
    alive: list[str] = []
    present: set[str] = set()
    launched, removed = set[str](), list[str]()
    for number, step in enumerate(steps):
        match step:
            case ("launch", tenths):
                free = {agent.id: agent.resources.cpus for agent in subject.state.agents()}
                name = f"g{number}"
                try:
                    (where,) = subject.launch(group(name, cpus=tenths / 10))
                except PlacementError:
                    assert max(free.values()) < tenths / 10 + 1e-9
                else:
                    assert tenths / 10 <= free[where] + 1e-9
                    launched.add(name)
                    alive.append(name)
            case ("fate", outcome, where) if alive:
                name = alive[0]
                _meets(subject, name, outcome, where, present)
            case ("kill",) if alive:
                subject.state.kill([alive[-1]], subject.now)
            case ("relist",):
                subject.drive("pods", names=sorted(object_names.object_name("r1", name) for name in present))
            case ("time", seconds):
                subject.pass_time(seconds)
        for event in subject.events():
            if event.state not in ("starting", "running"):
                removed.append(event.group)
                alive.remove(event.group)
                present.discard(event.group)
        assert len(removed) == len(set(removed)), "a group ended twice"
        assert launched == {*removed, *alive}
        with pytest.raises((ClusterError, PlacementError)):
            subject.launch(group("big", cpus=100.0))
        for name in alive:
            with pytest.raises(ClusterError, match="running already"):
                subject.launch(group(name))
    subject.state.kill(alive, subject.now)
    for name in alive:
        subject.pod(name, "n1", removed=True, **running())
    assert {event.group for event in subject.events()} == set(alive)


def _meets(it: Subject, name: str, outcome: Fate, where: str, present: set[str]) -> None:
    match outcome:
        case "runs":
            present.add(name)
            it.runs(name, where)
        case "ends":
            it.pod(name, where, **ended(0))
        case "dies":
            it.pod(name, where, **ended(137, "OOMKilled"))
        case "goes":
            it.pod(name, where, removed=True, **running())
        case "deleted":
            it.pod(name, where, deleted=True, **running())
        case "refused":
            it.refuse(object_names.object_name("r1", name), 403, QUOTA)
        case "stuck":
            present.add(name)
            it.pod(name, "", **unschedulable())
