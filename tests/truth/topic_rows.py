"""What a run with several topics must count, compared with what a plain subscriber of the hottest topic has counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from hydra.store.database import RunStore
from hydra.wire.traffic import client_topics, traffic_of
from tests.integration.command import assert_all_arrived
from tests.suite.waiting import wait_until

TOPICS: Final = (
    *("--clients", 3, "--rate", 300, "--duration", 0.5),
    *("--topics", 3, "--topic-skew", 1, "--topics-per-client", 1, "--message-sizes", "24-40:3,100-2000:1"),
)
"""Three subscribers of one topic each: of the seed, each topic has one. A witness that can only subscribe when the
publisher is there needs a warm-up, in which it does."""


def assert_every_topic(rows: list[dict[str, str]], topics: int) -> None:
    """Checks rows of two subscribers that have all topics, at 200/s for 0.3 s."""
    assert rows
    for row in rows:
        copies = str(2 * int(row["total_tx"]))
        assert (row["topics"], row["reordered"], row["copies_expected"]) == (str(topics), "0", copies)
        assert_all_arrived(row, 60)


def assert_counted_alike(run: Path, hottest: Counter[int]) -> None:
    """Holds the sums of the only step against the messages of topic 0 that a witness saw, by epoch."""
    with RunStore.open(run) as store:
        (result,) = store.results()
        clients = store.clients(result.epoch)
    figures, traffic = result.figures, traffic_of(result.plan.settings)
    got = {c["client"]: c["messages"] for c in clients if c["role"] == "subscriber"}
    sent = sum(c["messages"] for c in clients if c["role"] == "publisher")
    by_topic: dict[int, set[int]] = {}
    for client, messages in got.items():
        (topic,) = client_topics(traffic, client)
        by_topic.setdefault(topic, set()).add(messages)
    wait_until(lambda: by_topic[0] == {hottest[result.epoch]}, f"{by_topic[0]} messages", saw=lambda: hottest)
    # Every message has one topic, and all subscribers of a topic got the same.
    assert sorted(by_topic) == [0, 1, 2]
    assert sum(sum(counts) for counts in by_topic.values()) == sent == figures["total_tx"]
    assert (figures["topics"], figures["copies_expected"]) == (3, sum(got.values()))
    assert (figures["lost"], figures["extra"], figures["reordered"], figures["failed_clients"]) == (0, 0, 0, 0)
    assert (figures["hot_topics_loss_pct"], figures["other_topics_loss_pct"]) == (0, 0)
    assert isinstance(figures["hot_topics_p99_us"], int)
