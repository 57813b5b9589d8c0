"""What is pushed to an OpenTelemetry receiver, and what is known of one that does not take it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[metrics]'")

from hydra.monitor.otlp import OtlpPusher
from tests.metrics.receiver import receiving
from tests.metrics.samples import exposed
from tests.suite.waiting import wait_until

pytestmark = pytest.mark.tier("test")


def labels(point: Any) -> dict[str, str]:
    return {label.key: label.value.string_value for label in point.attributes}


def test_what_is_received_is_what_is_told() -> None:
    with receiving() as receiver:
        pusher = OtlpPusher(receiver.url, exposed)
        pusher.close()  # the last push comes at the end, however early that is
    assert not pusher.failed
    assert receiver.paths == {"/v1/metrics"}
    assert receiver.metrics.keys() == {family.name for family in exposed()}
    for family in exposed():
        metric = receiver.metrics[family.name]
        assert (metric.unit, metric.description) == (family.unit, family.help)
        points = metric.sum.data_points if family.kind == "counter" else metric.gauge.data_points
        assert [(labels(p), p.as_double or p.as_int) for p in points] == family.samples
        for point, (of, counted) in zip(metric.histogram.data_points, family.distributions, strict=True):
            assert labels(point) == of
            assert (tuple(point.bucket_counts), point.sum) == (counted.counts, counted.sum_s)


def test_pushes_follow_each_other() -> None:
    mock = Mock(wraps=exposed)
    with receiving() as receiver:
        pusher = OtlpPusher(receiver.url, mock, every_s=0.01)
        wait_until(lambda: mock.call_count > 2, "three pushes")
        pusher.close()
    assert not pusher.failed


def test_nothing_is_pushed_before_there_is_a_run() -> None:
    with receiving() as receiver:
        OtlpPusher(receiver.url, list).close()
    assert receiver.paths == set()


@pytest.mark.parametrize("path", ["", "/", "/v1/metrics", "/of/mine"])
def test_a_path_of_the_users_stays(path: str) -> None:
    with receiving() as receiver:
        OtlpPusher(receiver.url + path, exposed).close()
    assert receiver.paths == {path if path.strip("/") else "/v1/metrics"}


def test_a_receiver_that_refuses_has_failed() -> None:
    with receiving(404) as receiver:
        pusher = OtlpPusher(receiver.url, exposed)
        pusher.close()
    assert pusher.failed
