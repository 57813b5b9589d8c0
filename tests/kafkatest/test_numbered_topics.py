"""Runs with several topics and keys: the account, the order by key, and what is left on the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.topics import Topics
from tests.integration.command import assert_all_arrived, hydra, table

pytestmark = pytest.mark.tier("test")

FIXED = ("--set", "warmup_s=0", "--rate", 200, "--duration", 0.4, "--clients", 3)


@pytest.mark.parametrize("client", ["confluent-kafka", pytest.param("kafka-python", marks=pytest.mark.tier("all"))])
def test_topics_and_keys_vary_and_all_that_was_made_is_deleted(
    client: str, broker: EmbeddedBroker, topics: Topics, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    varied = ("--set", "sweep.vary={topics=[4,1],keys=[0,5]}", "--set", "settings.topics_per_client=2")
    own = ("--client", client, "--partitions", 2, "--key-skew", 1, "--message-sizes", "24-24:1,200-300:1")
    hydra("kafka-fixed", "--bootstrap", broker.bootstrap, *FIXED, *own, *varied, "--out", run)
    rows = table(run)
    assert [(row["topics"], row["keys"]) for row in rows] == [("4", "0"), ("4", "5"), ("1", "0"), ("1", "5")]
    for row in rows:
        if row["topics"] == "1":
            assert_all_arrived(row, 80)
        assert (row["lost"], row["extra"], row["duplicates"], row["failed_clients"]) == ("0", "0", "0", "0")
        assert row["account"] == "exact"
        assert row["keys"] == "0" or row["reordered"] == "0"
    assert not [name for name in topics.describe().topics if "run-" in name]
