"""An address from which Prometheus reads the figures, with Prometheus' library."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from hydra.monitor.metric_families import MetricFamily
from hydra.monitor.run_snapshot import BOUNDS_US
from hydra.options.flag_types import cannot_listen, family_of, url_host

_READER_S: Final = 10.0
"""The connection of a reader that sends and receives nothing for this time is closed."""
_WAIT_FACTOR: Final = 1.5
_MORE_S: Final = 1.0
"""The wait for the last read is ``_WAIT_FACTOR`` times the time between the two reads before, and ``_MORE_S``."""
_LONGEST_S: Final = 30.0
"""A command does not wait for a reader with more seconds between its reads."""
_CLOSING_S: Final = 2.0


class PrometheusEndpoint:
    """Listens from its creation until :meth:`close`, and answers in threads of its own.

    Args:
        host: an address of this host.
        port: the port; 0: any free one.
        read: returns the present metrics.

    Attributes:
        url: the address of the metrics.

    Raises:
        UsageError: this host cannot listen at the address.
    """

    def __init__(self, host: str, port: int, read: Callable[[], Sequence[MetricFamily]]) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(read))
        self._answers = _Answers()
        try:
            kind = _Server6 if family_of(host, port) == socket.AF_INET6 else _Server
            self._server = kind((host, port), _Handler)
        except OSError as e:
            raise cannot_listen(host, port, e) from e
        self._server.set_app(self._answers.counted(make_wsgi_app(registry)))
        self.url = f"http://{url_host(host, self._server.server_port)}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="prometheus", daemon=True)
        self._thread.start()

    def wait_s(self) -> float:
        """How many seconds to wait for the next read; 0 if there were less than two reads, or they are too rare."""
        every_s = self._answers.every_s()
        return 0.0 if every_s is None or every_s > _LONGEST_S else _WAIT_FACTOR * every_s + _MORE_S

    def await_read(self, timeout_s: float) -> bool:
        """Waits for a read that begins after this call; returns whether there was one."""
        return self._answers.await_next(timeout_s)

    def close(self) -> None:
        """Closes the port; an unfinished answer may be cut off."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_CLOSING_S)


class _Families(Collector):
    def __init__(self, read: Callable[[], Sequence[MetricFamily]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        for family in self._read():
            yield _metric(family)


def _metric(family: MetricFamily) -> Metric:
    """A family in the library's form."""
    if family.kind == "histogram":
        names = list(family.distributions[0][0])
        histogram = HistogramMetricFamily(family.name, family.help, labels=names)
        bounds = [*(str(bound / 1e6) for bound in BOUNDS_US), "+Inf"]
        for labels, found in family.distributions:
            counts = zip(bounds, accumulate(found.counts), strict=True)
            histogram.add_metric([labels[name] for name in names], list(counts), found.sum_s)
        return histogram
    metric = Metric(family.name, family.help, family.kind)
    for labels, value in family.samples:
        metric.add_sample(f"{family.name}_total" if family.kind == "counter" else family.name, dict(labels), value)
    return metric


class _Answers:
    """The times of the last two complete answers."""

    def __init__(self) -> None:
        self._given = threading.Condition()
        self._times_s: list[float] = []

    def every_s(self) -> float | None:
        """The seconds between the last two answers; None before there are two."""
        with self._given:
            return self._times_s[-1] - self._times_s[-2] if len(self._times_s) > 1 else None

    def await_next(self, timeout_s: float) -> bool:
        """Waits for an answer that begins after this call; returns whether there was one in time."""
        now_s = time.monotonic()
        with self._given:
            return self._given.wait_for(lambda: bool(self._times_s) and self._times_s[-1] > now_s, timeout_s)

    def counted(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        """The same application with its complete answers recorded."""

        def counting(environ: Any, start_response: Any) -> Iterable[bytes]:
            began_s = time.monotonic()
            yield from app(environ, start_response)
            with self._given:
                # The time of the request counts, since later figures are not in the answer.
                self._times_s = [*self._times_s[-1:], began_s]
                self._given.notify_all()

        return counting


class _Handler(WSGIRequestHandler):
    timeout = _READER_S

    def log_message(self, *_: object) -> None:
        """Prints nothing between the lines of the run."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # HTTPServer.server_bind would look up the name of this host, which may take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, *_: object) -> None:
        """Prints nothing if a reader has disconnected."""


class _Server6(_Server):
    address_family = socket.AF_INET6
