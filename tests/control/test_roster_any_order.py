"""The roster gets any messages in any order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from hydra.control.id_bitmaps import bitmap
from hydra.control.roster import Roster
from hydra.wire.messages import Ack, encode
from tests.control.rosters import EPOCH, batch, child_exit, hello, joined, report
from tests.control.strange_messages import STRANGE

_PeerMessage = tuple[bytes, bytes | None]
_IDS = st.lists(st.integers(1, 4), min_size=1, max_size=3)
_RISING = st.sets(st.integers(1, 4), min_size=1).map(sorted)
_SEQ, _EPOCHS, _FEW = st.integers(1, 30), st.integers(4, 6), st.integers(0, 3)
_ROLES = st.sampled_from(["publisher", "subscriber", "server"])
_COMMANDS = st.sampled_from(["configure", "start", "ping", "?"])
_FRAMES: st.SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=20),
    st.builds(child_exit, _IDS, _SEQ, _FEW),
    st.one_of(
        st.builds(Ack, ids=_IDS | st.just([]), seq=_SEQ, epoch=st.integers(0, 6), command=_COMMANDS),
        st.builds(lambda ids, seq, epoch: report(ids[:1], seq, epoch), _IDS, _SEQ, _EPOCHS),
        st.builds(lambda ids, role, seq: hello(ids, role=role, seq=seq), _IDS, _ROLES, st.integers(1, 5)),
        st.builds(joined, _RISING, _SEQ, _FEW, _FEW),
    ).map(encode),
)
_MESSAGES: st.SearchStrategy[_PeerMessage] = st.one_of(
    st.sampled_from([(frame, payload) for _, _, frame, payload in STRANGE if len(frame + (payload or b"")) < 10_000]),
    _FRAMES.map(lambda frame: (frame, None)),
    st.builds(batch, _RISING, _SEQ, _EPOCHS, batches=st.integers(1, 2)),
)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), _MESSAGES), max_size=40))
def test_any_messages_in_any_order(script: list[tuple[bytes, _PeerMessage]]) -> None:
    roster = Roster()
    roster.expect("g", [1, 2, 3])
    roster.begin(EPOCH - 1)
    old = roster.answers
    roster.begin(EPOCH)
    expected = BitMap([1, 2, 3])
    for identity, (frame, payload) in script:
        answer = roster.receive(identity, frame, 0, payload)
        assert answer is None or (answer.welcome or BitMap()) <= roster.present()
        # Every client that is present is expected, on exactly one connection.
        assert roster.present() <= expected
        carried = [ids for _, ids in roster.identities(roster.present())]
        assert BitMap().union(*carried) == roster.present()
        assert sum(map(len, carried)) == len(roster.present())
        assert all(client in roster.process(client) for client in roster.present())
        reports = roster.answers.subscriber_reports
        assert reports.ids <= expected
        assert reports.table().ids.tolist() == list(reports.ids)
        assert not reports.ids & bitmap(roster.answers.publisher_reports)
    assert (old.epoch, old.ready, old.publisher_reports, old.errors) == (EPOCH - 1, BitMap(), {}, {})
    assert roster.answers.epoch == EPOCH
