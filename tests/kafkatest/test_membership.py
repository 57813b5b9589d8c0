"""What a member of a group knows: where it starts, what it commits, and what is left to the others."""

from __future__ import annotations

import msgspec
import pytest

from hydra.kafkatest import group_membership
from hydra.kafkatest.group_membership import Membership
from hydra.model import SharedSettings
from hydra.wire.messages import Configure, PublisherEndpoint

STEP = Configure(
    epoch=7,
    number=1,
    settings=SharedSettings(burst=1),
    publishers=[PublisherEndpoint(p, "") for p in (1, 2)],
    probe=True,
)
BEGIN = {0: 100, 1: 50, 2: 10}


class Clock:
    """Seconds that pass only when a test advances them."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return round(self.now_s * 1e9)

    def time_ns(self) -> int:
        return 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    it = Clock()
    monkeypatch.setattr(group_membership, "time", it)
    return it


@pytest.fixture
def member(clock: Clock) -> Membership:
    membership = Membership()
    membership.step(STEP, BEGIN)
    return membership


@pytest.mark.parametrize(
    ("committed", "starts"),
    [
        ({}, {0: 100, 1: 50}),
        ({0: 90, 1: 50}, {0: 100, 1: 50}),  # of an earlier step
        ({0: 130}, {0: 130, 1: 50}),  # of this one
    ],
)
def test_a_partition_is_read_from_the_later_of_both(
    member: Membership, committed: dict[int, int], starts: dict[int, int]
) -> None:
    assert member.given([0, 1], committed) == starts
    assert member.assigned


def test_what_has_been_read_is_committed_every_few_seconds_and_once(member: Membership, clock: Clock) -> None:
    member.given([0, 1], {})
    member.positions[0] = 120
    assert member.uncommitted() == {}
    clock.now_s += group_membership.COMMIT_EVERY_S
    assert member.uncommitted() == {0: 120}
    assert member.uncommitted(now=True) == {}
    member.positions[1] = 51
    assert member.uncommitted(now=True) == {1: 51}
    member.refused()
    assert member.uncommitted(now=True) == {}  # not at once
    clock.now_s += 1
    assert member.uncommitted(now=True) == {0: 120, 1: 51}


def test_a_member_waits_for_its_own_and_then_for_the_others(member: Membership, clock: Clock) -> None:
    ends = {0: 110, 1: 60, 2: 10}
    reported: dict[int, int] = {}
    requests: list[list[int]] = []

    def committed(partitions: list[int]) -> dict[int, int]:
        requests.append(partitions)
        return reported

    member.given([0], {})
    assert member.undrained(ends, committed) == 10
    member.positions[0] = 110
    assert not requests
    assert member.undrained(ends, committed) == 10  # no member has partition 1; 2 got nothing in this step
    reported[1] = 57
    assert member.undrained(ends, committed) == 10  # not asked again so soon
    clock.now_s += 1
    assert member.undrained(ends, committed) == 3
    # Its owner died, and this one takes over.
    member.lost()
    member.given([0, 1], {0: 110, 1: 57})
    assert member.undrained(ends, committed) == 3
    member.positions[1] = 60
    assert member.undrained(ends, committed) == 0
    assert requests == [[1], [1]]


def test_rebalances_are_told_of_each_step(member: Membership, clock: Clock) -> None:
    clock.now_s += 2
    member.given([0], {})
    member.lost()
    clock.now_s += 0.5
    member.given([1], {})
    member.step(STEP, BEGIN)  # its start is repeated
    assert member.report() == {"rebalance_ms": 2500.0, "rebalances": 2}
    assert member.step(STEP, {**BEGIN, 1: 70})
    assert member.positions == {1: 70}
    assert not member.step(STEP, {**BEGIN, 1: 70})
    assert member.report() == {"rebalance_ms": 0.0, "rebalances": 0}


def test_the_time_away_is_no_rebalance(member: Membership, clock: Clock) -> None:
    """Beside a stop watch: 0.5 s of joining, 8 s away, and 1.5 s of joining again."""
    clock.now_s += 0.5
    member.given([0, 1], {})
    clock.now_s += 3
    member.lost()  # the member leaves, and gives its partitions back
    clock.now_s += 8
    member.rejoins()
    assert (member.assigned, member.positions) == (False, {})
    clock.now_s += 1.5
    member.given([0, 1], {0: 110})
    assert member.report() == {"rebalance_ms": 2000.0, "rebalances": 2}


def test_a_member_that_could_not_leave_counts_its_joining_too(member: Membership, clock: Clock) -> None:
    member.given([0], {})
    clock.now_s += 8  # its coordinator was dead, so it still seems to have its partitions
    member.rejoins()
    clock.now_s += 1.5
    member.given([0], {})
    assert member.report() == {"rebalance_ms": 1500.0, "rebalances": 2}


@pytest.mark.parametrize(("probe", "given", "probes"), [(True, [], 2), (True, [0], 0), (False, [], 0)])
def test_only_a_member_without_partitions_takes_probes_for_read(
    member: Membership, probe: bool, given: list[int], probes: int
) -> None:
    member.step(msgspec.structs.replace(STEP, probe=probe), BEGIN)
    assert member.probes() == []
    member.given(given, {})
    assert len(member.probes()) == probes
    assert member.probes() == []
