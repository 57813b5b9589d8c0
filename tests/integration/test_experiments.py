"""Published experiments in miniature, on real brokers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.integration.command import hydra

pytestmark = pytest.mark.processes

PRODUCER = r"^\d+ records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, .* ms 99\.9th\.$"
CONSUMER = r"^[\d-]+ [\d:]+, [\d-]+ [\d:]+, [\d.]+, [\d.]+, \d+, [\d.]+, \d+, \d+, [\d.]+, [\d.]+$"


whole = pytest.mark.skipif(os.environ.get("HYDRA_EXPERIMENTS") != "whole", reason="takes minutes: make soak runs it")


@pytest.mark.parametrize(
    ("name", "more", "rows", "producers", "consumers"),
    [
        ("dcos-consumer", (), 4, 2, 2),
        ("message-size-sweep", (), 5, 5, 0),
        pytest.param("linkedin-2014", ("--stored-bytes", 1_000_000), 7 + 5 + 1 + 8, 23, 6, marks=whole),
        pytest.param("dcos-record-size", (), 6 + 15, 15, 0, marks=whole),
        pytest.param("dcos-tuning", (), 6 + 15, 15, 0, marks=whole),
    ],
)
@pytest.mark.timeout(330)
def test_an_experiment_is_repeated(
    tmp_path: Path, name: str, more: tuple[object, ...], rows: int, producers: int, consumers: int
) -> None:
    folder = tmp_path / "run"
    command = ("kafka-perf", name, "--scale", 1e-6, "--implementation", "confluent-kafka", "--out", folder, "--quiet")
    ran = hydra(*command, *more, within_s=300)
    tables = json.loads((folder / "table.json").read_text())["tables"]
    measured = [row for table in tables for row in table["rows"]]
    assert len(measured) == rows
    assert {row["account"] for row in measured if "account" in row} == {"exact"}
    assert all(row["records_per_sec"] > 0 for row in measured if "records_per_sec" in row)
    compared = [row for row in measured if "records_per_sec_ratio" in row]
    assert all(row["records_per_sec_ratio"] for row in compared if row["records_per_sec_published"])
    assert len(re.findall(PRODUCER, ran.stdout, re.MULTILINE)) == producers
    assert len(re.findall(CONSUMER, ran.stdout, re.MULTILINE)) == consumers
    again = hydra("kafka-perf", "--resume", folder, "--json")
    assert json.loads(again.stdout)["tables"] == tables, "everything is kept"
