"""The address that Prometheus reads: what it says, and whom it waits for."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hydra.errors import UsageError
from hydra.metrics.families import Family, families
from tests.metrics.samples import running

pytest.importorskip("prometheus_client", reason="pip install '.[metrics]'")

if TYPE_CHECKING:
    from hydra.metrics.prometheus import PrometheusEndpoint


def told() -> list[Family]:
    return families([running().snapshot])


@pytest.fixture
def endpoint() -> Iterator[PrometheusEndpoint]:
    from hydra.metrics.prometheus import PrometheusEndpoint

    it = PrometheusEndpoint("127.0.0.1", 0, told)
    yield it
    it.close()


def read(endpoint: PrometheusEndpoint) -> str:
    with urllib.request.urlopen(endpoint.url, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def test_what_is_read_is_what_is_told(endpoint: PrometheusEndpoint) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for metric in text_string_to_metric_families(read(endpoint))
        for sample in metric.samples
    }
    for family in told():
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        for labels, value in family.samples:
            assert found.pop((name, frozenset(labels.items()))) == value
        for labels, counted in family.distributions:
            assert found.pop((f"{name}_count", frozenset(labels.items()))) == counted.count
            assert found.pop((f"{name}_sum", frozenset(labels.items()))) == counted.sum_s
            last = {**labels, "le": "+Inf"}
            assert found[f"{name}_bucket", frozenset(last.items())] == counted.count
    assert {name for name, _ in found} == {"hydra_latency_seconds_bucket"}


def test_buckets_count_all_that_is_below_their_bound(endpoint: PrometheusEndpoint) -> None:
    buckets = [line.split()[-1] for line in read(endpoint).splitlines() if line.startswith("hydra_latency_seconds_b")]
    counts = [float(count) for count in buckets]
    assert counts == sorted(counts)
    # 120 µs, and 120 ms: between 100 and 200 each.
    assert counts[3:5] == [0, 1]
    assert counts[12:14] == [1, 2]


def test_nobody_is_waited_for_who_has_not_read_twice(endpoint: PrometheusEndpoint) -> None:
    assert endpoint.patience_s() == 0
    read(endpoint)
    assert endpoint.patience_s() == 0


def test_whoever_reads_regularly_reads_once_more(endpoint: PrometheusEndpoint) -> None:
    read(endpoint)
    read(endpoint)
    assert 1 < endpoint.patience_s() < 60
    assert not endpoint.await_read(0.05)
    reader = threading.Timer(0.05, read, [endpoint])
    reader.start()
    assert endpoint.await_read(20)
    reader.join()


def test_a_port_is_free_when_it_is_closed(endpoint: PrometheusEndpoint) -> None:
    from hydra.metrics.prometheus import PrometheusEndpoint

    port = int(endpoint.url.split(":")[2].partition("/")[0])
    with pytest.raises(UsageError, match="Address already in use"):
        PrometheusEndpoint("127.0.0.1", port, told)
    endpoint.close()
    PrometheusEndpoint("127.0.0.1", port, told).close()


def test_it_listens_at_the_longer_addresses_too() -> None:
    from hydra.metrics.prometheus import PrometheusEndpoint

    with socket.socket(socket.AF_INET6) as it:
        try:
            it.bind(("::1", 0))
        except OSError as e:
            pytest.skip(f"there is no ::1 here: {e}")
    six = PrometheusEndpoint("::1", 0, told)
    try:
        assert "hydra_steps_total" in read(six)
    finally:
        six.close()
