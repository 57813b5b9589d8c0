"""What consumers read ahead is counted, and limited so that every row fits that can fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hydra.config.cluster import load_cluster
from hydra.config.read_ahead import ahead_limit, kept_limit
from hydra.config.resource_needs import ahead_bytes
from hydra.config.scenario import resolve
from hydra.config.shortages import check_row
from hydra.kafkatest.settings import spec_of
from tests.limits.machines import AMPLE, GB

NATIVE = {"client": "native", "sweep.clients": [1000], "settings.rate": "max"}


@pytest.mark.parametrize(
    ("changes", "client_bytes"),
    [
        # A message of 100 B takes 350 B; a fetch of 1 MiB has 9,533 of them, with 10 B more each.
        ({}, 350 * (100_000 + 9533)),
        ({"client": "confluent-kafka"}, 350 * (100_000 + 9533)),
        ({"client": "kafka-python"}, 0),
        ({"kafka.partitions": 3}, 3 * 350 * (100_000 + 9533)),
        ({"settings.message_size": 10_000}, 10_250 * (6710 + 105)),  # the limit of 64 MiB
        ({"settings.rate": 100, "sweep.duration_s": 10}, 350 * 1000),  # all that is sent
        ({"kafka.read_ahead": 2000}, 350 * (2000 + 9533)),
        ({"kafka.properties": {"queued.min.messages": "3000"}}, 350 * (3000 + 9533)),
        ({"settings.group": "g"}, 350 * (100_000 + 9533) / 1000),  # the members share its partition
    ],
)
def test_the_read_ahead_of_a_subscriber(changes: dict[str, Any], client_bytes: float) -> None:
    resolved = resolve("kafka-fixed", NATIVE | {"settings.message_size": 100} | changes)
    assert ahead_bytes(resolved, 1, 1000) == pytest.approx(1000 * client_bytes)


@pytest.mark.parametrize(
    ("changes", "memory_gb", "limited"),
    [
        ({}, 64, False),
        ({}, 24, True),
        ({}, 20, True),
        ({}, 6, False),  # the clients and one fetch of each do not fit
        ({"kafka.read_ahead": 90_000}, 24, False),
        ({"kafka.properties": {"queued.min.messages": "90000"}}, 24, False),
        ({"sweep.clients": [10, 1000, 100_000]}, 24, True),  # the last row never fits
        ({"kafka.properties": {"queued.min.messages": "many"}}, 24, False),  # rejected later, with its name
        ({"sweep.clients": None, "sweep.points": [{"name": "a", "clients": 0}]}, 24, False),
    ],
)
def test_a_run_that_would_not_fit_limits_all_rows_alike(changes: dict[str, Any], memory_gb: int, limited: bool) -> None:
    resolved = resolve("kafka-fixed", NATIVE | changes)
    machine, cluster = replace(AMPLE, memory_available_bytes=memory_gb * GB), load_cluster()
    limit = ahead_limit(resolved, cluster, machine)
    assert (limit is not None) is limited
    if limit is None:
        return
    assert not check_row(resolved, cluster, machine, (1, 1000)).fits
    found = kept_limit(resolved, limit.override)
    assert check_row(found, cluster, machine, (1, 1000)).fits
    assert spec_of(found.scenario).read_ahead == limit.messages < limit.usual == 100_000
    assert ahead_limit(found, cluster, machine) is None
