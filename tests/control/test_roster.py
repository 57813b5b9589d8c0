"""The roster: what may change its state, and that nothing else does."""

from __future__ import annotations

import copy
import tracemalloc
from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from hydra.control.clocks import ClockLine
from hydra.control.ids import bitmap, span
from hydra.control.roster import EpochAnswers, Exit, Roster, Welcomed
from hydra.model import SubscriberReport
from hydra.wire.batch import MAX_BATCH_BYTES, Columns
from hydra.wire.batch import encode as encode_columns
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    Batch,
    ChildExit,
    Error,
    FromClient,
    Hello,
    Host,
    Joined,
    Progress,
    Ready,
    Report,
    Reports,
    Sample,
    encode,
)
from hydra.wire.table import EMPTY, table_of
from tests.control.golden_messages import COUNTERS, FROM_CLIENT

EPOCH = 5
_PUBLISHER = FROM_CLIENT["report-publisher-zmq"]
_SUBSCRIBER = FROM_CLIENT["report-subscriber"]


def hello(ids: list[int], **changes: object) -> Hello:
    """A relay's, for all clients of its group."""
    golden = FROM_CLIENT["hello-subscriber"]
    assert isinstance(golden, Hello)
    return msgspec.structs.replace(golden, **{"ids": ids, "group": "g", "seq": 1, "pid": 50, **changes})


def joined(ids: list[int], seq: int = 2, incarnation: int = 0, pid: int | None = None) -> Joined:
    """Each in a process of its own, 100 above its id, or all in one."""
    pids = [100 + client if pid is None else pid for client in ids]
    return Joined(ids=ids, seq=seq, incarnations=[incarnation] * len(ids), pids=pids)


HERE = hello([1]).boot_id, hello([1]).time_namespace
"""The host of all who say so."""
NETWORK = hello([1]).network_namespace
"""The network namespace they are in."""


def report(ids: list[int], seq: int, epoch: int = EPOCH, golden: FromClient = _PUBLISHER) -> Report:
    assert isinstance(golden, Report)
    return msgspec.structs.replace(golden, ids=ids, seq=seq, epoch=epoch)


def received(messages: int) -> SubscriberReport:
    """A subscriber's report of so many messages."""
    assert isinstance(_SUBSCRIBER, Report)
    assert _SUBSCRIBER.subscriber is not None
    return replace(_SUBSCRIBER.subscriber, batches=messages)


def batch(ids: list[int], seq: int, epoch: int = EPOCH, *, batches: int = 7) -> tuple[bytes, bytes]:
    """Both frames of the reports of these clients."""
    columns, payload = encode_columns([(client, received(batches)) for client in ids])
    return encode(Batch(ids=ids, seq=seq, epoch=epoch, columns=columns)), payload


def headed(ids: list[int], seq: int, columns: Columns) -> bytes:
    return encode(Batch(ids=ids, seq=seq, epoch=EPOCH, columns=columns))


@pytest.fixture
def roster() -> Roster:
    """Expects 1, 2, 3 of group g, 7 of publishers' group p and 9 of a third; 1, packed 2 with 3, and 7 have joined."""
    it = Roster()
    it.expect("g", [1, 2, 3])
    it.expect("p", [7])
    it.expect("other", [9])
    it.begin(EPOCH)
    assert it.receive(b"relay", encode(hello([1, 2, 3])))
    assert it.receive(b"relay", encode(joined([1], 2)))
    assert it.receive(b"relay", encode(joined([2, 3], 3, pid=102)))
    assert it.receive(b"pub", encode(hello([7], group="p", role="publisher", pid=60)))
    assert it.receive(b"pub", encode(joined([7])))
    assert not it.refused
    return it


def state(roster: Roster) -> object:
    """All that a message could change, counters apart."""
    answers = roster.answers
    present = list(roster.present())
    return copy.deepcopy(
        (
            (answers.epoch, {name: list(ids) for name, ids in answers._acks.items()}, list(answers.ready)),
            (answers.endpoints, answers.publisher_reports, answers.progress, answers.errors),
            (list(answers.subscriber_reports.ids), answers.subscriber_reports.table()),
            [(c, roster.incarnation(c), list(roster.process(c)), roster.host(c)) for c in present],
            set(roster.relays()),
            roster.everyone(),
            roster._exits,
            roster.watch.samples(),
            list(roster.answered_ping(1)),
        )
    )


def test_messages_that_name_more_ids_than_the_run_has(roster: Roster) -> None:
    """A few bytes name a million ids; to refuse them takes neither that many steps nor their memory."""
    before = state(roster)
    frame = encode(Ack(ids=[1], seq=7, epoch=EPOCH, command="start")).replace(b'"ids":[1]', b'"ids":[[1,999999]]')
    tracemalloc.start()
    for _ in range(10):
        roster.receive(b"relay", frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert roster.refused == {"malformed": 10}
    assert state(roster) == before


def test_a_hundred_thousand_clients_take_no_object_each() -> None:
    clients, size = 100_000, 1000
    roster = Roster()
    frames = []
    for n in range(clients // size):
        first = n * size
        ids = list(range(first, first + size))
        said: list[FromClient] = [
            hello(ids, group=f"g-{n}"),
            joined(ids, 2),
            *(Ack(ids=ids, seq=3 + k, epoch=EPOCH, command=c) for k, c in enumerate(("configure", "start"))),
            Ready(ids=ids, seq=9, epoch=EPOCH),
        ]
        frames += [(b"%d" % n, encode(message)) for message in said]
    tracemalloc.start()
    for n in range(clients // size):
        roster.expect(f"g-{n}", range(n * size, (n + 1) * size))
    roster.begin(EPOCH)
    for identity, frame in frames:
        roster.receive(identity, frame)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    everybody = span(0, clients)
    assert roster.present() == roster.answers.acked("start") == roster.answers.ready == everybody
    assert len(list(roster.identities(everybody))) == clients // size
    assert kept < 50 * clients
    assert not roster.refused


def test_all_clients_of_a_large_group_at_once() -> None:
    roster, ids = Roster(), list(range(5000))
    roster.expect("g", ids)
    assert roster.receive(b"relay", encode(hello(ids)))
    assert roster.receive(b"relay", encode(joined(ids)))
    # Who has been dismissed is still among those that the relay may speak for.
    roster.forget(range(4500))
    roster.receive(b"relay", encode(Ack(ids=ids, seq=3, epoch=0, command="start")))
    assert roster.answers.acked("start") == bitmap(ids)
    assert not roster.refused


def test_who_is_there(roster: Roster) -> None:
    assert roster.present() == BitMap([1, 2, 3, 7])
    assert roster.relays() == {"g", "p"}
    assert roster.relay("g") == b"relay"
    assert roster.relay("other") is None
    assert list(roster.identities([3, 1, 9])) == [(b"relay", BitMap([1, 3]))]
    assert list(roster.identities([7, 2])) == [(b"relay", BitMap([2])), (b"pub", BitMap([7]))]
    assert roster.everyone() == [b"relay", b"pub"]
    assert roster.carries_only(b"relay", BitMap([1, 2, 3]))
    assert not roster.carries_only(b"relay", BitMap([2, 3]))
    assert roster.process(1) == BitMap([1])
    assert roster.process(3) == BitMap([2, 3])
    assert roster.process(9) == BitMap([9])
    assert roster.hello(2).group == "g"
    assert roster.host(7) == HERE


@pytest.mark.parametrize("client", [0, 8, 9, 10, 2**32 - 1])
def test_of_a_client_that_is_not_there_nothing_is_known(roster: Roster, client: int) -> None:
    with pytest.raises(KeyError):
        roster.hello(client)
    assert roster.incarnation(client) == 0


def test_answers_are_kept_by_client(roster: Roster) -> None:
    roster.receive(b"pub", encode(Ack(ids=[7], seq=3, epoch=EPOCH, command="configure")))
    roster.receive(b"relay", encode(Ack(ids=[1, 2], seq=4, epoch=EPOCH, command="configure")))
    roster.receive(b"pub", encode(Ready(ids=[7], seq=4, epoch=EPOCH, endpoint="tcp://x:1")))
    roster.receive(b"relay", encode(Ready(ids=[1, 3], seq=5, epoch=EPOCH)))
    roster.receive(b"relay", encode(Progress(ids=[3], seq=6, epoch=EPOCH, messages=7, time_ns=1)))
    roster.receive(b"pub", encode(report([7], 5)))
    head, payload = batch([1, 3], 7)
    roster.receive(b"relay", head, 0, payload)
    roster.receive(b"relay", encode(Error(ids=[1, 2], seq=8, epoch=EPOCH, message="no")))
    answers = roster.answers
    assert answers.acked("configure") == BitMap([1, 2, 7])
    assert answers.acked("start") == BitMap()
    assert answers.ready == BitMap([1, 3, 7])
    assert answers.endpoints == {7: "tcp://x:1"}
    assert answers.configured() == BitMap([1, 7])
    assert answers.progress[3].messages == 7
    assert set(answers.publisher_reports) == {7}
    assert answers.subscriber_reports.ids == BitMap([1, 3])
    assert answers.errors == {1: "no", 2: "no"}
    assert not roster.refused


def test_batches_are_one_table_in_the_order_of_the_ids(roster: Roster) -> None:
    reports = roster.answers.subscriber_reports
    assert reports.table() == EMPTY
    for seq, ids in ((4, [2]), (5, [1, 3])):
        head, payload = batch(ids, seq, batches=seq)
        roster.receive(b"relay", head, 0, payload)
    table = reports.table()
    assert table.ids.tolist() == [1, 2, 3]
    assert table.batches.tolist() == [5, 4, 5]
    assert sum(table.latency.counts[1::2]) == 3 * sum(received(1).latency.counts[1::2])
    # It is made once.
    assert reports.table() is table


def test_a_new_epoch_starts_empty(roster: Roster) -> None:
    roster.receive(b"relay", encode(Ack(ids=[1], seq=4, epoch=EPOCH, command="configure")))
    head, payload = batch([1], 5)
    roster.receive(b"relay", head, 0, payload)
    roster.begin(EPOCH + 1)
    assert roster.answers.acked("configure") == BitMap()
    assert roster.answers.subscriber_reports.table() == table_of({})
    assert roster.present() == BitMap([1, 2, 3, 7])


def test_who_has_answered_a_ping_has_said_all_that_came_before_it(roster: Roster) -> None:
    assert roster.answered_ping(1) == BitMap()
    roster.receive(b"relay", encode(Ack(ids=[1, 2, 3], seq=4, epoch=0, command="ping", time_ns=7, echo=50)))
    assert roster.answered_ping(50) == BitMap([1, 2, 3])
    assert roster.answered_ping(51) == BitMap()
    roster.receive(b"pub", encode(Ack(ids=[7], seq=4, epoch=0, command="ping", time_ns=7, echo=60)))
    assert roster.answered_ping(50) == BitMap([1, 2, 3, 7])
    assert roster.answered_ping(60) == BitMap([7])
    assert not roster.refused


def burst(roster: Roster, identity: bytes, seq: int, now_ns: int, ahead_ns: int) -> tuple[int, int]:
    """The relay answers all pings that are due, each 10 µs later; the next ``seq`` and time."""
    while roster.timekeeper.due(now_ns) == [(identity, now_ns)]:
        shown_ns = now_ns + 4_000 + ahead_ns
        pong = Ack(ids=[1, 2, 3], seq=seq, epoch=0, command="ping", time_ns=shown_ns, echo=now_ns)
        now_ns += 10_000
        roster.receive(identity, encode(pong), now_ns)
        seq += 1
    return seq, now_ns


def test_the_relay_of_another_host_tells_what_its_clock_is(roster: Roster) -> None:
    elsewhere, ahead_ns, seq, now_ns = roster.host(1), 7_000_000_000_000, 4, 1_000_000_000
    assert roster.clock(elsewhere, now_ns) is None
    for bursts in (1, 2, 3):
        seq, now_ns = burst(roster, b"relay", seq, now_ns, ahead_ns)
        assert roster.timekeeper.bursts(elsewhere) == bursts
        now_ns = max(now_ns, roster.timekeeper.next_due_ns(now_ns))
    line = roster.clock(elsewhere, now_ns)
    assert line is not None
    assert abs(line.offset_ns - ahead_ns) <= line.error_ns < 20_000
    assert not roster.refused


def test_who_is_forgotten_is_not_asked_for_the_time(roster: Roster) -> None:
    roster.forget([1, 2, 3, 7])
    assert roster.timekeeper.due(10**18) == []


def server(**changes: object) -> Hello:
    return hello([2**31], **{"group": "brokers", "role": "server", "boot_id": "another", "pid": 70, **changes})


def test_a_server_is_there_with_its_hello(roster: Roster) -> None:
    roster.expect("brokers", [2**31])
    assert roster.receive(b"server", encode(server())) == Welcomed(BitMap(), BitMap())
    assert 2**31 in roster.present()
    assert roster.hello(2**31).role == "server"
    assert list(roster.identities([2**31])) == [(b"server", BitMap([2**31]))]
    roster.begin(0)
    roster.receive(b"server", encode(Ready(ids=[2**31], seq=2, epoch=0, endpoint="x:1")))
    assert roster.answers.endpoints == {2**31: "x:1"}
    # Said again, it is welcomed again.
    assert roster.receive(b"server", encode(server(seq=3)))
    roster.forget([2**31])
    assert b"server" not in roster.everyone()
    assert not roster.refused


def test_what_relays_and_servers_have_read_of_their_hosts_is_kept(roster: Roster) -> None:
    roster.forget([7])
    roster.expect("brokers", [2**31])
    roster.receive(b"server", encode(server()))
    roster.watch.begin(EPOCH, 0.25)
    said = roster.watch.due(0)
    assert [identity for identity, _ in said] == [b"relay", b"server"]
    assert all(watch.host for _, watch in said)
    roster.receive(b"relay", encode(Host(ids=[1, 2, 3], seq=4, epoch=EPOCH, samples=[Sample(7, COUNTERS)])))
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
    assert roster.receive(b"relay", encode(hello([1])))
    assert roster.receive(b"relay", encode(joined([1])))
    assert roster.clock(roster.host(1), 5) == ClockLine(offset_ns=0, at_ns=5, rate_ppb=0, error_ns=0)
    assert roster.timekeeper.due(10**18) == []


def test_an_error_of_no_epoch_is_kept(roster: Roster) -> None:
    roster.receive(b"relay", encode(Error(ids=[1], seq=4, epoch=0, message="out of memory", fatal=True)))
    assert roster.answers.errors == {1: "out of memory"}


def test_a_relay_that_comes_after_some_of_its_clients_have_moved(roster: Roster) -> None:
    roster.expect("late", [20, 21, 22])
    roster.forget([21])
    roster.expect("next", [21])
    assert roster.receive(b"late", encode(hello([20, 21, 22], group="late")))
    assert not roster.refused
    # Of those that join, the one that belongs to another group has to end.
    assert roster.receive(b"late", encode(joined([20, 21]))) == Welcomed(BitMap([20]), BitMap([21]))
    assert roster.refused == {"unexpected_hello": 1}
    assert roster.present() == BitMap([1, 2, 3, 7, 20])


def test_who_is_responsible_for_clients_that_may_not_have_joined(roster: Roster) -> None:
    roster.expect("late", [20, 21])
    assert roster.receive(b"late", encode(hello([20, 21], group="late")))
    assert list(roster.identities([20, 21])) == []
    assert list(roster.responsible([3, 20, 9])) == [(b"relay", BitMap([3])), (b"late", BitMap([20]))]


# --- refusals --------------------------------------------------------------------------------------------------------

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
]


@pytest.mark.parametrize(("reason", "identity", "frame", "payload"), STRANGE)
def test_refused_counted_and_nothing_changed(
    roster: Roster, reason: str, identity: bytes, frame: bytes, payload: bytes | None
) -> None:
    before = state(roster)
    assert roster.receive(identity, frame, 0, payload) is None
    assert roster.refused == Counter({reason: 1})
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


@pytest.mark.parametrize(
    ("identity", "late", "payload"),
    [
        (b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH - 1)), None),
        (b"relay", encode(Ack(ids=[1], seq=4, epoch=0, command="configure")), None),
        (b"relay", encode(Progress(ids=[1], seq=4, epoch=0, messages=1, time_ns=1)), None),
        (b"pub", encode(report([7], 4, EPOCH - 1)), None),
        (b"relay", encode(Error(ids=[1], seq=4, epoch=EPOCH - 1, message="late")), None),
        (b"relay", *batch([1], 4, EPOCH - 1)),
    ],
)
def test_what_comes_late_changes_nothing_and_is_no_offence(
    roster: Roster, identity: bytes, late: bytes, payload: bytes | None
) -> None:
    before = state(roster)
    assert roster.receive(identity, late, 0, payload) is None
    assert not roster.refused
    assert state(roster) == before


# --- deaths and replacements -----------------------------------------------------------------------------------------


def child_exit(ids: list[int], seq: int, pid: int, status: int = -9, *, replaced: bool = True, after: int = 0) -> bytes:
    return encode(ChildExit(ids=ids, seq=seq, incarnation=after, pid=pid, status=status, replaced=replaced))


def test_a_client_that_comes_again_from_a_packed_process_tells_that_all_of_it_is_gone(roster: Roster) -> None:
    assert roster.receive(b"relay", encode(joined([2], 4, 1, 777))) == Welcomed(BitMap([2]), BitMap())
    assert roster.present() == BitMap([1, 2, 7])
    assert roster.take_exits() == [Exit([2, 3], 102, None, replaced=True, present=True)]
    assert list(roster.identities([1, 2, 3])) == [(b"relay", BitMap([1, 2]))]
    assert roster.process(2) == BitMap([2])
    assert roster.incarnation(2) == 1


def test_a_packed_process_comes_again_as_a_whole(roster: Roster) -> None:
    assert roster.receive(b"relay", encode(joined([2, 3], 4, 1, 777))) == Welcomed(BitMap([2, 3]), BitMap())
    assert roster.process(3) == BitMap([2, 3])
    assert roster.take_exits() == [Exit([2, 3], 102, None, replaced=True, present=True)]


def test_a_replacement_takes_over(roster: Roster) -> None:
    assert roster.receive(b"relay", encode(joined([1], 4, 1, 777)))
    assert roster.incarnation(1) == 1
    # Its predecessor is dead, even if nobody ever says so; told afterwards, that does not touch it.
    assert roster.take_exits() == [Exit([1], 101, None, replaced=True, present=True)]
    for seq in (5, 6):
        roster.receive(b"relay", child_exit([1], seq, 101))
    assert 1 in roster.present()
    # How it came about is news, once.
    assert roster.take_exits() == [Exit([1], 101, -9, replaced=True, present=False)]
    # Nobody comes back from the dead.
    roster.receive(b"relay", encode(joined([1], 7)))
    assert roster.refused == {"duplicate_hello": 1}
    assert roster.incarnation(1) == 1


def test_a_death_that_is_told_again_is_one_death(roster: Roster) -> None:
    for seq in (4, 5):
        roster.receive(b"relay", child_exit([1], seq, 101, replaced=False))
    assert roster.take_exits() == [Exit([1], 101, -9, replaced=False, present=True)]
    # Its successor's is another one, which had not joined.
    roster.receive(b"relay", child_exit([1], 6, 102, 1, replaced=False, after=1))
    assert roster.take_exits() == [Exit([1], 102, 1, replaced=False, present=False)]


def test_a_death_removes_the_client(roster: Roster) -> None:
    roster.receive(b"relay", child_exit([1], 4, 101, 1, after=2))
    assert roster.present() == BitMap([2, 3, 7])
    assert list(roster.identities([1])) == []
    assert roster.incarnation(1) == 3
    with pytest.raises(KeyError):
        roster.hello(1)
    # What was told of it once more had been on its way.
    roster.receive(b"relay", encode(joined([1], 5)))
    assert roster.refused == {"duplicate_hello": 1}
    assert roster.present() == BitMap([2, 3, 7])


def test_the_end_of_a_dismissed_client_is_no_news(roster: Roster) -> None:
    roster.forget([1])
    roster.receive(b"relay", child_exit([1], 4, 101, 0, replaced=False))
    assert roster.take_exits() == []
    # Of one that ended by itself it is.
    roster.receive(b"relay", child_exit([2, 3], 5, 102, 0, replaced=False))
    assert roster.take_exits() == [Exit([2, 3], 102, 0, replaced=False, present=True)]


@pytest.mark.parametrize("pid", [101, 777], ids=["the one that was replaced", "one that said nothing"])
def test_a_death_of_an_earlier_process_does_not_touch_the_present_one(roster: Roster, pid: int) -> None:
    roster.disconnect([1])
    roster.receive(b"relay", encode(joined([1], 4, 1, 888)))
    roster.receive(b"relay", child_exit([1], 5, pid))
    assert 1 in roster.present()
    assert roster.take_exits() == [Exit([1], pid, -9, replaced=True, present=False)]


def test_who_is_being_ended_does_not_count_as_there_once_more(roster: Roster) -> None:
    roster.disconnect([1])
    assert roster.present() == BitMap([2, 3, 7])
    # Its relay had not heard of its welcome.
    roster.receive(b"relay", encode(joined([1], 4)))
    assert roster.refused == {"duplicate_hello": 1}
    assert roster.present() == BitMap([2, 3, 7])


@pytest.mark.parametrize("pid", [101, 888], ids=["the old pid", "the new one's, on another host"])
def test_a_group_does_not_speak_for_a_client_that_another_group_has_by_now(roster: Roster, pid: int) -> None:
    roster.forget([1])
    roster.expect("next", [1])
    roster.receive(b"elsewhere", encode(hello([1], group="next")))
    roster.receive(b"elsewhere", encode(joined([1], 2, 0, 888)))
    roster.receive(b"relay", child_exit([1], 4, pid, 4, replaced=False))
    assert roster.hello(1).group == "next"
    assert list(roster.identities([1, 2])) == [(b"relay", BitMap([2])), (b"elsewhere", BitMap([1]))]
    assert roster.take_exits() == []
    # Of the others it does.
    roster.receive(b"relay", child_exit([2, 3], 5, 102, 4, replaced=False))
    assert roster.take_exits() == [Exit([2, 3], 102, 4, replaced=False, present=True)]


def test_a_client_that_is_expected_elsewhere_has_left_its_group(roster: Roster) -> None:
    roster.expect("next", [1])
    assert roster.present() == BitMap([2, 3, 7])
    assert roster.receive(b"relay", encode(joined([1], 4))) == Welcomed(None, BitMap([1]))


def test_an_exit_that_names_one_client_of_a_packed_process_leaves_the_others_reachable(roster: Roster) -> None:
    roster.receive(b"relay", child_exit([2], 4, 102))
    assert roster.present() == BitMap([1, 3, 7])
    assert dict(roster.identities([3])) == {b"relay": BitMap([3])}


def test_a_packed_process_that_is_gone_takes_no_client_with_it_that_has_moved(roster: Roster) -> None:
    roster.forget([3])
    roster.expect("next", [3])
    roster.receive(b"elsewhere", encode(hello([3], group="next")))
    roster.receive(b"elsewhere", encode(joined([3], 2, 0, 102)))
    roster.receive(b"relay", encode(joined([2], 4, 1, 777)))
    assert roster.take_exits() == [Exit([2], 102, None, replaced=True, present=True)]
    assert roster.hello(3).group == "next"


def test_forgetting_clients_forgets_their_relay_with_the_last(roster: Roster) -> None:
    roster.forget([1, 2])
    assert roster.present() == BitMap([3, 7])
    assert roster.everyone() == [b"relay", b"pub"]
    roster.forget(roster.present())
    assert roster.present() == BitMap()
    assert roster.everyone() == []
    assert roster.relay("g") is None
    roster.receive(b"new", encode(hello([1])))
    assert roster.refused == {"unexpected_hello": 1}
    # What it says of its clients' ends is late, and no offence.
    before = state(roster)
    for frame in (child_exit([1], 4, 101, 0, replaced=False), encode(joined([1], 5)), b"nonsense"):
        assert roster.receive(b"relay", frame) is None
    assert roster.refused == {"unexpected_hello": 1}
    assert state(roster) == before


# --- any order -------------------------------------------------------------------------------------------------------

_Said = tuple[bytes, bytes | None]


def _alone(frame: bytes) -> _Said:
    return frame, None


_SAID: st.SearchStrategy[_Said] = st.one_of(
    st.sampled_from([(frame, payload) for _, _, frame, payload in STRANGE]),
    st.builds(
        lambda ids, seq, epoch, command: _alone(encode(Ack(ids=ids, seq=seq, epoch=epoch, command=command))),
        st.lists(st.integers(1, 4), max_size=3),
        st.integers(1, 30),
        st.integers(0, 6),
        st.sampled_from(["configure", "start", "ping", "?"]),
    ),
    st.builds(
        lambda client, seq, epoch: _alone(encode(report([client], seq, epoch))),
        st.integers(1, 4),
        st.integers(1, 30),
        st.integers(4, 6),
    ),
    st.builds(
        lambda ids, seq, epoch, batches: batch(sorted(ids), seq, epoch, batches=batches),
        st.sets(st.integers(1, 4), min_size=1),
        st.integers(1, 30),
        st.integers(4, 6),
        st.integers(1, 2),
    ),
    st.builds(
        lambda ids, role, seq: _alone(encode(hello(ids, role=role, seq=seq))),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
        st.sampled_from(["publisher", "subscriber", "server"]),
        st.integers(1, 5),
    ),
    st.builds(
        lambda ids, seq, incarnation, pid: _alone(encode(joined(sorted(ids), seq, incarnation, pid))),
        st.sets(st.integers(1, 4), min_size=1),
        st.integers(1, 30),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    st.builds(
        lambda ids, seq, pid: _alone(child_exit(ids, seq, pid)),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
        st.integers(1, 30),
        st.integers(0, 3),
    ),
    st.builds(_alone, st.binary(max_size=20)),
)


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), _SAID), max_size=40))
def test_any_messages_in_any_order(script: list[tuple[bytes, _Said]]) -> None:
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


def test_who_is_told_a_command_once_more_has_not_acknowledged_it() -> None:
    answers = EpochAnswers(epoch=EPOCH)
    answers.acknowledge("configure", BitMap([1, 2, 3]))
    answers.forget("configure", [1, 7])
    answers.forget("stop", [2])
    assert answers.acked("configure") == BitMap([2, 3])
    assert answers.acked("stop") == BitMap()
