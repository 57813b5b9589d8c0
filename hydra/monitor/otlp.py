"""Pushes the figures to an OpenTelemetry receiver, with OpenTelemetry's library."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from hydra.monitor.metric_families import MetricFamily
from hydra.monitor.run_snapshot import BOUNDS_US, Distribution

EVERY_S: Final = 5.0
"""Seconds between two pushes."""
_FIRST_S: Final = 1.0
_PUSH_S: Final = 4.0
"""The longest time of one push, the library's retries included."""
_LAST_S: Final = 5.0
"""The longest wait for the last push at the end of the command."""
_LAST_TRY_S: Final = 1.0
"""The longest wait for the last push if an earlier one has failed."""
_PATH: Final = "/v1/metrics"


class OtlpPusher:
    """Pushes metrics in a thread of its own, from its creation until :meth:`close`.

    Args:
        url: the address of the receiver; if it has no path, the usual one is added.
        read: returns the metrics to push.
        every_s: seconds between two pushes.
    """

    def __init__(self, url: str, read: Callable[[], Sequence[MetricFamily]], every_s: float = EVERY_S) -> None:
        # The library would log every failed push between the lines of the run.
        library = logging.getLogger("opentelemetry")
        library.addHandler(logging.NullHandler())
        library.propagate = False
        self._read = read
        self._every_s = every_s
        self._began_ns = time.time_ns()
        self._resource = Resource.create({"service.name": "hydra"})
        self._scope = InstrumentationScope("hydra", version("hydra-scale"))
        self._exporter = OTLPMetricExporter(endpoint=_with_path(url), timeout=_PUSH_S)
        self._failed = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._push_until_closed, name="otlp", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether a push has failed."""
        return self._failed.is_set()

    def close(self) -> None:
        """Pushes the last figures, and waits a few seconds for that push."""
        self._closing.set()
        self._thread.join(_LAST_S if not self.failed else _LAST_TRY_S)
        if self._thread.is_alive():
            self._failed.set()
        self._exporter.shutdown()

    def _push_until_closed(self) -> None:
        # The first push is early, so a failure is reported early.
        wait_s = min(_FIRST_S, self._every_s)
        while not self._closing.wait(wait_s):
            self._push()
            wait_s = self._every_s
        self._push()

    def _push(self) -> None:
        found = self._read()
        if not found:
            return
        try:
            done = self._exporter.export(self._data(found))
        except OSError:  # earlier versions of the library raise it
            done = MetricExportResult.FAILURE
        if done is not MetricExportResult.SUCCESS:
            self._failed.set()

    def _data(self, found: Sequence[MetricFamily]) -> MetricsData:
        span = self._began_ns, time.time_ns()
        metrics = [_metric(family, span) for family in found]
        scope = ScopeMetrics(self._scope, metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def _metric(family: MetricFamily, span: tuple[int, int]) -> Metric:
    """A family in the library's form; ``span`` is the start of counting and the present, in ns."""
    began_ns, now_ns = span
    data: Sum | Gauge | Histogram
    if family.kind == "histogram":
        distributions = [_distribution(dict(labels), value, span) for labels, value in family.distributions]
        data = Histogram(distributions, AggregationTemporality.CUMULATIVE)
    else:
        points = [
            NumberDataPoint(dict(labels), began_ns if family.kind == "counter" else 0, now_ns, value)
            for labels, value in family.samples
        ]
        is_sum = family.kind == "counter"
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True) if is_sum else Gauge(points)
    return Metric(family.name, family.help, family.unit, data)


def _distribution(labels: dict[str, str], value: Distribution, span: tuple[int, int]) -> HistogramDataPoint:
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=span[0],
        time_unix_nano=span[1],
        count=value.count,
        sum=value.sum_s,
        bucket_counts=list(value.counts),
        explicit_bounds=[bound / 1e6 for bound in BOUNDS_US],
        # Hydra keeps no extremes of a whole run; they are optional in the protocol.
        min=None,  # type: ignore[arg-type]
        max=None,  # type: ignore[arg-type]
    )


def _with_path(url: str) -> str:
    """The address for pushes: users mostly give only the host and port of a receiver."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return url if slash and path else f"{scheme}://{host}{_PATH}"
