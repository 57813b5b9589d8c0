"""What becomes of a Pod that does not start, or that the API server refuses."""

from __future__ import annotations

import pytest

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes import state as module
from hydra.cluster.kubernetes import waiting as patience
from tests.cluster.kubernetes.stated import QUOTA, Json, Subject, group, unschedulable, waiting


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
