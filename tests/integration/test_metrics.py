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
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import background, hydra, steps, table, wait_until
from tests.metrics.receiver import receiving

pytest.importorskip("prometheus_client", reason="pip install '.[metrics]'")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[metrics]'")

pytestmark = pytest.mark.processes

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


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


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

    def is_up(self) -> bool:
        with contextlib.suppress(OSError):
            self.ask("1")
            return True
        return False

    def ask(self, query: str) -> list[dict[str, Any]]:
        """What a query has given at each moment since the beginning: a dashboard's way to ask."""
        words = {"query": query, "start": self._began, "end": time.time() + 1, "step": INTERVAL_S}
        url = f"{self._url}/query_range?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def highest(self, query: str) -> float:
        """The highest value, 0 where there is none."""
        return max((float(value) for series in self.ask(query) for _, value in series["values"]), default=0.0)


@contextlib.contextmanager
def reading(program: str, target: str, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus with a configuration and data of its own, gone at the end."""
    config = {
        "global": {"scrape_interval": f"{INTERVAL_S * 1000:.0f}ms", "scrape_timeout": f"{INTERVAL_S * 1000:.0f}ms"},
        "scrape_configs": [{"job_name": "hydra", "static_configs": [{"targets": [target]}]}],
    }
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    port = free_port()
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            it = Prometheus(port)
            wait_until(it.is_up, 30, "Prometheus")
            yield it
        finally:
            process.terminate()
            process.wait(20)


def queries() -> dict[str, str]:
    """Every query of the dashboard by its panel, as Grafana asks it for all runs."""
    return {
        f"{panel['title']}, {target['refId']}": target["expr"]
        .replace("$run", ".+")
        .replace("$__rate_interval", f"{4 * INTERVAL_S:.0f}s")
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel["targets"]
    }


def test_a_prometheus_answers_every_query_of_the_dashboard(prometheus: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = (*QUICK, "--clients", "2,3", "--duration", "2.5", "--prometheus", ":0", "--out", out)
    with background(*words, log=tmp_path / "log") as command:
        wait_until(lambda: ADDRESS.search(command.output()), 30, "the address")
        address = ADDRESS.search(command.output())
        assert address is not None
        with reading(prometheus, address[1].removeprefix("http://"), tmp_path / "prometheus") as it:
            assert command.wait(60) == 0
            sent, received = totals(out)
            # The run has stayed until its last figures were read.
            wait_until(lambda: it.highest("sum(hydra_sent_messages_total)") == sent, 5, "the last figures")
            assert it.highest("sum(hydra_received_messages_total)") == received
            assert it.highest("sum(hydra_latency_seconds_count)") == received
            assert it.highest('hydra_steps_total{status="ok"}') == 2
            assert [name for name, query in queries().items() if not has_numbers(it.ask(query))] == []
        assert not listens(int(address[1].rpartition(":")[2]))


def has_numbers(found: list[dict[str, Any]]) -> bool:
    return any(value != "NaN" for series in found for _, value in series["values"])


def test_a_run_that_is_interrupted_waits_for_nobody_and_closes_its_port(tmp_path: Path) -> None:
    port = free_port()
    words = (*QUICK, "--clients", "2", "--duration", "60", "--prometheus", f":{port}", "--out", tmp_path / "run")
    with background(*words, log=tmp_path / "log") as command:

        def sends() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                return b'state="telling"' in answer.read()
            return False

        wait_until(sends, 30, "the window")
        command.process.send_signal(signal.SIGINT)
        assert command.wait(20) == 130
        assert not listens(port)


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        it.listen()
        taken = it.getsockname()[1]
        done = hydra(*QUICK, "--prometheus", f":{taken}", "--out", tmp_path / "run", expect=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"hydra: --prometheus: nothing can listen at 127.0.0.1:{taken}: Address already in use; name"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flag", "value", "library", "remedy"),
    [
        ("--prometheus", ":0", "prometheus_client", "prometheus-client"),
        (
            *("--otlp", "http://localhost:4318", "opentelemetry.sdk"),
            "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
        ),
    ],
)
def test_a_library_that_is_missing_is_named(flag: str, value: str, library: str, remedy: str, tmp_path: Path) -> None:
    package = library.partition(".")[0]
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})")
    out = tmp_path / "run"
    done = hydra(*QUICK, flag, value, "--out", out, expect=2, PYTHONPATH=str(tmp_path))
    expected = f"{flag} needs a library that is not installed ({library}); pip install {remedy}"
    assert done.stderr.splitlines() == [f"hydra: {expected}"]
    assert not out.exists()


# --- OpenTelemetry ---------------------------------------------------------------------------------------------------


def test_an_opentelemetry_receiver_gets_what_the_table_says(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with receiving() as receiver:
        hydra(*QUICK, "--clients", "2,3", "--duration", "0.5", "--otlp", receiver.url, "--out", out)
    sent, received = totals(out)
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


def test_a_receiver_that_does_not_answer_is_told_once_and_costs_no_row(tmp_path: Path) -> None:
    out = tmp_path / "run"
    url = f"http://name:password@127.0.0.1:{free_port()}"
    done = hydra(*QUICK, "--clients", "2", "--duration", "0.5", "--otlp", url, "--out", out, within_s=40)
    warnings = [line for line in done.stderr.splitlines() if "does not take all metrics" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: http://***@127.0.0.1:")
    assert "password" not in done.stderr
    assert [status for _, status in steps(out)] == ["ok"]
