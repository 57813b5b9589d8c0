"""The roster: who is there, and what they have answered."""

from __future__ import annotations

import tracemalloc

import pytest
from pyroaring import BitMap

from hydra.control.id_bitmaps import span
from hydra.control.roster import PeerWelcome, Roster
from hydra.wire.messages import Ack, Error, FromClient, Hello, HostReadings, Progress, Ready, Sample, encode
from hydra.wire.subscriber_table import table_of
from tests.control.golden_messages import COUNTERS
from tests.control.rosters import EPOCH, HERE, batch, hello, joined, report, state


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


def test_a_client_takes_no_object() -> None:
    clients, size = 10_000, 1000
    groups = [list(range(first, first + size)) for first in range(0, clients, size)]
    frames = []
    for ids in groups:
        texts: list[FromClient] = [
            hello(ids, group=f"g-{ids[0]}"),
            joined(ids, 2),
            *(Ack(ids=ids, seq=3 + k, epoch=EPOCH, number=k, command=c) for k, c in ((1, "configure"), (2, "start"))),
            Ready(ids=ids, seq=9, epoch=EPOCH),
        ]
        frames += [(b"%d" % ids[0], encode(message)) for message in texts]
    tracemalloc.start()
    roster = Roster()
    for ids in groups:
        roster.expect(f"g-{ids[0]}", ids)
    roster.begin(EPOCH)
    for identity, frame in frames:
        roster.receive(identity, frame)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    all_clients = span(0, clients)
    assert roster.present() == roster.answers.acked(2) == roster.answers.ready == all_clients
    assert len(list(roster.identities(all_clients))) == len(groups)
    assert kept < 50 * clients
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
    roster.receive(b"pub", encode(Ack(ids=[7], seq=3, epoch=EPOCH, number=1, command="configure")))
    roster.receive(b"relay", encode(Ack(ids=[1, 2], seq=4, epoch=EPOCH, number=1, command="configure")))
    roster.receive(b"pub", encode(Ready(ids=[7], seq=4, epoch=EPOCH, endpoint="tcp://x:1")))
    roster.receive(b"relay", encode(Ready(ids=[1, 3], seq=5, epoch=EPOCH)))
    roster.receive(b"relay", encode(Progress(ids=[3], seq=6, epoch=EPOCH, messages=7, time_ns=1)))
    roster.receive(b"pub", encode(report([7], 5)))
    head, payload = batch([1, 3], 7)
    roster.receive(b"relay", head, 0, payload)
    roster.receive(b"relay", encode(Error(ids=[1, 2], seq=8, epoch=EPOCH, message="no")))
    roster.receive(b"pub", encode(Error(ids=[7], seq=6, epoch=0, message="out of memory", fatal=True)))
    answers = roster.answers
    assert answers.acked(1) == BitMap([1, 2, 7])
    assert answers.acked(2) == BitMap()
    assert answers.ready == BitMap([1, 3, 7])
    assert answers.endpoints == {7: "tcp://x:1"}
    assert answers.progress[3].messages == 7
    assert set(answers.publisher_reports) == {7}
    assert answers.subscriber_reports.ids == BitMap([1, 3])
    assert answers.errors == {1: "no", 2: "no", 7: "out of memory"}
    assert not roster.refused


def test_a_new_epoch_starts_empty(roster: Roster) -> None:
    roster.receive(b"relay", encode(Ack(ids=[1], seq=4, epoch=EPOCH, number=1, command="configure")))
    head, payload = batch([1], 5)
    roster.receive(b"relay", head, 0, payload)
    roster.begin(EPOCH + 1)
    assert roster.answers.acked(1) == BitMap()
    assert roster.answers.subscriber_reports.table() == table_of({})
    assert roster.present() == BitMap([1, 2, 3, 7])


def test_a_late_answer_does_not_acknowledge_the_next_command_of_its_kind(roster: Roster) -> None:
    first, second = roster.answers.next_number(), roster.answers.next_number()
    for seq, number in ((4, first), (5, second)):
        roster.receive(b"relay", encode(Ack(ids=[1, 2], seq=seq, epoch=EPOCH, number=number, command="configure")))
        roster.receive(b"pub", encode(Ack(ids=[7], seq=seq, epoch=EPOCH, number=first, command="configure")))
    assert roster.answers.acked(first) == BitMap([1, 2, 7])
    assert roster.answers.acked(second) == BitMap([1, 2])


def server(**changes: object) -> Hello:
    return hello([2**31], **{"group": "brokers", "role": "server", "boot_id": "another", "pid": 70, **changes})


def test_a_server_is_there_with_its_hello(roster: Roster) -> None:
    roster.expect("brokers", [2**31])
    assert roster.receive(b"server", encode(server())) == PeerWelcome(BitMap(), BitMap())
    assert 2**31 in roster.present()
    assert roster.hello(2**31).role == "server"
    assert list(roster.identities([2**31])) == [(b"server", BitMap([2**31]))]
    roster.begin(0)
    roster.receive(b"server", encode(Ready(ids=[2**31], seq=2, epoch=0, endpoint="x:1")))
    assert roster.answers.endpoints == {2**31: "x:1"}
    # Repeated, it is welcomed again.
    assert roster.receive(b"server", encode(server(seq=3)))
    roster.forget([2**31])
    assert b"server" not in roster.everyone()
    assert not roster.refused


def test_what_relays_and_servers_have_read_of_their_hosts_is_kept(roster: Roster) -> None:
    roster.forget([7])
    roster.expect("brokers", [2**31])
    roster.receive(b"server", encode(server()))
    roster.watch.begin(EPOCH, 0.25)
    text = roster.watch.due(0)
    assert [identity for identity, _ in text] == [b"relay", b"server"]
    assert all(watch.host for _, watch in text)
    roster.receive(b"relay", encode(HostReadings(ids=[1, 2, 3], seq=4, epoch=EPOCH, samples=[Sample(7, COUNTERS)])))
    roster.receive(b"server", encode(HostReadings(ids=[2**31], seq=2, epoch=EPOCH, samples=[Sample(8)])))
    # That of another watch comes late.
    roster.receive(b"server", encode(HostReadings(ids=[2**31], seq=3, epoch=EPOCH - 1, samples=[Sample(9)])))
    assert [(post.group, sample.time_ns) for post, sample in roster.watch.samples()] == [("g", 7), ("brokers", 8)]
    assert not roster.refused
    # A server's host has a clock as well, and an ended one is not pinged any more.
    assert (b"server", 5) in roster.timekeeper.due(5)
    roster.forget([1, 2, 3, 2**31])
    roster.watch.begin(EPOCH + 1, 0.25)
    assert roster.watch.due(0) == []
    assert roster.timekeeper.due(10**12) == []


def test_a_relay_that_comes_after_some_of_its_clients_have_moved(roster: Roster) -> None:
    roster.expect("late", [20, 21, 22])
    roster.forget([21])
    roster.expect("next", [21])
    assert roster.receive(b"late", encode(hello([20, 21, 22], group="late")))
    assert not roster.refused
    # Of those that join, the one that belongs to another group has to end.
    assert roster.receive(b"late", encode(joined([20, 21]))) == PeerWelcome(BitMap([20]), BitMap([21]))
    assert roster.refused == {"unexpected_hello": 1}
    assert roster.present() == BitMap([1, 2, 3, 7, 20])


def test_who_is_responsible_for_clients_that_may_not_have_joined(roster: Roster) -> None:
    roster.expect("late", [20, 21])
    assert roster.receive(b"late", encode(hello([20, 21], group="late")))
    assert list(roster.identities([20, 21])) == []
    assert list(roster.responsible([3, 20, 9])) == [(b"relay", BitMap([3])), (b"late", BitMap([20]))]
