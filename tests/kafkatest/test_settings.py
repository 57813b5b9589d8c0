from __future__ import annotations

from typing import Any

import pytest

from hydra.kafkatest.achieved import Sent, Statistics
from hydra.kafkatest.settings import KafkaSettings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"idempotence": True}, "idempotence needs acks all, not 1"),
        (
            {"idempotence": True, "acks": "all", "max_in_flight": 6},
            "idempotence needs max_in_flight of at most 5, not 6",
        ),
        ({"idempotence": True, "acks": "all", "retries": 0}, "idempotence needs retries above 0"),
        ({"delivery_timeout_ms": 5, "linger_ms": 5.0}, "delivery_timeout_ms must be above linger_ms (5), not 5"),
    ],
)
def test_what_cannot_go_together_is_refused_in_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="^" + said.replace("(", r"\(").replace(")", r"\)") + "$"):
        KafkaSettings(**settings)


def test_what_was_achieved_is_the_difference_of_two_moments() -> None:
    before = Sent(records=10, batches=10, requests=10, payload_bytes=1_000, wire_bytes=2_000)
    after = Sent(records=1_010, batches=20, requests=15, payload_bytes=101_000, wire_bytes=52_000)
    assert (after - before).figures() == {
        "records_per_batch": 100.0,
        "records_per_request": 200.0,
        "wire_bytes": 50_000,
        "compression_ratio": 2.0,
    }
    assert (after - after).figures() == {}


def test_librdkafkas_statistics_are_read_for_what_is_asked() -> None:
    statistics = Statistics()
    assert statistics.so_far() == Sent()
    statistics(
        '{"txmsgs":7,"txmsg_bytes":700,"tx_bytes":900,"x":[],"brokers":{"a":{"req":{"Produce":2}},"b":{"req":{}}}}'
    )
    assert statistics.so_far() == Sent(7, 2, 2, 700, 900)
    assert statistics.fresh(lambda: None, 3) is None
    assert statistics.fresh(lambda: statistics('{"txmsgs":8}'), 1) == Sent(8)
