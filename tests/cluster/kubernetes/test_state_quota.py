"""A quota that Pods of ours still hold while they end: their successors wait for them, within their time to start."""

from __future__ import annotations

import pytest

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes import waiting as patience
from hydra.cluster.kubernetes.ending import BOOKED_S
from tests.cluster.kubernetes.stated import QUOTA, Json, Subject, ended, group, running


def test_a_quota_that_pods_of_ours_still_hold_is_waited_for_until_they_have_gone() -> None:
    it = Subject()
    it.launch(group("a"), group("b"))
    it.runs("a")
    it.runs("b")
    it.state.kill(["a", "b"], it.now)
    it.pod("a", "n1", deleted=True, **ended(143))  # it is there still
    it.launch(group("c"))
    it.events()
    (wanted,) = it.calls("create")[-1]["then"]
    c = names.object_name("r1", "c")
    it.refuse(c, 403, QUOTA, "Forbidden")
    it.pass_time(5)
    assert it.calls("create") == []
    it.pod("a", "n1", gone=True, **ended(143))
    assert it.calls("create") == [], "the quota does not know it yet"
    it.pass_time(BOOKED_S)
    assert it.calls("create") == [{"call": "create", "first": [], "then": [wanted]}]
    it.refuse(c, 403, QUOTA, "Forbidden")
    it.pod("b", "n1", gone=True, **running())
    it.pass_time(BOOKED_S)
    assert it.calls("create") == [{"call": "create", "first": [], "then": [wanted]}]
    assert it.told() == [("b", "killed", False)]
    it.say("made", tag=c, name=c, uid="u")
    it.runs("c")
    assert it.told() == [("c", "running", False)]


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
    it = Subject()
    it.launch(group("a"))
    it.runs("a")
    it.state.kill(["a"], it.now)
    it.launch(group("c"))
    it.events()
    it.calls()
    began, c = it.now, names.object_name("r1", "c")
    it.refuse(c, 403, message, "Forbidden")
    if end in ("all have gone", "unseen"):
        if end == "unseen":
            it.say("pods", names=[])
        else:
            it.pod("a", "n1", gone=True, **running())
        it.pass_time(BOOKED_S)
        it.refuse(c, 403, message, "Forbidden")
    elif end == "killed":
        it.state.kill(["c"], it.now)
        it.pass_time(0)
    elif end == "too late":
        it.pass_time(patience.NODE_WITHIN_S - 0.1)
        assert it.events() == []
        it.pass_time(0.1)
    told = [event for event in it.events() if event.group == "c"]
    assert [(event.state, event.refused) for event in told] == [
        ("killed", False) if end == "killed" else ("failed", True)
    ]
    assert "quota: few" in told[0].detail
    assert it.now - began == pytest.approx(waited_s)


@pytest.mark.parametrize("apart_s", [0.03, 0.95])
def test_of_two_pods_that_go_one_after_the_other_the_room_of_each_is_tried(apart_s: float) -> None:
    it, c, wanted = _full()
    it.pod("a", "n1", gone=True, **running())
    it.pass_time(apart_s)
    it.pod("b", "n1", gone=True, **running())
    it.pass_time(BOOKED_S - apart_s)
    assert it.calls("create") == [{"call": "create", "first": [], "then": [wanted]}]
    it.refuse(c, 403, QUOTA, "Forbidden")  # it counts the second one still
    it.pass_time(BOOKED_S)
    assert it.calls("create") == [{"call": "create", "first": [], "then": [wanted]}]
    assert ("c", "failed", True) not in it.told()


def test_pods_that_go_one_by_one_have_what_waits_tried_once_a_second() -> None:
    it, c, _ = _full()
    tried: list[float] = []
    for _ in range(40):
        it.pod("others", "n1", gone=True, **running())
        it.pass_time(0.125)
        if it.calls("create"):
            tried.append(it.now)
            it.refuse(c, 403, QUOTA, "Forbidden")
    assert tried == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_refusal_that_comes_late_may_be_of_the_time_before_the_pods_went() -> None:
    it, c, wanted = _full(answered=False)
    for name in ("a", "b"):
        it.pod(name, "n1", gone=True, **running())
    it.pass_time(3 * BOOKED_S)
    it.events()
    it.refuse(c, 403, QUOTA, "Forbidden")
    assert it.calls("create") == [{"call": "create", "first": [], "then": [wanted]}]
    it.pass_time(3 * BOOKED_S)
    it.refuse(c, 403, QUOTA, "Forbidden")  # it was asked long after they had gone
    assert it.told() == [("c", "failed", True)]


def _full(*, answered: bool = True) -> tuple[Subject, str, Json]:
    """Groups a and b are ending; the Pod of c is asked for, and has been refused by a quota if that is answered."""
    it = Subject()
    it.launch(group("a"), group("b"))
    it.runs("a")
    it.runs("b")
    it.state.kill(["a", "b"], it.now)
    it.launch(group("c"))
    it.events()
    (wanted,) = it.calls("create")[-1]["then"]
    c = names.object_name("r1", "c")
    if answered:
        it.refuse(c, 403, QUOTA, "Forbidden")
    return it, c, wanted
