"""Trouble around a run: a full disk, a broker of the user's that goes away, a clock that steps, other runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hydra.kafkatest.broker import EmbeddedBroker
from hydra.results.store import RunStore
from tests.integration.command import Hydra, background, events, gone, hydra, steps, table, wait_until

pytestmark = pytest.mark.processes


def test_a_full_disk_is_one_clear_line_and_keeps_the_rows_that_fit(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    # A mount namespace of its own: the small disk is seen by this run only and goes with it.
    script = f'mount -t tmpfs -o size=400k tmpfs "{disk}" && "$@"; code=$?; cp -r "{disk}/run" "{tmp_path}"; exit $code'
    clients = ",".join(str(n) for n in range(2, 60))
    done = subprocess.run(
        [*("unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"), *Hydra,
         *("zmqfixed", "--rate", "200", "--clients", clients, "--duration", "0.2", "--out", str(disk / "run"))],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "full" in last
    assert "free some space" in last or "everything measured" in last
    kept = steps(tmp_path / "run")
    assert kept
    assert {status for _, status in kept} == {"ok"}


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
        more = ("--set", "warmup_s=0", "--bootstrap", bootstrap, "--out", run)
        with background(*arguments, *more, log=tmp_path / "log") as command:
            wait_until(lambda: len(steps(run)) == 1, 60, "the first row")
            wait_until(lambda: sum(e.startswith("window") for e in events(run)) == 2, 60, "the second step")
            family = command.family()
            os.kill(pids[1], signal.SIGKILL)
            wait_until(lambda: f"the Kafka broker at {bootstrap} is gone" in command.output(), 10, "the run to say so")
            assert command.wait(20) == 1
            assert gone(family)
            assert "Traceback" not in command.output()
    assert [row["status"] for row in table(run)] == ["ok", "failed"]


@pytest.fixture
def steps_by(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A file, and an environment in which the wall clock is an hour ahead from the moment that the file exists."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("this test needs a C compiler: install the Debian package gcc")
    library, step = tmp_path / "stepping_clock.so", tmp_path / "step"
    source = Path(__file__).with_name("stepping_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source)], check=True)
    return step, {"LD_PRELOAD": str(library), "STEPPED_BY": str(step)}


def test_a_wall_clock_that_steps_in_mid_step_changes_no_figure(
    tmp_path: Path, steps_by: tuple[Path, dict[str, str]]
) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    step, env = steps_by
    command = (*Hydra, "zmqfixed", "--rate", "200", "--clients", "3", "--duration", "3", "--out", str(run))
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **env})
    try:
        # The first window is the warm-up's, the second the step's.
        wait_until(lambda: (run / "run.db").exists() and sum("window" in e for e in events(run)) >= 2, 40, "the step")
        step.write_text("")
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
    (row,) = table(run)
    assert float(row["client_loss_pct"]) == 0
    assert float(row["avg_tx_rate_pps"]) == pytest.approx(200, rel=0.1)
    # An hour of a step would be 3.6e9 µs.
    assert float(row["latency_max_us"]) < 60e6
    # The step was real: the run saw an hour pass.
    with RunStore.open(run) as store:
        times = [time_ns for time_ns, *_ in store.events()]
    assert max(times) - min(times) > 3599 * 10**9


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
