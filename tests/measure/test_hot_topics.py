"""What each subscriber of some topics expects, and the tenth of topics with most traffic beside the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hydra.measure.loss import expected, outcomes_of_all, step_subscribers, without
from hydra.measure.loss_pattern import loss_profile
from hydra.model import Histogram, HotTopicCounts, LedgerCounts, Settings
from hydra.wire.subscriber_table import table_of
from hydra.wire.traffic import client_topics, topic_choice, traffic_of
from tests.measure.observations import observed, reporting
from tests.measure.reports import published, received
from tests.suite.figures import figures

SETTINGS = Settings(rate=100.0, topics=12, topic_skew=1.0, topics_per_client=3)
TRAFFIC = traffic_of(SETTINGS)


def count(publisher: int, client: int, sent: int) -> int:
    topic, own = topic_choice(TRAFFIC, publisher), client_topics(TRAFFIC, client)
    return sum(topic.at(n) in own for n in range(sent))


def test_a_subscriber_of_some_topics_expects_their_messages_dead_or_alive() -> None:
    due = expected({0: published(1000), 5: published(500)}, traffic=TRAFFIC)
    whole = [count(0, client, 1000) + count(5, client, 500) for client in (7, 8)]
    assert due.of(np.array([7, 8])).tolist() == whole
    one = expected({0: published(1000), 5: published(500)}, one_publisher=True, traffic=TRAFFIC)
    assert one.of(np.array([7, 8])).tolist() == [count(5, 7, 500), count(0, 8, 1000)]
    # One lost 4, the other died after it had reported 10.
    found = outcomes_of_all(step_subscribers([7, 8], table_of({7: received(whole[0] - 4, lost=4)})), due, 10, {8: 10})
    assert (found.expected.tolist(), found.lost.tolist()) == (whole, [4, whole[1] - 10])


def test_unacknowledged_messages_are_expected_of_nobody() -> None:
    refused = published(1000, acknowledged=990, unacknowledged=[(0, 9)])
    topic, own = topic_choice(TRAFFIC, 0), client_topics(TRAFFIC, 7)
    due = expected({0: refused}, traffic=TRAFFIC)
    assert due.of(np.array([7])).tolist() == [count(0, 7, 1000) - sum(topic.at(n) in own for n in range(10))]


def test_a_row_has_the_hot_tenth_beside_the_rest() -> None:
    o = observed()
    assert "topics" not in figures(o)
    hot = HotTopicCounts(400, 4, Histogram([900, 396], 900, 900))
    reports = [
        received(got, lost=20, latency_us=50, hot=hot) for got in (count(0, client, 1000) - 20 for client in (1, 2))
    ]
    reports = [replace(r, latency=Histogram([50, 100, 900, 396], 50, 900)) for r in reports]
    found = figures(replace(o, plan=replace(o.plan, settings=SETTINGS), subscriber_reports=reporting(*reports)))
    copies = count(0, 1, 1000) + count(0, 2, 1000)
    assert (found["topics"], found["copies_expected"], found["lost"]) == (12, copies, 40)
    assert found["hot_topics_loss_pct"] == 1.0
    assert found["other_topics_loss_pct"] == pytest.approx(3200 / (copies - 800))
    assert (found["hot_topics_p99_us"], found["other_topics_p99_us"]) == (900, 50)
    cut = figures(
        replace(
            o,
            plan=replace(o.plan, settings=SETTINGS),
            subscriber_reports=reporting(reports[0], received(5, lost=2, drain="deadline")),
        )
    )
    assert (cut["hot_topics_loss_pct"], cut["other_topics_loss_pct"]) == (None, None)


def test_a_part_of_a_histogram_leaves_the_rest() -> None:
    assert without(Histogram([3, 5, 9, 2], 3, 9), Histogram([3, 5], 3, 3)).counts == [9, 2]
    assert without(Histogram([3, 5], 3, 3), Histogram([3, 5], 3, 3)) == Histogram()


def test_ranges_that_span_other_topics_lose_as_many_as_are_missing() -> None:
    """Ten missing messages in a range of 100 sequences, of a subscriber that expects a tenth of all."""
    ledger = LedgerCounts(0, 90, 90, 10, [(500, 599)])
    profile = loss_profile(table_of({1: replace(received(90), ledgers=[ledger])}), 100.0, 10.0, 0.1)
    assert profile.sum() / len(profile) == pytest.approx(0.1)
    assert profile.max() == pytest.approx(1.0)
