"""What servers counted: rates between two samples, and the columns of a row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.measure.observation import CPU, ServerFigures, ServerSample, between, with_cpu
from hydra.model import Figure
from tests.measure.observations import observed
from tests.suite.figures import figures

MB = 1e6
FIRST = {"a": {"in_bytes_total": 10.0, "heap_bytes": 4.0}, "b": {"in_bytes_total": 10.0}}


def sample(seconds: float, figures: ServerFigures) -> ServerSample:
    return ServerSample(round(seconds * 1e9), figures)


@pytest.mark.parametrize(
    ("last", "rates"),
    [
        ({"a": {"in_bytes_total": 30.0, "heap_bytes": 8.0}}, {"a": {"in_bytes_per_s": 10.0, "heap_bytes": 6.0}}),
        ({"a": {"in_bytes_total": 5.0, "heap_bytes": 8.0}}, {"a": {"heap_bytes": 6.0}}),
        ({"c": {"in_bytes_total": 5.0}}, {}),
        ({"a": {"new_total": 5.0}}, {"a": {}}),
    ],
)
def test_counters_become_rates_and_gauges_means(last: ServerFigures, rates: ServerFigures) -> None:
    assert between(sample(1, FIRST), sample(3, last)) == rates


def columns(servers: ServerFigures) -> dict[str, Figure]:
    found = figures(replace(observed(), servers=servers))
    return {name: value for name, value in found.items() if name.startswith("server_")}


def test_a_row_has_the_means_over_the_servers() -> None:
    more = {"replication_in_bytes_per_s": 4 * MB, "messages_per_s": 100.0}
    servers = {
        "a": {"in_bytes_per_s": 2 * MB, "out_bytes_per_s": MB, "cpu_seconds_per_s": 0.5, **more},
        "b": {"in_bytes_per_s": 2 * MB, "out_bytes_per_s": 3 * MB, "cpu_seconds_per_s": 1.5},
    }
    rates = {"server_in_mb_s": 4.0, "server_out_mb_s": 2.0, "server_messages_s": 100.0}
    assert columns(servers) == {"server_cpu_pct": 100.0, **rates}
    # What is unknown is no figure.
    assert columns({}) == {}
    assert columns({"a": {"heap_bytes": 1.0}}) == {}
    assert columns({"a": {CPU: 0.25}}) == {"server_cpu_pct": 25.0}


def test_processes_of_servers_show_the_cpu_time_that_no_server_reports() -> None:
    sampled = {"server 1": {CPU: 0.5}}
    assert with_cpu({}, sampled) == sampled
    assert with_cpu({"broker 1": {"heap_bytes": 1.0}}, {}) == {"broker 1": {"heap_bytes": 1.0}}
    assert with_cpu({"broker 1": {CPU: 0.4}}, sampled) == {"broker 1": {CPU: 0.4}}
