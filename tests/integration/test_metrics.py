"""``--prometheus`` and ``--otlp`` as others see them while a command runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hydra.client.server_interface import free_ports
from tests.integration.command import background, hydra, refusal, steps, table
from tests.metrics.receiver import receiving
from tests.suite.waiting import SOON_S, wait_until

pytest.importorskip("prometheus_client", reason="pip install '.[metrics]'")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[metrics]'")

pytestmark = pytest.mark.tier("all")

DASHBOARD = Path(__file__).resolve().parents[2] / "conf" / "grafana" / "hydra.json"
QUICK = ("zmqfixed", "--rate", "100", "--set", "warmup_s=0.2")
INTERVAL_S = 0.5
ADDRESS = re.compile(r"metrics at (http://\S+)/metrics \(this machine only\)")


def totals(run: Path) -> tuple[int, int]:
    """The messages that were sent and received, as a run's table has them."""
    rows = table(run)
    assert [row["status"] for row in rows] == ["ok"] * len(rows)
    sent = sum(int(row["sent"]) for row in rows)
    return sent, sum(int(row["in_window"]) + int(row["late"]) for row in rows)


def read(url: str) -> bytes:
    """What is there; nothing while the endpoint does not answer."""
    with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=SOON_S) as answer:
        return bytes(answer.read())
    return b""


def listens(port: int) -> bool:
    with socket.socket() as it:
        return it.connect_ex(("127.0.0.1", port)) == 0


# --- Prometheus ------------------------------------------------------------------------------------------------------


@pytest.fixture
def prometheus() -> str:
    """The program; a machine without it skips what it is for, but not in CI."""
    program = shutil.which("prometheus")
    if program is None:
        reason = "there is no Prometheus: scripts/system-packages prometheus, or apt-get install prometheus"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return program


class Prometheus:
    """A Prometheus that reads one address."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"
        self._began = time.time()

    def ask(self, query: str) -> list[dict[str, Any]]:
        """What a query has given at each moment since the beginning: a dashboard's way to ask."""
        words = {"query": query, "start": self._began, "end": time.time() + 1, "step": INTERVAL_S}
        url = f"{self._url}/query_range?{urllib.parse.urlencode(words)}"
        found: list[dict[str, Any]] = json.loads(read(url))["data"]["result"]
        return found

    def highest(self, query: str) -> float:
        """The highest value, 0 where there is none."""
        return max((float(value) for series in self.ask(query) for _, value in series["values"]), default=0.0)


@contextlib.contextmanager
def reading(program: str, target: str, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus with its own configuration and data, removed at the end."""
    config = {
        "global": {"scrape_interval": f"{INTERVAL_S * 1000:.0f}ms", "scrape_timeout": f"{INTERVAL_S * 1000:.0f}ms"},
        "scrape_configs": [{"job_name": "hydra", "static_configs": [{"targets": [target]}]}],
    }
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    port = free_ports("127.0.0.1", 1)[0]
    files = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        words = [program, *files, f"--web.listen-address=127.0.0.1:{port}"]
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            wait_until(lambda: read(f"http://127.0.0.1:{port}/api/v1/query?query=1"), "Prometheus")
            yield Prometheus(port)
        finally:
            process.terminate()
            process.wait(SOON_S)


def queries() -> dict[str, str]:
    """Every query of the dashboard by its panel, as Grafana asks it for all runs."""
    return {
        f"{panel['title']}, {target['refId']}": target["expr"]
        .replace("$run", ".+")
        .replace("$__rate_interval", f"{4 * INTERVAL_S:.0f}s")
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel["targets"]
    }


def test_a_prometheus_answers_every_query_of_the_dashboard(prometheus: str, tmp_path: Path, run: Path) -> None:
    # Long enough for several readings of each step.
    words = (*QUICK, "--clients", "2,3", "--duration", "4", "--prometheus", ":0", "--out", run)
    with background(*words) as command:
        address = command.until(lambda: ADDRESS.search(command.output()), "the address")
        assert address is not None
        with reading(prometheus, address[1].removeprefix("http://"), tmp_path / "prometheus") as it:
            assert command.wait() == 0
            sent, received = totals(run)
            # The run has stayed until its last figures were read.
            wait_until(lambda: it.highest("sum(hydra_sent_messages_total)") == sent, "the last figures")
            assert it.highest("sum(hydra_received_messages_total)") == received
            assert it.highest("sum(hydra_latency_seconds_count)") == received
            assert it.highest('hydra_steps_total{status="ok"}') == 2
            assert [name for name, query in queries().items() if not has_numbers(it.ask(query))] == []
        assert not listens(int(address[1].rpartition(":")[2]))


def has_numbers(found: list[dict[str, Any]]) -> bool:
    return any(value != "NaN" for series in found for _, value in series["values"])


def test_a_run_that_is_interrupted_waits_for_nobody_and_closes_its_port(run: Path) -> None:
    words = (*QUICK, "--clients", "2", "--duration", "600", "--prometheus", ":0", "--out", run)
    with background(*words) as command:
        address = command.until(lambda: ADDRESS.search(command.output()), "the address")
        assert address is not None
        command.until(lambda: b'state="telling"' in read(f"{address[1]}/metrics"), "the window")
        command.process.send_signal(signal.SIGINT)
        assert command.wait() == 130
        assert not listens(int(address[1].rpartition(":")[2]))


def test_a_port_in_use_is_refused_before_anything_starts(run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as it:
        taken = it.getsockname()[1]
        text = refusal(*QUICK, "--prometheus", f":{taken}", "--out", run)
    assert text.startswith(f"--prometheus: nothing can listen at 127.0.0.1:{taken}: Address already in use; name")
    assert not run.exists()


OTLP = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"


def test_a_library_that_is_missing_is_named(tmp_path: Path, run: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ModuleNotFoundError('no', name='opentelemetry')")
    done = hydra(*QUICK, "--otlp", "http://localhost:4318", "--out", run, expect=2, PYTHONPATH=str(tmp_path))
    (line,) = done.stderr.splitlines()
    assert line.startswith("hydra: --otlp needs a library that is not installed (opentelemetry")
    assert line.endswith(f"-m pip install {OTLP}")
    assert not run.exists()


# --- OpenTelemetry ---------------------------------------------------------------------------------------------------


def test_an_opentelemetry_receiver_gets_what_the_table_says(run: Path) -> None:
    with receiving() as receiver:
        hydra(*QUICK, "--clients", "2,3", "--duration", "0.5", "--otlp", receiver.url, "--out", run)
    sent, received = totals(run)
    assert receiver.paths == {"/v1/metrics"}
    assert receiver.total("hydra_sent_messages") == sent
    assert receiver.total("hydra_received_messages") == received
    assert receiver.metrics["hydra_sent_messages"].sum.is_monotonic
    (latency,) = receiver.metrics["hydra_latency_seconds"].histogram.data_points
    assert latency.count == sum(latency.bucket_counts) == received
    assert not latency.HasField("max")
    (held, *_) = receiver.metrics["hydra_requested_rate_messages_per_second"].gauge.data_points
    assert held.as_double == 100
    assert {label.key for label in held.attributes} == {"run", "system", "step", "clients"}


def test_a_receiver_that_does_not_answer_is_told_once_and_costs_no_row(run: Path) -> None:
    url = f"http://name:password@127.0.0.1:{free_ports('127.0.0.1', 1)[0]}"
    done = hydra(*QUICK, "--clients", "2", "--duration", "0.5", "--otlp", url, "--out", run)
    warnings = [line for line in done.stderr.splitlines() if "does not accept all metrics" in line]
    assert len(warnings) == 1
    assert "http://***@127.0.0.1:" in warnings[0]
    assert "password" not in done.stderr
    assert [status for _, status in steps(run)] == ["ok"]
