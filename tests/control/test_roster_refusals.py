"""The roster: what may not change its state, and is counted."""

from __future__ import annotations

import msgspec
import pytest
from pyroaring import BitMap

from hydra.control.roster import Roster, Welcomed
from hydra.wire.messages import MAX_MESSAGE_BYTES, Ack, ChildExit, Error, Joined, Progress, Ready, Reports, encode
from hydra.wire.report_batch import MAX_BATCH_BYTES
from hydra.wire.report_batch import encode as encode_columns
from tests.control.golden_messages import FROM_CLIENT
from tests.control.rosters import _SUBSCRIBER, EPOCH, batch, headed, hello, joined, received, report, state

_HEAD, _PAYLOAD = batch([1, 3], 4)
_COLUMNS, _ = encode_columns([(1, received(7))])
STRANGE: list[tuple[str, bytes, bytes, bytes | None]] = [
    ("malformed", b"relay", b"", None),
    ("malformed", b"relay", b"{}", None),
    ("malformed", b"relay", b'{"type":"stop","v":2,"epoch":5,"stop_at_ns":1}', None),
    ("malformed", b"stranger", b"\xff", None),
    ("malformed", b"relay", _HEAD, None),
    ("malformed", b"relay", _HEAD, b""),
    ("malformed", b"relay", _HEAD, _PAYLOAD + bytes(8)),
    ("malformed", b"relay", headed([1], 4, _COLUMNS), _PAYLOAD),
    ("malformed", b"relay", headed([1, 3], 4, _COLUMNS[::-1]), _PAYLOAD),
    ("malformed", b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH)), _PAYLOAD),
    ("malformed", b"pub", *batch([7], 4)),
    ("malformed", b"relay", encode(report([1], 4, golden=_SUBSCRIBER)), None),
    ("malformed", b"pub", encode(report([7], 4, golden=_SUBSCRIBER)), None),
    ("malformed", b"relay", encode(report([1], 4)), None),
    ("malformed", b"relay", encode(Reports(ids=[1], seq=4, epoch=EPOCH, subscriber=[received(1)])), None),
    ("oversized", b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH)).ljust(MAX_MESSAGE_BYTES + 1), None),
    ("oversized", b"relay", _HEAD, bytes(MAX_BATCH_BYTES + 1)),
    ("unannounced", b"stranger", encode(Ready(ids=[1], seq=4, epoch=EPOCH)), None),
    ("unannounced", b"stranger", encode(joined([1], incarnation=1)), None),
    ("unannounced", b"stranger", *batch([1], 4)),
    ("replayed", b"relay", encode(Ready(ids=[1], seq=3, epoch=EPOCH)), None),
    ("replayed", b"relay", *batch([1], 3)),
    ("replayed", b"relay", encode(joined([1], 3, incarnation=1)), None),
    ("foreign_id", b"relay", encode(Ready(ids=[9], seq=4, epoch=EPOCH)), None),
    ("foreign_id", b"relay", encode(Ready(ids=[1, 9], seq=4, epoch=EPOCH)), None),
    ("foreign_id", b"relay", encode(Ready(ids=[], seq=4, epoch=EPOCH)), None),
    ("foreign_id", b"relay", encode(joined([4], 4)), None),
    ("foreign_id", b"relay", *batch([3, 9], 4)),
    ("foreign_id", b"pub", encode(ChildExit(incarnation=0, ids=[1], seq=4, pid=101, status=-9, replaced=True)), None),
    ("out_of_epoch", b"relay", encode(Ack(ids=[1], seq=4, epoch=EPOCH + 1, command="configure")), None),
    ("out_of_epoch", b"pub", encode(report([7], 4, EPOCH + 1)), None),
    ("out_of_epoch", b"relay", *batch([1], 4, EPOCH + 1)),
    ("unexpected_hello", b"new", encode(hello([4])), None),
    ("unexpected_hello", b"new", encode(hello([9])), None),
    ("unexpected_hello", b"new", encode(hello([1, 9])), None),
    ("unexpected_hello", b"new", encode(hello([1], group="h")), None),
    ("unexpected_hello", b"new", encode(msgspec.structs.replace(hello([1]), ids=[])), None),
    ("replayed", b"relay", encode(hello([1, 2, 3])), None),
    ("repeated_hello", b"relay", encode(hello([1, 2, 3], seq=4, pid=51)), None),
    ("repeated_hello", b"relay", encode(hello([1, 2], seq=4)), None),
    ("duplicate_hello", b"new", encode(hello([1, 2, 3])), None),
    ("duplicate_hello", b"new", encode(hello([1], incarnation=5)), None),
    # What comes late is no offence.
    ("", b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH - 1)), None),
    ("", b"relay", encode(Ack(ids=[1], seq=4, epoch=0, command="configure")), None),
    ("", b"relay", encode(Progress(ids=[1], seq=4, epoch=0, messages=1, time_ns=1)), None),
    ("", b"pub", encode(report([7], 4, EPOCH - 1)), None),
    ("", b"relay", encode(Error(ids=[1], seq=4, epoch=EPOCH - 1, message="late")), None),
    ("", b"relay", *batch([1], 4, EPOCH - 1)),
]


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
    # (In the packed case process 102 says once more that it has 2.)
    assert (answer.welcome or BitMap()) <= BitMap([2])
    assert state(roster) == before


def test_who_has_not_heard_its_welcome_says_hello_again(roster: Roster) -> None:
    before = state(roster)
    again = hello([1, 2, 3], seq=4)
    assert roster.receive(b"relay", encode(again)) == Welcomed(BitMap(), BitMap())
    assert not roster.refused
    assert state(roster) == before
    # It has used up its seq.
    assert roster.receive(b"relay", encode(again)) is None
    assert roster.refused == {"replayed": 1}


def test_who_has_joined_is_welcomed_as_often_as_it_is_told(roster: Roster) -> None:
    before = state(roster)
    assert roster.receive(b"relay", encode(joined([1], 4))) == Welcomed(BitMap([1]), BitMap())
    assert roster.receive(b"relay", encode(joined([2, 3], 5, pid=102))) == Welcomed(BitMap([2, 3]), BitMap())
    assert not roster.refused
    assert state(roster) == before


def test_a_publishers_report_counts_once(roster: Roster) -> None:
    roster.receive(b"pub", encode(report([7], 3)))
    before = state(roster)
    # Told to report again it says the same, which is no offence.
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
