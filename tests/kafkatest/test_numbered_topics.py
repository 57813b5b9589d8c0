"""Runs with several topics and keys: the account, the order by key, and what is left on the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics
from tests.integration.command import assert_all_arrived, hydra, table
from tests.suite.native_client import needs_native

pytestmark = pytest.mark.tier("test")

FIXED = ("--set", "warmup_s=0", "--rate", 200, "--duration", 0.3, "--clients", 2)
ALL = pytest.mark.tier("all")


@pytest.mark.parametrize(
    ("client", "keys"),
    [
        ("confluent-kafka", 5),
        pytest.param("confluent-kafka", 0, marks=ALL),
        pytest.param("kafka-python", 5, marks=ALL),
        pytest.param("kafka-python", 0, marks=ALL),
        pytest.param("native", 5, marks=[ALL, needs_native]),
        pytest.param("native", 0, marks=[ALL, needs_native]),
    ],
)
def test_all_topics_that_were_made_are_deleted_and_the_order_by_key_is_kept(
    client: str, keys: int, broker: LocalBroker, topics: Topics, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    varied = ("--set", "sweep.vary={topics=[4,1]}", "--keys", keys, "--set", "settings.topics_per_client=2")
    own = ("--client", client, "--partitions", 2, "--message-sizes", "24-24:1,200-300:1")
    hydra("kafka-fixed", "--bootstrap", broker.bootstrap, *FIXED, *own, *varied, "--out", run)
    rows = table(run)
    assert [row["topics"] for row in rows] == ["4", "1"]
    for row in rows:
        if row["topics"] == "1":
            assert_all_arrived(row, 60)
        assert (row["lost"], row["extra"], row["duplicates"], row["failed_clients"]) == ("0", "0", "0", "0")
        assert row["account"] == "exact"
        assert keys == 0 or row["reordered"] == "0"
    assert not [name for name in topics.describe().topics if "run-" in name]
