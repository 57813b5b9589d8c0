"""Topics, keys and sizes: tables that add up, shares that follow, and topics that are drawn evenly."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.model import Settings
from hydra.wire.messages import ONE_TOPIC, Configure, Traffic, decode_from_controller, encode
from hydra.wire.traffic import alias_table, client_topics, topic_choice, topic_counts, topic_shares, traffic_of, zipf


def shares(table: list[tuple[int, int]]) -> list[float]:
    return list(map(float, topic_shares(Traffic(topics=len(table), topic_table=table))))


@pytest.mark.parametrize("weights", [[1.0], [3.0, 1.0], [1.0, 1.0, 1.0], [5.0, 0.001, 2.0, 2.0], [1e-9, 1.0]])
def test_a_table_gives_each_choice_its_share(weights: list[float]) -> None:
    assert shares(alias_table(weights)) == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-9)


def test_zipfs_law_has_the_shares_that_its_name_says() -> None:
    whole = sum(1 / k**1.2 for k in range(1, 1001))
    assert shares(zipf(1000, 1.2)) == pytest.approx([1 / k**1.2 / whole for k in range(1, 1001)], abs=1e-9)
    assert zipf(1000, 0) == []


def test_messages_get_the_topics_of_the_table() -> None:
    traffic = traffic_of(Settings(topics=20, topic_skew=1.0, payload_seed=5))
    counts = topic_counts(traffic, 3, 200_000, [])
    expected = 200_000 * topic_shares(traffic)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()
    holes = [(10, 99), (70_000, 70_004)]
    left = topic_counts(traffic, 3, 200_000, holes)
    choice = topic_choice(traffic, 3)
    names = [choice.at(n) for low, high in holes for n in range(low, high + 1)]
    assert (counts - left).tolist() == np.bincount(names, minlength=20).tolist()


def test_subscribers_have_so_many_topics_each_and_none_is_preferred() -> None:
    traffic = Traffic(seed=8, topics=50, topics_per_client=5)
    drawn = [client_topics(traffic, client) for client in range(2000)]
    assert all(topics == sorted(set(topics)) and len(topics) == 5 for topics in drawn)
    counts = np.bincount([topic for topics in drawn for topic in topics], minlength=50)
    assert (np.abs(counts - 200) < 5 * np.sqrt(200)).all()
    # Probes and end markers reach every client.
    assert all(topics[0] in traffic.probed for topics in drawn)


def test_a_step_without_topics_has_no_traffic_on_the_wire() -> None:
    assert traffic_of(Settings()) is ONE_TOPIC
    assert traffic_of(Settings(topics=3, topics_per_client=5)) == Traffic(topics=3)
    several = traffic_of(Settings(topics=2, keys=3, key_skew=1.0, message_sizes="24-24:1,100-200:3"))
    command = Configure(epoch=1, number=1, settings=Settings(burst=1), publishers=[], probe=False, traffic=several)
    frame = encode(command)
    reported = decode_from_controller(frame)
    assert isinstance(reported, Configure)
    assert reported.drawn == several
    assert (several.sizes, len(several.size_table), len(several.key_table)) == ([(24, 24), (100, 200)], 2, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"topics": 2, "topic_table": [[0, 0]]},
        {"topics": 2, "topic_table": [[0, 0], [0, 2]]},
        {"keys": 1, "key_table": [[0, 0], [0, 0]]},
        {"topics": 2, "topics_per_client": 3},
        {"sizes": [[23, 24]]},
        {"sizes": [[30, 29]]},
    ],
)
def test_impossible_traffic_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Traffic(**wrong)  # type: ignore[arg-type]
