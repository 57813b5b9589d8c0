"""The roster: what may change its state, and that nothing else does."""

from __future__ import annotations

import copy
import tracemalloc
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra.control.clocks import ClockLine
from hydra.control.roster import EpochAnswers, Exit, Roster
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    ChildExit,
    Error,
    FromClient,
    Hello,
    Host,
    Progress,
    Ready,
    Report,
    Sample,
    encode,
)
from tests.control.golden_messages import COUNTERS, FROM_CLIENT

EPOCH = 5
_PUBLISHER = FROM_CLIENT["report-publisher-zmq"]
_SUBSCRIBER = FROM_CLIENT["report-subscriber"]


def hello(ids: list[int], **changes: object) -> Hello:
    golden = FROM_CLIENT["hello-subscriber"]
    assert isinstance(golden, Hello)
    return msgspec.structs.replace(golden, **{"ids": ids, "group": "g", "seq": 1, "pid": 100 + ids[0], **changes})


HERE = hello([1]).boot_id, hello([1]).time_namespace
"""The host of all who say so."""
NETWORK = hello([1]).network_namespace
"""The network namespace they are in."""


def report(ids: list[int], seq: int, epoch: int = EPOCH, golden: FromClient = _SUBSCRIBER) -> Report:
    assert isinstance(golden, Report)
    return msgspec.structs.replace(golden, ids=ids, seq=seq, epoch=epoch)


@pytest.fixture
def roster() -> Roster:
    """Expects 1, 2, 3 of group g and 9 of another; 1, packed 2 with 3, and the warden are there."""
    it = Roster()
    it.expect("g", [1, 2, 3])
    it.expect("other", [9])
    it.begin(EPOCH)
    assert it.receive(b"one", encode(hello([1])))
    assert it.receive(b"two", encode(hello([2, 3])))
    assert it.receive(b"warden", encode(hello([1, 2, 3], warden=True, pid=50)))
    assert not it.refused
    return it


def state(roster: Roster) -> object:
    """All that a frame could change, counters apart."""
    return copy.deepcopy(
        (
            roster.answers,
            {c: roster.hello(c) for c in roster.present()},
            set(roster.wardens()),
            sorted(roster.everyone()),
            dict(roster.pongs),
            roster._exits,
            roster.watch.samples(),
        )
    )


def test_frames_that_name_more_ids_than_the_run_has(roster: Roster) -> None:
    """A few bytes name a million ids; to refuse them takes neither that many steps nor their memory."""
    before = state(roster)
    frame = encode(Ack(ids=[1], seq=7, epoch=EPOCH, command="start")).replace(b'"ids":[1]', b'"ids":[[1,999999]]')
    tracemalloc.start()
    for _ in range(10):
        roster.receive(b"one", frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert roster.refused == {"malformed": 10}
    assert state(roster) == before


def test_all_clients_of_a_large_group_at_once() -> None:
    roster, ids = Roster(), list(range(5000))
    roster.expect("g", ids)
    assert roster.receive(b"warden", encode(hello(ids, warden=True)))
    assert roster.receive(b"packed", encode(hello(ids)))
    # Who has been dismissed from the middle of a process is still named by it.
    roster.forget(range(4500))
    roster.receive(b"packed", encode(Ack(ids=ids, seq=2, epoch=0, command="start")))
    assert roster.answers.acked("start") == set(ids)
    assert not roster.refused


def test_who_is_there(roster: Roster) -> None:
    assert roster.present() == {1, 2, 3}
    assert roster.wardens() == {"g"}
    assert roster.warden("g") == b"warden"
    assert roster.warden("other") is None
    assert list(roster.identities([3, 1, 2, 9])) == [(b"two", [3, 2]), (b"one", [1])]
    assert roster.carries_only(b"two", [2, 3])
    assert not roster.carries_only(b"two", [3])


def test_answers_are_kept_by_client(roster: Roster) -> None:
    roster.receive(b"one", encode(Ack(ids=[1], seq=2, epoch=EPOCH, command="configure")))
    roster.receive(b"two", encode(Ack(ids=[2, 3], seq=2, epoch=EPOCH, command="configure")))
    roster.receive(b"one", encode(Ready(ids=[1], seq=3, epoch=EPOCH, endpoint="tcp://x:1")))
    roster.receive(b"two", encode(Progress(ids=[3], seq=3, epoch=EPOCH, messages=7, time_ns=1)))
    roster.receive(b"one", encode(report([1], 4, golden=_PUBLISHER)))
    roster.receive(b"two", encode(report([3], 4)))
    roster.receive(b"two", encode(Error(ids=[2], seq=5, epoch=EPOCH, message="no")))
    answers = roster.answers
    assert answers.acked("configure") == {1, 2, 3}
    assert answers.acked("start") == set()
    assert answers.ready == {1: "tcp://x:1"}
    assert answers.progress[3].messages == 7
    assert (set(answers.publisher_reports), set(answers.subscriber_reports)) == ({1}, {3})
    assert answers.errors == {2: "no"}
    assert not roster.refused


def test_a_new_epoch_starts_empty(roster: Roster) -> None:
    roster.receive(b"one", encode(Ack(ids=[1], seq=2, epoch=EPOCH, command="configure")))
    roster.begin(EPOCH + 1)
    assert roster.answers.acked("configure") == set()
    assert roster.present() == {1, 2, 3}


def test_the_answer_to_a_ping_belongs_to_no_epoch(roster: Roster) -> None:
    roster.receive(b"one", encode(Ack(ids=[1], seq=2, epoch=0, command="ping", time_ns=7, echo=5)))
    roster.receive(b"two", encode(Ack(ids=[2, 3], seq=2, epoch=0, command="ping", time_ns=9, echo=5)))
    # A warden's is nobody else's.
    roster.receive(b"warden", encode(Ack(ids=[1, 2, 3], seq=2, epoch=0, command="ping", time_ns=8, echo=6)))
    assert roster.pongs == {1: (5, 7), 2: (5, 9), 3: (5, 9)}
    assert not roster.refused


def burst(roster: Roster, identity: bytes, seq: int, now_ns: int, ahead_ns: int) -> tuple[int, int]:
    """The warden answers all pings that are due, each 10 µs later; the next ``seq`` and time."""
    while roster.timekeeper.due(now_ns) == [(identity, now_ns)]:
        shown_ns = now_ns + 4_000 + ahead_ns
        pong = Ack(ids=[1, 2, 3], seq=seq, epoch=0, command="ping", time_ns=shown_ns, echo=now_ns)
        now_ns += 10_000
        roster.receive(identity, encode(pong), now_ns)
        seq += 1
    return seq, now_ns


def test_the_warden_of_another_host_tells_what_its_clock_is(roster: Roster) -> None:
    elsewhere, ahead_ns, seq, now_ns = roster.host(1), 7_000_000_000_000, 2, 1_000_000_000
    assert roster.clock(elsewhere, now_ns) is None
    for bursts in (1, 2, 3):
        seq, now_ns = burst(roster, b"warden", seq, now_ns, ahead_ns)
        assert roster.timekeeper.bursts(elsewhere) == bursts
        now_ns = max(now_ns, roster.timekeeper.next_due_ns(now_ns))
    line = roster.clock(elsewhere, now_ns)
    assert line is not None
    assert abs(line.offset_ns - ahead_ns) <= line.error_ns < 20_000
    assert not roster.refused


def test_who_is_forgotten_is_not_asked_for_the_time(roster: Roster) -> None:
    roster.forget([1, 2, 3])
    assert roster.timekeeper.due(10**18) == []


def test_what_wardens_and_servers_have_read_of_their_hosts_is_kept(roster: Roster) -> None:
    roster.expect("brokers", [2**31])
    server = hello([2**31], group="brokers", role="server", boot_id="another")
    roster.receive(b"server", encode(server))
    roster.watch.begin(EPOCH, 0.25)
    said = roster.watch.due(0)
    assert [identity for identity, _ in said] == [b"warden", b"server"]
    assert all(watch.host for _, watch in said)
    roster.receive(b"warden", encode(Host(ids=[1, 2, 3], seq=2, epoch=EPOCH, samples=[Sample(7, COUNTERS)])))
    roster.receive(b"server", encode(Host(ids=[2**31], seq=2, epoch=EPOCH, samples=[Sample(8)])))
    # That of another watch comes late.
    roster.receive(b"server", encode(Host(ids=[2**31], seq=3, epoch=EPOCH - 1, samples=[Sample(9)])))
    assert [(post.group, sample.time_ns) for post, sample in roster.watch.samples()] == [("g", 7), ("brokers", 8)]
    assert not roster.refused
    # A server's host has a clock as well, and who is gone is not asked any more.
    assert (b"server", 5) in roster.timekeeper.due(5)
    roster.forget([1, 2, 3, 2**31])
    roster.watch.begin(EPOCH + 1, 0.25)
    assert roster.watch.due(0) == []
    assert roster.timekeeper.due(10**12) == []


def test_the_controllers_own_clock_is_exact() -> None:
    roster = Roster(HERE)
    roster.expect("g", [1])
    assert roster.receive(b"one", encode(hello([1])))
    assert roster.receive(b"warden", encode(hello([1], warden=True)))
    assert roster.clock(roster.host(1), 5) == ClockLine(offset_ns=0, at_ns=5, rate_ppb=0, error_ns=0)
    assert roster.timekeeper.due(10**18) == []


def test_an_error_of_no_epoch_is_kept(roster: Roster) -> None:
    roster.receive(b"one", encode(Error(ids=[1], seq=2, epoch=0, message="out of memory", fatal=True)))
    assert roster.answers.errors == {1: "out of memory"}


# --- refusals --------------------------------------------------------------------------------------------------------

STRANGE: list[tuple[str, bytes, bytes]] = [
    ("malformed", b"one", b""),
    ("malformed", b"one", b"{}"),
    ("malformed", b"one", b'{"type":"stop","v":2,"epoch":5,"stop_at_ns":1}'),
    ("malformed", b"stranger", b"\xff"),
    ("oversized", b"one", encode(Ready(ids=[1], seq=2, epoch=EPOCH)).ljust(MAX_MESSAGE_BYTES + 1)),
    ("unannounced", b"stranger", encode(Ready(ids=[1], seq=2, epoch=EPOCH))),
    ("unannounced", b"stranger", encode(ChildExit(incarnation=0, ids=[1], seq=2, pid=101, status=-9, replaced=False))),
    ("replayed", b"one", encode(Ready(ids=[1], seq=1, epoch=EPOCH))),
    ("replayed", b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=1, pid=101, status=-9, replaced=True))),
    ("foreign_id", b"one", encode(Ready(ids=[2], seq=2, epoch=EPOCH))),
    ("foreign_id", b"one", encode(Ready(ids=[1, 2], seq=2, epoch=EPOCH))),
    ("foreign_id", b"one", encode(Ready(ids=[], seq=2, epoch=EPOCH))),
    ("foreign_id", b"warden", encode(ChildExit(incarnation=0, ids=[9], seq=2, pid=1, status=-9, replaced=True))),
    ("out_of_epoch", b"one", encode(Ack(ids=[1], seq=2, epoch=EPOCH + 1, command="configure"))),
    ("out_of_epoch", b"one", encode(report([1], 2, EPOCH + 1))),
    ("repeated_report", b"two", encode(report([2, 3], 2))),
    ("not_for_a_warden", b"warden", encode(Ready(ids=[1], seq=2, epoch=EPOCH))),
    ("not_for_a_warden", b"warden", encode(report([1], 2))),
    ("not_for_a_warden", b"warden", encode(Progress(ids=[1], seq=2, epoch=EPOCH, messages=1, time_ns=1))),
    ("not_for_a_warden", b"warden", encode(Ack(ids=[1, 2, 3], seq=2, epoch=EPOCH, command="configure"))),
    ("not_a_warden", b"one", encode(Host(ids=[1], seq=2, epoch=EPOCH, samples=[]))),
    ("not_a_warden", b"one", encode(ChildExit(incarnation=0, ids=[1], seq=2, pid=101, status=-9, replaced=False))),
    ("unexpected_hello", b"new", encode(hello([4]))),
    ("unexpected_hello", b"new", encode(hello([9]))),
    ("unexpected_hello", b"new", encode(hello([1, 9]))),
    ("unexpected_hello", b"new", encode(hello([1], group="h"))),
    ("unexpected_hello", b"new", encode(hello([1, 4], warden=True))),
    ("unexpected_hello", b"new", encode(msgspec.structs.replace(hello([1]), ids=[]))),
    ("replayed", b"one", encode(hello([1]))),
    ("repeated_hello", b"one", encode(hello([1], seq=2, incarnation=1))),
    ("repeated_hello", b"two", encode(hello([2], seq=2))),
    ("duplicate_hello", b"new", encode(hello([1]))),
    ("duplicate_hello", b"new", encode(hello([2], incarnation=0))),
    ("duplicate_hello", b"new", encode(hello([1, 2, 3], warden=True))),
]


@pytest.mark.parametrize(("reason", "identity", "frame"), STRANGE)
def test_refused_counted_and_nothing_changed(roster: Roster, reason: str, identity: bytes, frame: bytes) -> None:
    before = state(roster)
    assert roster.receive(identity, frame) is None
    assert roster.refused == Counter({reason: 1})
    assert state(roster) == before


@pytest.mark.parametrize(
    ("identity", "again"),
    [
        (b"one", hello([1], seq=2)),
        (b"two", hello([2, 3], seq=7)),
        (b"warden", hello([1, 2, 3], warden=True, pid=50, seq=2)),
    ],
)
def test_who_has_not_heard_its_welcome_says_hello_again(roster: Roster, identity: bytes, again: Hello) -> None:
    before = state(roster)
    assert roster.receive(identity, encode(again)) == again
    assert not roster.refused
    assert state(roster) == before
    # It has used up its seq.
    assert roster.receive(identity, encode(again)) is None
    assert roster.refused == {"replayed": 1}


def test_a_report_counts_once(roster: Roster) -> None:
    roster.receive(b"one", encode(report([1], 2)))
    before = state(roster)
    # Told to report again it says the same, which is no offence.
    roster.receive(b"one", encode(report([1], 3)))
    assert not roster.refused
    roster.receive(b"one", encode(report([1], 4, golden=_PUBLISHER)))
    roster.receive(b"one", encode(report([1], 5, golden=FROM_CLIENT["report-subscriber-silent"])))
    assert roster.refused == {"repeated_report": 2}
    assert state(roster) == before


def test_a_refused_message_of_ones_own_uses_up_its_seq(roster: Roster) -> None:
    roster.receive(b"one", encode(Ready(ids=[1], seq=7, epoch=EPOCH + 1)))
    roster.receive(b"one", encode(Ready(ids=[1], seq=7, epoch=EPOCH)))
    assert roster.refused == {"out_of_epoch": 1, "replayed": 1}
    assert not roster.answers.ready


@pytest.mark.parametrize(
    "late",
    [
        Ready(ids=[1], seq=2, epoch=EPOCH - 1),
        Ack(ids=[1], seq=2, epoch=0, command="configure"),
        Progress(ids=[1], seq=2, epoch=0, messages=1, time_ns=1),
        report([1], 2, EPOCH - 1),
        Error(ids=[1], seq=2, epoch=EPOCH - 1, message="late"),
    ],
)
def test_what_comes_late_changes_nothing_and_is_no_offence(roster: Roster, late: FromClient) -> None:
    before = state(roster)
    assert roster.receive(b"one", encode(late)) is None
    assert not roster.refused
    assert state(roster) == before


# --- deaths and replacements -----------------------------------------------------------------------------------------


def test_a_client_that_comes_again_from_a_packed_process_tells_that_all_of_it_is_gone(roster: Roster) -> None:
    assert roster.receive(b"two again", encode(hello([2], incarnation=1, pid=777)))
    assert roster.present() == {1, 2}
    assert roster.take_exits() == [Exit([2, 3], 102, None, replaced=True, present=True)]
    assert list(roster.identities([1, 2, 3])) == [(b"one", [1]), (b"two again", [2])]
    assert b"two" not in roster.everyone()


def test_a_replacement_takes_over(roster: Roster) -> None:
    assert roster.receive(b"one again", encode(hello([1], incarnation=1, pid=777)))
    assert roster.hello(1).pid == 777
    assert dict(roster.identities([1])) == {b"one again": [1]}
    roster.receive(b"one", encode(Ready(ids=[1], seq=2, epoch=EPOCH)))
    assert roster.refused == {"unannounced": 1}
    # Its forerunner is dead, even if nobody ever says so; told afterwards, that does not touch it.
    assert roster.take_exits() == [Exit([1], 101, None, replaced=True, present=True)]
    for seq in (2, 3):
        roster.receive(b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=seq, pid=101, status=-9, replaced=True)))
    assert 1 in roster.present()
    # How it came about is news, once.
    assert roster.take_exits() == [Exit([1], 101, -9, replaced=True, present=False)]


def test_a_death_that_is_told_again_is_one_death(roster: Roster) -> None:
    for seq in (2, 3):
        roster.receive(
            b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=seq, pid=101, status=-9, replaced=False))
        )
    assert roster.take_exits() == [Exit([1], 101, -9, replaced=False, present=True)]
    # Its successor's is another one, which had not said hello.
    roster.receive(b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=4, pid=102, status=1, replaced=False)))
    assert roster.take_exits() == [Exit([1], 102, 1, replaced=False, present=False)]


def test_a_death_removes_the_client(roster: Roster) -> None:
    roster.receive(b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=2, pid=101, status=1, replaced=False)))
    assert roster.present() == {2, 3}
    assert b"one" not in roster.everyone()
    with pytest.raises(KeyError):
        roster.hello(1)


@pytest.mark.parametrize("pid", [101, 777], ids=["the one that was replaced", "one that said nothing"])
def test_a_death_of_an_earlier_process_does_not_touch_the_present_one(roster: Roster, pid: int) -> None:
    roster.disconnect([1])
    roster.receive(b"one again", encode(hello([1], incarnation=1, pid=888)))
    roster.receive(b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=2, pid=pid, status=-9, replaced=True)))
    assert roster.hello(1).pid == 888
    assert roster.take_exits() == [Exit([1], pid, -9, replaced=True, present=False)]


@pytest.mark.parametrize("pid", [101, 888], ids=["the old pid", "the new one's, on another host"])
def test_a_group_does_not_speak_for_a_client_that_another_group_has_by_now(roster: Roster, pid: int) -> None:
    roster.forget([1])
    roster.expect("next", [1])
    roster.receive(b"elsewhere", encode(hello([1], group="next", pid=888)))
    roster.receive(b"warden", encode(ChildExit(incarnation=0, ids=[1], seq=2, pid=pid, status=4, replaced=False)))
    assert roster.hello(1).pid == 888
    assert roster.take_exits() == []
    # Of the others it does.
    roster.receive(b"warden", encode(ChildExit(incarnation=0, ids=[2, 3], seq=3, pid=102, status=4, replaced=False)))
    assert roster.take_exits() == [Exit([2, 3], 102, 4, replaced=False, present=True)]


def test_an_exit_that_names_one_client_of_a_packed_process_leaves_the_others_reachable(roster: Roster) -> None:
    roster.receive(b"warden", encode(ChildExit(ids=[2], seq=2, incarnation=0, pid=102, status=-9, replaced=True)))
    assert roster.present() == {1, 3}
    assert dict(roster.identities([3])) == {b"two": [3]}
    assert b"two" in roster.everyone()


def test_a_packed_process_that_is_gone_takes_no_client_with_it_that_has_moved(roster: Roster) -> None:
    roster.forget([3])
    roster.expect("next", [3])
    roster.receive(b"elsewhere", encode(hello([3], group="next", pid=888)))
    roster.receive(b"two again", encode(hello([2], incarnation=1, pid=777)))
    assert roster.take_exits() == [Exit([2], 102, None, replaced=True, present=True)]
    assert roster.hello(3).pid == 888


def test_a_packed_process_whose_other_client_has_moved_is_heard_no_more_once_it_is_disconnected(roster: Roster) -> None:
    roster.forget([3])
    roster.expect("next", [3])
    roster.receive(b"elsewhere", encode(hello([3], group="next", pid=888)))
    roster.disconnect([2])
    assert b"two" not in roster.everyone()


def test_forgetting_clients_forgets_their_warden_with_the_last(roster: Roster) -> None:
    roster.forget([1, 2])
    assert roster.present() == {3}
    assert sorted(roster.everyone()) == [b"two", b"warden"]
    roster.forget([3])
    assert roster.everyone() == []
    assert roster.warden("g") is None
    roster.receive(b"one", encode(Ready(ids=[1], seq=2, epoch=EPOCH)))
    roster.receive(b"new", encode(hello([1], incarnation=5)))
    assert roster.refused == {"unannounced": 1, "unexpected_hello": 1}


# --- any order -------------------------------------------------------------------------------------------------------

_FRAMES = st.one_of(
    st.sampled_from([frame for _, _, frame in STRANGE]),
    st.builds(
        lambda ids, seq, epoch, command: encode(Ack(ids=ids, seq=seq, epoch=epoch, command=command)),
        st.lists(st.integers(1, 4), max_size=3),
        st.integers(1, 30),
        st.integers(0, 6),
        st.sampled_from(["configure", "start", "ping", "?"]),
    ),
    st.builds(
        lambda client, seq, epoch, golden: encode(report([client], seq, epoch, golden)),
        st.integers(1, 4),
        st.integers(1, 30),
        st.integers(4, 6),
        st.sampled_from([_PUBLISHER, _SUBSCRIBER]),
    ),
    st.builds(
        lambda ids, warden, incarnation, seq: encode(
            hello(ids, warden=warden, incarnation=incarnation, seq=seq, pid=incarnation)
        ),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
        st.booleans(),
        st.integers(0, 3),
        st.integers(1, 5),
    ),
    st.builds(
        lambda ids, seq, pid: encode(ChildExit(incarnation=0, ids=ids, seq=seq, pid=pid, status=-9, replaced=True)),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
        st.integers(1, 30),
        st.integers(0, 3),
    ),
    st.binary(max_size=20),
)


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), _FRAMES), max_size=40))
def test_any_frames_in_any_order(script: list[tuple[bytes, bytes]]) -> None:
    roster = Roster()
    roster.expect("g", [1, 2, 3])
    roster.begin(EPOCH - 1)
    old = roster.answers
    roster.begin(EPOCH)
    for identity, frame in script:
        roster.receive(identity, frame)
        # Every client that is present is expected, on exactly one living connection.
        assert roster.present() <= {1, 2, 3}
        everyone = set(roster.everyone())
        assert {i for i, _ in roster.identities(roster.present())} <= everyone
        answers = roster.answers
        assert not answers.publisher_reports.keys() & answers.subscriber_reports.keys()
        assert answers.subscriber_reports.keys() | answers.publisher_reports.keys() <= {1, 2, 3}
    assert old == EpochAnswers(old.epoch)
    assert roster.answers.epoch == EPOCH


def test_who_is_told_a_command_once_more_has_not_acknowledged_it() -> None:
    answers = EpochAnswers(epoch=EPOCH, acks={"configure": {1, 2, 3}})
    answers.forget("configure", [1, 7])
    answers.forget("stop", [2])
    assert answers.acked("configure") == {2, 3}
    assert answers.acked("stop") == set()
