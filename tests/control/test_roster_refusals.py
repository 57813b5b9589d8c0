"""The roster: what may not change its state, and is counted."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.control.roster import PeerWelcome, Roster
from hydra.wire.messages import Joined, Ready, encode
from tests.control.golden_messages import FROM_CLIENT
from tests.control.rosters import EPOCH, batch, hello, joined, report, state
from tests.control.strange_messages import STRANGE


@pytest.mark.parametrize(("reason", "identity", "frame", "payload"), STRANGE)
def test_refused_counted_and_nothing_changed(
    roster: Roster, reason: str, identity: bytes, frame: bytes, payload: bytes | None
) -> None:
    before = state(roster)
    assert roster.receive(identity, frame, 0, payload) is None
    assert roster.refused == ({reason: 1} if reason else {})
    assert state(roster) == before


@pytest.mark.parametrize(
    "other", [joined([1], 4, pid=999), joined([2, 3], 4), joined([1, 2, 3], 4, pid=7)], ids=["one", "packed", "all"]
)
def test_another_process_of_the_same_incarnation_is_not_believed(roster: Roster, other: Joined) -> None:
    before = state(roster)
    answer = roster.receive(b"relay", encode(other))
    assert roster.refused == {"duplicate_hello": 1}
    assert answer is not None
    assert not answer.dismissed
    # (In the packed case process 102 repeats that it has 2.)
    assert (answer.welcome or BitMap()) <= BitMap([2])
    assert state(roster) == before


def test_who_has_not_heard_its_welcome_says_hello_again(roster: Roster) -> None:
    before = state(roster)
    again = hello([1, 2, 3], seq=4)
    assert roster.receive(b"relay", encode(again)) == PeerWelcome(BitMap(), BitMap())
    assert not roster.refused
    assert state(roster) == before
    # It has used up its seq.
    assert roster.receive(b"relay", encode(again)) is None
    assert roster.refused == {"replayed": 1}


def test_who_has_joined_is_welcomed_as_often_as_it_is_told(roster: Roster) -> None:
    before = state(roster)
    assert roster.receive(b"relay", encode(joined([1], 4))) == PeerWelcome(BitMap([1]), BitMap())
    assert roster.receive(b"relay", encode(joined([2, 3], 5, pid=102))) == PeerWelcome(BitMap([2, 3]), BitMap())
    assert not roster.refused
    assert state(roster) == before


def test_a_publishers_report_counts_once(roster: Roster) -> None:
    roster.receive(b"pub", encode(report([7], 3)))
    before = state(roster)
    # After another request it reports the same, which is allowed.
    roster.receive(b"pub", encode(report([7], 4)))
    assert not roster.refused
    roster.receive(b"pub", encode(report([7], 5, golden=FROM_CLIENT["report-publisher-kafka"])))
    assert roster.refused == {"repeated_report": 1}
    assert state(roster) == before


def test_a_batch_counts_once(roster: Roster) -> None:
    for seq in (4, 5):
        head, payload = batch([1, 3], seq)
        roster.receive(b"relay", head, 0, payload)
        assert not roster.refused
    before = state(roster)
    for seq, ids, batches in ((6, [1, 3], 8), (7, [1, 2, 3], 7), (8, [3], 7), (9, [1], 7)):
        head, payload = batch(ids, seq, batches=batches)
        roster.receive(b"relay", head, 0, payload)
    assert roster.refused == {"repeated_report": 4}
    assert state(roster) == before


def test_a_refused_message_of_ones_own_uses_up_its_seq(roster: Roster) -> None:
    roster.receive(b"relay", encode(Ready(ids=[1], seq=7, epoch=EPOCH + 1)))
    roster.receive(b"relay", encode(Ready(ids=[1], seq=7, epoch=EPOCH)))
    assert roster.refused == {"out_of_epoch": 1, "replayed": 1}
    assert not roster.answers.ready
