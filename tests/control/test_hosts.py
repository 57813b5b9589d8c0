"""Which relay watches which host and when, on a clock of the test's own."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from hydra.control.watch_assignment import HostWatch, Place, WatchSource, source_of
from hydra.model import BusyThread, GroupRole
from hydra.wire.messages import Hello, HostReadings, Sample, Watch
from tests.control.golden_messages import COUNTERS, FROM_CLIENT, FROM_SERVER

SECOND = 1_000_000_000
NOW = 100 * SECOND
OWN: Place = ("boot", "time:[1]", "net:[1]")
ELSEWHERE: Place = ("other", "time:[1]", "net:[1]")
EPOCH = 7
EVERY_S = 0.25
SUBSCRIBERS = WatchSource(ELSEWHERE, "a", "sub-0", "subscriber")
READ = Watch(epoch=EPOCH, every_s=EVERY_S, host=True)
THREADS_ONLY = Watch(epoch=EPOCH, every_s=EVERY_S, host=False)
END = Watch(epoch=EPOCH, every_s=0.0, host=False)
SAMPLE = Sample(5, COUNTERS)


def watch_of(posts: dict[bytes, WatchSource], *, begun: bool = True) -> HostWatch:
    watch = HostWatch(OWN)
    for identity, post in posts.items():
        watch.joined(identity, post)
    if begun:
        watch.begin(EPOCH, EVERY_S)
    return watch


def readings(epoch: int = EPOCH, *samples: Sample) -> HostReadings:
    return HostReadings(ids=[1], seq=1, epoch=epoch, samples=list(samples))


@pytest.mark.parametrize("role", ["publisher", "subscriber", "server"])
def test_a_post_is_what_hello_says(role: GroupRole) -> None:
    golden = FROM_CLIENT["hello-relay"]
    assert isinstance(golden, Hello)
    hello = msgspec.structs.replace(golden, role=role, agent="agent-7")
    place = (hello.boot_id, hello.time_namespace, hello.network_namespace)
    assert source_of(hello) == WatchSource(place, "agent-7", hello.group, role)
    assert source_of(hello).host == place[:2]
    # An agent that has no name is known by its group.
    assert source_of(msgspec.structs.replace(hello, agent="")).agent == hello.group


def test_nobody_is_told_before_the_first_watch() -> None:
    it = watch_of({b"a": SUBSCRIBERS}, begun=False)
    assert it.due(NOW) == []
    it.end()
    assert it.due(NOW) == []
    it.heard(b"a", readings(EPOCH, SAMPLE), NOW)
    assert it.samples() == []
    assert it.answered()


def test_the_own_host_is_read_by_nobody_but_its_groups_tell_of_their_threads() -> None:
    own = {
        b"s": replace(SUBSCRIBERS, place=OWN),
        b"p": WatchSource(OWN, "here", "pub-0", "publisher"),
        b"b": WatchSource(OWN, "here", "broker-0", "server"),
    }
    assert watch_of(own).due(NOW) == [(b"p", THREADS_ONLY), (b"b", THREADS_ONLY), (b"s", THREADS_ONLY)]


@pytest.mark.parametrize("place", [("x", *OWN[1:]), (OWN[0], "x", OWN[2]), (*OWN[:2], "x")])
def test_another_boot_time_or_network_namespace_is_another_place(place: Place) -> None:
    assert watch_of({b"a": replace(SUBSCRIBERS, place=place)}).due(NOW) == [(b"a", READ)]


def test_of_a_place_one_reads_the_host() -> None:
    posts = {
        b"a": SUBSCRIBERS,
        b"b": replace(SUBSCRIBERS, agent="b"),
        b"p": WatchSource(ELSEWHERE, "b", "pub-0", "publisher"),
        b"c": replace(SUBSCRIBERS, place=("third", "", "")),
    }
    reported = {b"a": READ, b"b": THREADS_ONLY, b"p": THREADS_ONLY, b"c": READ}
    assert dict(watch_of(posts).due(NOW)) == reported


def test_of_an_agents_subscribers_one_group_is_watched_and_of_many_agents_some() -> None:
    it = watch_of({b"%d" % n: replace(SUBSCRIBERS, place=OWN, agent=f"a{n // 2}") for n in range(100)})
    watched = [identity for identity, _ in it.due(NOW)]
    assert watched == [b"%d" % n for n in range(0, 64, 2)]
    it.left(b"0")
    assert it.due(NOW) == [(b"1", THREADS_ONLY)]


def test_it_is_said_every_2_s_until_there_is_an_answer_and_then_every_10_s() -> None:
    it = watch_of({b"a": SUBSCRIBERS})
    times = []
    for tenth in range(300):
        now_ns = NOW + tenth * SECOND // 10
        if it.due(now_ns):
            times.append(tenth / 10)
        if tenth >= 35:
            it.heard(b"a", readings(), now_ns)
    assert times == [0.0, 2.0, 12.0, 22.0]


def test_another_takes_over_when_the_reader_goes_and_a_newcomer_at_once() -> None:
    it = watch_of({b"a": SUBSCRIBERS, b"b": SUBSCRIBERS})
    assert it.due(NOW) == [(b"a", READ)]
    it.left(b"a")
    it.left(b"a")
    assert it.due(NOW + 1) == [(b"b", READ)]
    it.left(b"b")
    assert it.due(NOW + 2) == []
    assert it.posts() == []
    it.joined(b"c", SUBSCRIBERS)
    assert it.due(NOW + 3) == [(b"c", READ)]


def test_what_one_that_has_gone_has_read_is_kept_and_it_is_not_waited_for() -> None:
    it = watch_of({b"a": SUBSCRIBERS})
    it.due(NOW)
    it.heard(b"a", readings(EPOCH, SAMPLE), NOW)
    it.end()
    assert not it.answered()
    it.left(b"a")
    assert it.samples() == [(SUBSCRIBERS, SAMPLE)]
    assert it.posts() == [SUBSCRIBERS]
    assert it.answered()


@pytest.mark.parametrize("answers", [0, 3])
def test_another_takes_over_when_the_reader_says_nothing_for_4_s(answers: int) -> None:
    """A relay that was suspended still has its connection."""
    publisher = WatchSource(ELSEWHERE, "a", "pub-0", "publisher")
    it = watch_of({b"p": publisher, b"b": SUBSCRIBERS})
    assert it.due(NOW) == [(b"p", READ), (b"b", THREADS_ONLY)]
    it.heard(b"b", readings(EPOCH, SAMPLE), NOW)
    last_ns = NOW + answers * SECOND
    for second in range(1, answers + 1):
        it.heard(b"p", readings(EPOCH, SAMPLE), NOW + second * SECOND)
        assert it.due(NOW + second * SECOND) == []
    later = [it.due(last_ns + tenth * SECOND // 10) for tenth in range(1, 40)]
    assert [watch for messages in later for watch in messages] == [(b"p", READ)] * (not answers)
    # Its threads are still asked for, should it wake up.
    assert sorted(it.due(last_ns + 4 * SECOND)) == [(b"b", READ), (b"p", THREADS_ONLY)]
    it.heard(b"p", readings(EPOCH, SAMPLE), last_ns + 5 * SECOND)
    assert it.due(last_ns + 5 * SECOND) == []
    # It stays so in the next step.
    it.begin(EPOCH + 1, EVERY_S)
    assert (b"b", Watch(epoch=EPOCH + 1, every_s=EVERY_S, host=True)) in it.due(last_ns + 6 * SECOND)


def test_one_that_is_alone_and_mute_goes_on_being_told() -> None:
    it = watch_of({b"a": SUBSCRIBERS})
    texts = [second for second in range(21) if it.due(NOW + second * SECOND)]
    assert texts == list(range(0, 21, 2))


def test_the_end_is_said_at_once_to_all_who_were_told_and_every_2_s_until_they_have_answered() -> None:
    it = watch_of({b"a": SUBSCRIBERS, b"b": replace(SUBSCRIBERS, place=("third", "", "")), b"c": SUBSCRIBERS})
    it.due(NOW)
    it.heard(b"b", readings(), NOW)
    it.end()
    assert it.due(NOW + 1) == [(b"a", END), (b"b", END)]
    assert not it.answered()
    it.heard(b"b", readings(), NOW + 2)
    assert not it.answered()
    assert it.due(NOW + 1 + 2 * SECOND - 1) == []
    assert it.due(NOW + 1 + 2 * SECOND) == [(b"a", END)]
    it.heard(b"a", readings(EPOCH, SAMPLE), NOW + 3 * SECOND)
    assert it.answered()
    assert it.due(NOW + 60 * SECOND) == []
    assert it.samples() == [(SUBSCRIBERS, SAMPLE)]


def test_what_belongs_to_another_watch_or_comes_from_a_stranger_is_ignored() -> None:
    it = watch_of({b"a": SUBSCRIBERS})
    for epoch in (EPOCH - 1, EPOCH + 1):
        it.heard(b"a", readings(epoch, SAMPLE), NOW)
    it.heard(b"stranger", readings(EPOCH, SAMPLE), NOW)
    assert it.samples() == []
    it.heard(b"a", readings(EPOCH, SAMPLE), NOW)
    it.begin(EPOCH + 1, EVERY_S)
    assert it.samples() == []
    assert it.due(NOW + 1) == [(b"a", Watch(epoch=EPOCH + 1, every_s=EVERY_S, host=True))]


def test_samples_come_with_who_has_read_them() -> None:
    server = FROM_SERVER["hello"]
    assert isinstance(server, Hello)
    broker = source_of(server)
    it = watch_of({b"a": SUBSCRIBERS, b"k": broker})
    busy = Sample(6, None, [BusyThread(1, "x", 50.0)])
    it.heard(b"k", readings(EPOCH, busy, SAMPLE), NOW)
    it.heard(b"a", readings(EPOCH, SAMPLE), NOW)
    assert it.samples() == [(broker, busy), (broker, SAMPLE), (SUBSCRIBERS, SAMPLE)]
