"""The address that Prometheus reads: its metrics, and the last read that it waits for."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from types import SimpleNamespace

import pytest

pytest.importorskip("prometheus_client", reason="pip install '.[metrics]'")

from prometheus_client.parser import text_string_to_metric_families

from hydra.errors import UsageError
from hydra.monitor import prometheus
from hydra.monitor.prometheus import PrometheusEndpoint
from tests.metrics.samples import exposed
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("test")


@pytest.fixture
def endpoint() -> Iterator[PrometheusEndpoint]:
    with closing(PrometheusEndpoint("127.0.0.1", 0, exposed)) as it:
        yield it


def read(endpoint: PrometheusEndpoint) -> str:
    with urllib.request.urlopen(endpoint.url, timeout=SOON_S) as answer:
        text: str = answer.read().decode()
    return text


def test_what_is_read_is_what_is_told(endpoint: PrometheusEndpoint) -> None:
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for metric in text_string_to_metric_families(read(endpoint))
        for sample in metric.samples
    }
    for family in exposed():
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        for labels, value in family.samples:
            assert found.pop((name, frozenset(labels.items()))) == value
        for labels, counted in family.distributions:
            assert found.pop((f"{name}_count", frozenset(labels.items()))) == counted.count
            assert found.pop((f"{name}_sum", frozenset(labels.items()))) == counted.sum_s
            assert found[f"{name}_bucket", frozenset({**labels, "le": "+Inf"}.items())] == counted.count
    assert {name for name, _ in found} == {"hydra_latency_seconds_bucket"}


def test_buckets_count_all_that_is_below_their_bound(endpoint: PrometheusEndpoint) -> None:
    buckets = [line.split()[-1] for line in read(endpoint).splitlines() if line.startswith("hydra_latency_seconds_b")]
    counts = [float(count) for count in buckets]
    assert counts == sorted(counts)
    # 120 µs, and 120 ms: between 100 and 200 each.
    assert counts[3:5] == [0, 1]
    assert counts[12:14] == [1, 2]


def test_nobody_is_waited_for_who_has_not_read_twice(endpoint: PrometheusEndpoint) -> None:
    assert endpoint.wait_s() == 0
    read(endpoint)
    assert endpoint.wait_s() == 0


def test_whoever_reads_regularly_reads_once_more(endpoint: PrometheusEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = count(100.0, 2.0)
    monkeypatch.setattr(prometheus, "time", SimpleNamespace(monotonic=lambda: next(clock_s)))
    read(endpoint)
    read(endpoint)
    wait_until(lambda: endpoint.wait_s() == 1.5 * 2 + 1, "patience for one more", saw=endpoint.wait_s)
    assert not endpoint.await_read(0)
    with ThreadPoolExecutor() as others:
        came = others.submit(endpoint.await_read, SOON_S)
        wait_until(lambda: read(endpoint) and came.done(), "the end of the wait for a read")
    assert came.result()


def test_a_port_is_free_when_it_is_closed(endpoint: PrometheusEndpoint) -> None:
    port = int(endpoint.url.split(":")[2].partition("/")[0])
    with pytest.raises(UsageError, match="Address already in use"):
        PrometheusEndpoint("127.0.0.1", port, exposed)
    endpoint.close()
    PrometheusEndpoint("127.0.0.1", port, exposed).close()


def test_it_listens_at_the_longer_addresses_too() -> None:
    with socket.socket(socket.AF_INET6) as it:
        try:
            it.bind(("::1", 0))
        except OSError as e:
            pytest.skip(f"there is no ::1 here: {e}")
    with closing(PrometheusEndpoint("::1", 0, exposed)) as six:
        assert "hydra_steps_total" in read(six)
