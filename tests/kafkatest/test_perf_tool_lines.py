"""The lines of Kafka's performance tools: read from their real output, and written as they write them."""

from __future__ import annotations

import re
import time

import pytest

from hydra.kafkatest.perf_tool_lines import (
    CONSUMER_HEADER,
    ConsumerOutput,
    ProducerOutput,
    consumer_line,
    producer_line,
)

SUMMARY = (
    "5000000 records sent, 260783.393314 records/sec (62.18 MB/sec), 3.79 ms avg latency, 278.00 ms max latency, "
    "3 ms 50th, 9 ms 95th, 21 ms 99th, 60 ms 99.9th."
)
"""Published in 2018; the tools of Kafka 4 write the same form."""
FIGURES = {
    "records": 5_000_000,
    "records_per_sec": 260783.393314,
    "mb_per_sec": 62.18,
    "avg_latency_ms": 3.79,
    "max_latency_ms": 278.0,
    "p50_ms": 3,
    "p95_ms": 9,
    "p99_ms": 21,
    "p99_9_ms": 60,
}
NOTHING = (
    "0 records sent, 0.000000 records/sec (0.00 MB/sec), NaN ms avg latency, 0.00 ms max latency, 0 ms 50th, "
    "0 ms 95th, 0 ms 99th, 0 ms 99.9th."
)
TOO_LARGE = (
    "org.apache.kafka.common.errors.RecordTooLargeException: The message is 3000088 bytes when serialized which is "
    "larger than 1048576, which is the value of the max.request.size configuration."
)
UNREACHABLE = "00:22:49.090 WARN NetworkClient: [Producer clientId=hydra-1] Connection to node -1 could not be made."
CONSUMED = (
    "2026-11-22 00:22:47:151, 2026-11-22 00:22:47:841, 1.9264, 2.7919, 22000, 31884.0580, 429, 261, 7.3809, 84291.1877"
)
CONSUMED_FIGURES = {
    "mb_consumed": 1.9264,
    "mb_per_sec": 2.7919,
    "messages": 22_000,
    "records_per_sec": 31884.058,
    "rebalance_ms": 429,
    "fetch_ms": 261,
    "fetch_mb_per_sec": 7.3809,
    "fetch_records_per_sec": 84291.1877,
}
BEGAN_NS = 1_795_306_967_151_000_000
"""2026-11-22 00:22:47.151 UTC."""


@pytest.mark.parametrize(
    ("lines", "reported", "figures", "complaint"),
    [
        (
            [
                "1 records sent, 2.6 records/sec (0.00 MB/sec), 379.0 ms avg latency, 379.0 ms max latency.",
                # As before Kafka 4.
                "943363 records sent, 188672.6 records/sec (44.98 MB/sec), 5.8 ms avg latency, 278.0 max latency.",
                SUMMARY,
            ],
            943_364,
            FIGURES,
            "",
        ),
        ([UNREACHABLE], 0, {}, UNREACHABLE.partition(": ")[2]),
        (
            [UNREACHABLE, TOO_LARGE, TOO_LARGE.replace("3000088", "9"), UNREACHABLE, NOTHING],
            0,
            {name: 0 for name in FIGURES if name != "avg_latency_ms"},
            TOO_LARGE.rpartition("errors.")[2].replace("Recor", "threw Recor"),
        ),
        (["", "some word"], 0, {}, ""),
    ],
)
def test_the_producers_output(lines: list[str], reported: int, figures: dict[str, int | float], complaint: str) -> None:
    output = ProducerOutput()
    for line in lines:
        output.read(line)
    assert (output.records, output.figures, output.complaint) == (reported, figures, complaint)


def test_the_producers_metrics() -> None:
    output = ProducerOutput()
    for line in (
        "Metric Name                                                        Value",
        "producer-metrics:records-per-request-avg:{client-id=hydra-0}         : 150.376",
        "producer-metrics:compression-rate-avg:{client-id=hydra-0}            : NaN",
        "producer-node-metrics:request-size-avg:{client-id=hydra-0, node-id=node-1} : 16000.000",
    ):
        output.read(line)
    assert output.metrics == {"records-per-request-avg": 150.376}


def test_the_consumers_output() -> None:
    output = ConsumerOutput()
    warning = "WARNING: Exiting before consuming the expected number of records: timeout (3000 ms) exceeded."
    for line in (CONSUMER_HEADER, warning, CONSUMED):
        output.read(line)
    assert output.figures == CONSUMED_FIGURES
    assert (output.began_ns, output.ended_ns - output.began_ns) == (BEGAN_NS, 690_000_000)
    assert output.waited_ms == 3000


@pytest.mark.parametrize(("figures", "line"), [(FIGURES, SUMMARY), ({}, NOTHING)])
def test_the_producers_line(figures: dict[str, float], line: str) -> None:
    assert producer_line(figures) == line


def test_the_consumers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        assert consumer_line(CONSUMED_FIGURES, BEGAN_NS) == CONSUMED
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_rate_that_is_no_number_is_left_out() -> None:
    output = ConsumerOutput()
    output.read(re.sub(r"[\d.]+, [\d.]+$", "Infinity, NaN", CONSUMED))
    unknown = {"fetch_mb_per_sec", "fetch_records_per_sec"}
    assert output.figures == {name: v for name, v in CONSUMED_FIGURES.items() if name not in unknown}
