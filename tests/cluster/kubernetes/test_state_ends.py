"""How a group on Kubernetes ends, whoever ends it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.cluster.constraints import parse_constraint
from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes import state as module
from hydra.errors import PlacementError
from tests.cluster.kubernetes.stated import FAMILY, Json, Subject, ended, group, running, waiting


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
