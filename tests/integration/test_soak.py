"""Trouble at random moments: no committed row is lost or comes twice, nothing is left, and the run can be finished.

One seed in the usual tests; ``make soak`` asks for fifty with HYDRA_SOAK_SEEDS.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from hydra.kafkatest.broker import EmbeddedBroker
from hydra.results.store import RunStore
from tests.integration.command import (
    LIFELINE_S,
    Background,
    Hydra,
    background,
    gone,
    hydra,
    steps,
    table,
    wait_until,
)

pytestmark = pytest.mark.processes

SEEDS = range(int(os.environ.get("HYDRA_SOAK_SEEDS", "1")))
LATEST_S = 6.0
"""A run takes about as long; after its end is a moment too."""
SECRET = "not-for-any-file"
SHORT = ("--rate", 200, "--clients", "2,3,4", "--duration", 0.5, "--set", "warmup_s=0.2")
ROWS = [("2", "ok"), ("3", "ok"), ("4", "ok")]

Command = tuple[object, ...]


def zmq() -> Command:
    """A short run without a broker."""
    return ("zmqfixed", *SHORT)


def kafka(broker: EmbeddedBroker) -> Command:
    """A short run on a cluster of the user's, which is not ours to throw away."""
    secret = ("--kafka-prop", f"sasl.password={SECRET}")
    return ("kafka-fixed", *SHORT, "--client", "confluent-kafka", "--bootstrap", broker.bootstrap, *secret)


@pytest.fixture(params=["zmq", "kafka"])
def run(request: pytest.FixtureRequest) -> Command:
    """The command of a short run."""
    return zmq() if request.param == "zmq" else kafka(request.getfixturevalue("broker"))


def moment(seed: int, what: str) -> float:
    """Seconds after the start of a run."""
    return random.Random(f"{what} {seed}").uniform(0.3, LATEST_S)


def at(command: Background, moment_s: float, act: Callable[[], object]) -> None:
    """Does something to a run at that moment, unless it has ended before."""
    start = time.monotonic()
    wait_until(
        lambda: time.monotonic() - start > moment_s or not command.process.is_running(), moment_s + 5, "the moment"
    )
    act()


def began(process: psutil.Process) -> bool:
    """Whether the command catches signals: before that, Python is still loading it."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def rows(directory: Path) -> list[tuple[str, str]]:
    """The (clients, status) of every row of the table."""
    return [(row["clients"], row["status"]) for row in table(directory)]


def finish(run: Command, directory: Path) -> None:
    """Goes on with a run where it stopped, or begins it anew where nothing was stored; every row is there once."""
    before = steps(directory)
    if (directory / "run.db").exists():
        hydra(run[0], "--resume", directory, *_secrets(run))
    else:
        hydra(*run, "--out", directory)
    assert steps(directory)[: len(before)] == before
    assert rows(directory) == ROWS


def _secrets(run: Command) -> Command:
    """What is not stored with a run and has to be said again."""
    return run[run.index("--kafka-prop") :] if "--kafka-prop" in run else ()


def topics(run: Command) -> set[str]:
    """Hydra's topics on the user's cluster."""
    if "--bootstrap" not in run:
        return set()
    bootstrap = str(run[run.index("--bootstrap") + 1])
    listed = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics
    return {name for name in listed if name.startswith("hydra-")}


def assert_no_secret(folder: Path) -> None:
    """Nowhere in any file, the log of the command included."""
    for file in folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_survives_its_controller_at_any_moment(tmp_path: Path, run: Command, seed: int) -> None:
    directory, others = tmp_path / "run", topics(run)
    with background(*run, "--out", directory, log=tmp_path / "log") as command:
        family: list[psutil.Process] = []
        at(command, moment(seed, "SIGKILL"), lambda: family.extend(command.family()))
        command.process.kill()
        wait_until(lambda: gone(family), LIFELINE_S, "the end of every client")
        command.process.wait(5)
    finish(run, directory)
    assert topics(run) == others
    assert_no_secret(tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_told_to_end_ends_in_order_at_any_moment(
    tmp_path: Path, run: Command, number: signal.Signals, seed: int
) -> None:
    directory, others = tmp_path / "run", topics(run)
    with background(*run, "--out", directory, log=tmp_path / "log") as command:
        wait_until(lambda: began(command.process), 20, "the command to begin")
        at(command, moment(seed, number.name) - 0.3, lambda: command.process.send_signal(number))
        assert command.wait(20) in (0, 130)
        wait_until(lambda: not command.family(), LIFELINE_S, "the end of every client")
        assert "Traceback" not in command.output()
    assert topics(run) == others
    if (directory / "run.db").exists():
        assert [status for _, status in rows(directory)] == [status for _, status in steps(directory)]
    finish(run, directory)
    assert topics(run) == others
    assert_no_secret(tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_survives_its_broker_at_any_moment(tmp_path: Path, seed: int) -> None:
    directory = tmp_path / "run"
    arguments = ("kafka-fixed", *SHORT, "--client", "confluent-kafka", "--out", directory)
    with background(*arguments, log=tmp_path / "log") as command:

        def kill_java() -> None:
            for process in command.family():
                with contextlib.suppress(psutil.NoSuchProcess):
                    # What only asks Java for its version is no broker.
                    if "java" in process.name() and "-version" not in process.cmdline():
                        process.kill()

        at(command, moment(seed, "broker") + 2, kill_java)
        code = command.wait(120)
        assert "Traceback" not in command.output()
    if code == 1:
        # It was killed while it came up: that is a reason to stop, and nothing was measured.
        assert steps(directory) == []
    else:
        assert (code, rows(directory)) == (0, ROWS)
    assert not list(directory.glob("broker*/"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_full_disk_is_one_clear_line_and_keeps_the_rows_that_fit(tmp_path: Path, seed: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size_kb = 400 + 8 * random.Random(seed).randrange(25)
    # A mount namespace of its own: the small disk is seen by this run only and goes with it.
    mount = f'mount -t tmpfs -o size={size_kb}k tmpfs "{disk}"'
    script = f'{mount} && "$@"; code=$?; cp -r "{disk}/run" "{tmp_path}"; exit $code'
    clients = ",".join(str(n) for n in range(2, 90))
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


@pytest.fixture
def steps_by(tmp_path: Path) -> tuple[Path, Mapping[str, str]]:
    """A file, and an environment in which the wall clock is an hour ahead from the moment that the file exists."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("this test needs a C compiler: install the Debian package gcc")
    library, step = tmp_path / "stepping_clock.so", tmp_path / "step"
    source = Path(__file__).with_name("stepping_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source)], check=True)
    return step, {"LD_PRELOAD": str(library), "STEPPED_BY": str(step)}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wall_clock_that_steps_at_any_moment_changes_no_figure(
    tmp_path: Path, steps_by: tuple[Path, Mapping[str, str]], seed: int
) -> None:
    directory = tmp_path / "run"
    step, env = steps_by
    arguments = ("zmqfixed", "--rate", 200, "--clients", "3", "--duration", 3, "--set", "warmup_s=0")
    with background(*arguments, "--out", directory, log=tmp_path / "log", env=env) as command:
        wait_until(lambda: (directory / "run.db").exists(), 40, "the run")
        at(command, random.Random(seed).uniform(0, 3), step.touch)
        assert command.wait() == 0, command.output()
    (row,) = table(directory)
    assert float(row["client_loss_pct"]) == 0
    # An hour of a step would be 0.17/s, and 3.6e9 µs; other tests may take the CPU for a moment.
    assert 100 <= float(row["avg_tx_rate_pps"]) <= 400
    assert float(row["latency_max_us"]) < 60e6
    # The step was real: the run saw an hour pass.
    with RunStore.open(directory) as store:
        times = [event.time_ns for event in store.events()]
    assert max(times) - min(times) > 3599 * 10**9
