"""An OpenTelemetry receiver that keeps what it was sent last."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Receiver(http.server.ThreadingHTTPServer):
    """Takes what is pushed.

    Args:
        status: what it answers.
    """

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Push)
        self.status = status
        self.metrics: dict[str, Any] = {}
        self.paths: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def total(self, name: str) -> float:
        """The sum of a counter's last values."""
        return sum(float(point.as_double or point.as_int) for point in self.metrics[name].sum.data_points)


class _Push(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        request = ExportMetricsServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.add(self.path)
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                self.server.metrics |= {metric.name: metric for metric in scope.metrics}
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiving(status: int = 200) -> Iterator[Receiver]:
    """A receiver on its own port, closed at the end."""
    with Receiver(status) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
