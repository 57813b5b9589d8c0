"""Trouble around a run: a broker of the user's that goes away, a missing tool, other runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hydra.events.steps import WindowOpened
from hydra.kafkatest.broker import EmbeddedBroker
from tests.integration.command import Hydra, background, events, gone, hydra, steps, table, wait_until

pytestmark = pytest.mark.processes


def test_a_run_directory_that_cannot_be_written_is_refused_before_anything_starts(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = hydra("zmqfixed", "--clients", "2", "--out", blocked / "run", expect=2)
    assert "--out" in done.stderr


def test_a_bootstrap_server_that_goes_away_ends_the_run_within_10_s_with_its_rows_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with EmbeddedBroker(tmp_path / "broker", warm=False) as broker:
        bootstrap = broker.bootstrap
        pids = broker.pids
        assert pids is not None
        arguments = ("kafka-fixed", "--clients", "2,3,4", "--rate", 200, "--duration", 3, "--client", "confluent-kafka")
        more = ("--set", "warmup_s=0", "--set", "ready_timeout_s=10.0", "--bootstrap", bootstrap, "--out", run)
        with background(*arguments, *more, log=tmp_path / "log") as command:
            wait_until(lambda: len(steps(run)) == 1, 60, "the first row")
            wait_until(lambda: len(events(run, WindowOpened)) == 2, 60, "the second step")
            family = command.family()
            os.kill(pids[1], signal.SIGKILL)
            wait_until(lambda: f"the Kafka broker at {bootstrap} is gone" in command.output(), 10, "the run to say so")
            assert command.wait(40) == 1
            assert gone(family)
            assert "Traceback" not in command.output()
    assert [row["status"] for row in table(run)] == ["ok", "failed"]


def test_two_runs_side_by_side_do_not_touch_each_other(tmp_path: Path) -> None:
    common = ("zmqfixed", "--rate", 200, "--clients", "3", "--duration", 1)
    with (
        background(*common, "--out", tmp_path / "a", log=tmp_path / "log-a") as one,
        background(*common, "--out", tmp_path / "b", log=tmp_path / "log-b") as two,
    ):
        assert (one.wait(), two.wait()) == (0, 0)
    for name in ("a", "b"):
        (row,) = table(tmp_path / name)
        assert (row["status"], float(row["client_loss_pct"])) == ("ok", 0)


def test_maven_missing_is_one_line_where_the_jars_are_not_cached(tmp_path: Path) -> None:
    java = shutil.which("java")
    assert java is not None
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "java").symlink_to(java)
    began = time.monotonic()
    done = subprocess.run(
        [*Hydra, "kafka-batch", "--out", str(tmp_path / "run")],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 2
    assert "maven" in done.stderr.lower()
    assert len(done.stderr.strip().splitlines()) == 1
    assert time.monotonic() - began < 30
    assert not (tmp_path / "run").exists()
