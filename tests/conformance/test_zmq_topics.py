"""What ZMQ clients must do about several topics, and about sizes that are drawn."""

from __future__ import annotations

from hydra.model import HotTopicCounts, LedgerCounts
from hydra.wire.messages import Progress, Ready, Traffic
from hydra.wire.traffic import alias_table, client_topics, size_choice, topic_choice, zipf
from tests.conformance.bench import CLIENT, ONE, OTHER, Bench, step_settings
from tests.conformance.zmq_ends import Listener
from tests.conformance.zmq_subscribing import DEEP, endpoints, running, speakers

SOME = Traffic(seed=4, topics=20, topic_table=zipf(20, 1.0), topics_per_client=6)
DRAWN = Traffic(seed=4, topics=5, sizes=[(24, 30), (40, 300)], size_table=alias_table([2.0, 1.0]))


def test_a_publisher_spreads_messages_over_topics_and_sizes(publisher: Bench) -> None:
    settings = step_settings(sndhwm=0, rate=500.0, message_size=300)
    endpoint = publisher.configure_publisher(CLIENT, 1, settings, traffic=DRAWN)
    listener = Listener(publisher.peer, endpoint, topics=True)
    listener.await_probe(1)
    _, report = publisher.publish(CLIENT, 1, 0.3, after_s=0.1)
    publisher.peer.wait(lambda: len(listener.data(1)) >= report.sent, "all messages")
    publisher.peer.wait(lambda: bool(listener.end_markers(1)), "an end marker")
    topic, sizes = topic_choice(DRAWN, CLIENT), size_choice(DRAWN, CLIENT).of(0, report.sent).tolist()
    assert [(m.sequence, m.topic, m.size) for m in listener.data(1)] == [
        (n, topic.at(n), sizes[n]) for n in range(report.sent)
    ]
    assert report.bytes == sum(sizes)
    assert {m.topic for m in [*listener.probes(), *listener.end_markers()]} == {0}


def test_a_publisher_probes_so_many_topics_that_each_subscriber_has_one(publisher: Bench) -> None:
    settings = step_settings(sndhwm=0, rate=500.0)
    listener = Listener(publisher.peer, publisher.configure_publisher(CLIENT, 2, settings, traffic=SOME), topics=True)
    publisher.peer.wait(lambda: len({m.topic for m in listener.probes(2)}) == 15, "probes of 15 topics")
    publisher.publish(CLIENT, 2, 0.1)
    publisher.peer.wait(lambda: len({m.topic for m in listener.end_markers(2)}) == 15, "end markers of 15 topics")
    assert {m.topic for m in [*listener.probes(2), *listener.end_markers(2)]} == set(range(15))


def test_a_subscriber_has_an_exact_account_of_its_topics(subscriber: Bench) -> None:
    bench = subscriber
    own = client_topics(SOME, CLIENT)
    one, other = speakers(bench, ONE, OTHER)
    bench.configure_subscribers([CLIENT], 3, DEEP, publishers=endpoints(one, other), progress_s=0.02, traffic=SOME)
    first: dict[int, list[int]] = {}
    topics = {each.publisher: topic_choice(SOME, each.publisher) for each in (one, other)}
    for each in (one, other):
        each.await_subscriptions(len(own))
        for topic in SOME.probed:
            each.probe(3, topic=lambda _, it=topic: it)  # type: ignore[misc]
        first[each.publisher] = [n for n in range(600) if topics[each.publisher].at(n) in own]
    bench.peer.heard(Ready, [CLIENT], epoch=3)
    running(bench, 3)
    # Of ONE three in a row of its own are lost, one comes twice; of OTHER the last is lost.
    lost = first[ONE][10:13]
    one.send(3, [n for n in range(600) if n not in lost], size=50, topic=topics[ONE].at)
    one.send(3, [first[ONE][20]], size=50, topic=topics[ONE].at)
    other.send(3, range(first[OTHER][-1]), topic=topics[OTHER].at)
    messages = len(first[ONE]) - 3 + 1 + len(first[OTHER]) - 1
    bench.peer.wait(
        lambda: any(p.messages >= messages for p in bench.peer.messages_of(Progress, CLIENT, epoch=3)), "all messages"
    )
    report = bench.subscriber_report(CLIENT, 3, {ONE: 600, OTHER: 600}, quiet_s=0.3)
    got = len(first[ONE]) - 3, len(first[OTHER]) - 1
    assert report.ledgers == [
        LedgerCounts(ONE, got[0], got[0], 3, [(lost[0], lost[-1])], duplicates=1),
        LedgerCounts(OTHER, got[1], got[1], 1, [(first[OTHER][-1], first[OTHER][-1])]),
    ]
    assert report.bytes == 50 * (got[0] + 1) + 24 * got[1]
    hot = [[n for n in first[p] if topics[p].at(n) < 2] for p in (ONE, OTHER)]
    missing = len({*hot[0]} & {*lost}) + (first[OTHER][-1] in hot[1])
    assert report.hot == HotTopicCounts(len(hot[0]) + len(hot[1]), missing)


def test_a_subscriber_with_a_pattern_hears_all_topics(subscriber: Bench) -> None:
    traffic = Traffic(topics=30, wildcard=True)
    (one,) = speakers(subscriber, ONE)
    subscriber.configure_subscribers([CLIENT], 4, DEEP, publishers=endpoints(one), traffic=traffic)
    one.await_subscriptions(1)
    one.probe(4, topic=lambda _: 0)
    subscriber.peer.heard(Ready, [CLIENT], epoch=4)
    running(subscriber, 4)
    one.send(4, range(100), topic=topic_choice(traffic, ONE).at)
    (ledger,) = subscriber.subscriber_report(CLIENT, 4, {ONE: 100}).ledgers
    assert (ledger.received, ledger.missing) == (100, 0)
