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

from hydra.store.database import RunStore
from tests.integration.command import LIFELINE_S, Background, Hydra, all_ended, background, hydra, steps, table
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = pytest.mark.tier("all")

SEEDS = range(int(os.environ.get("HYDRA_SOAK_SEEDS", "1")))
LATEST_S = 6.0
"""A run takes about as long; after its end is a moment too."""
SECRET = "not-for-any-file"
SHORT = ("--rate", 200, "--clients", "2,3,4", "--duration", 0.5, "--set", "warmup_s=0.2")
ROWS = [("2", "ok"), ("3", "ok"), ("4", "ok")]

Command = tuple[object, ...]


@pytest.fixture(params=["zmq", "kafka"])
def words(request: pytest.FixtureRequest) -> Command:
    """A short command, without a broker or on a cluster of the user's, which is not ours to throw away."""
    if request.param == "zmq":
        return ("zmqfixed", *SHORT)
    bootstrap = request.getfixturevalue("broker").bootstrap
    secret = ("--kafka-prop", f"sasl.password={SECRET}")
    return ("kafka-fixed", *SHORT, "--client", "confluent-kafka", "--bootstrap", bootstrap, *secret)


def at_random(
    command: Background, what: str, act: Callable[[], object], between_s: tuple[float, float] = (0.0, LATEST_S)
) -> None:
    """Does something to a run at a moment that its name and seed choose, unless the run has ended before."""
    moment = time.monotonic() + random.Random(what).uniform(*between_s)
    wait_until(lambda: time.monotonic() > moment or not command.process.is_running(), "the moment")
    act()


def began(process: psutil.Process) -> bool:
    """Whether the command catches signals: before that, Python is still loading it."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def rows(run: Path) -> list[tuple[str, str]]:
    """The (clients, status) of every row of the table."""
    return [(row["clients"], row["status"]) for row in table(run)]


def finish(words: Command, run: Path) -> None:
    """Continues with a run where it stopped, or begins it again where nothing was stored; every row is there once."""
    before = steps(run)
    if (run / "run.db").exists():
        # Secrets are not stored with a run and have to be repeated.
        hydra(words[0], "--resume", run, *(words[words.index("--kafka-prop") :] if "--kafka-prop" in words else ()))
    else:
        hydra(*words, "--out", run)
    assert steps(run)[: len(before)] == before
    assert rows(run) == ROWS


def topics(words: Command) -> set[str]:
    """Hydra's topics on the user's cluster."""
    if "--bootstrap" not in words:
        return set()
    bootstrap = str(words[words.index("--bootstrap") + 1])
    listed = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=SOON_S).topics
    return {name for name in listed if name.startswith("hydra-")}


def assert_no_secret(folder: Path) -> None:
    """Nowhere in any file, the log of the command included."""
    for file in folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_ends_at_any_moment_leaves_nothing_and_can_be_finished(
    tmp_path: Path, run: Path, words: Command, number: signal.Signals, seed: int
) -> None:
    killed = number == signal.SIGKILL
    others = topics(words)
    with background(*words, "--out", run) as command:
        family: list[psutil.Process] = []
        wait_until(lambda: killed or began(command.process), "the command to begin")
        at_random(command, f"{number.name} {seed}", lambda: family.extend(command.family()))
        command.process.send_signal(number)
        assert command.wait() in (0, -signal.SIGKILL if killed else 130)
        wait_until(lambda: all_ended(family), "the end of every client", LIFELINE_S)
        assert "Traceback" not in command.output()
    if not killed:
        assert topics(words) == others
        if (run / "run.db").exists():
            assert [status for _, status in rows(run)] == [status for _, status in steps(run)]
    finish(words, run)
    assert topics(words) == others
    assert_no_secret(tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_survives_its_broker_at_any_moment(run: Path, seed: int) -> None:
    with background("kafka-fixed", *SHORT, "--client", "confluent-kafka", "--out", run) as command:

        def kill_java() -> None:
            for process in command.family():
                with contextlib.suppress(psutil.NoSuchProcess):
                    # What only asks Java for its version is no broker.
                    if "java" in process.name() and "-version" not in process.cmdline():
                        process.kill()

        at_random(command, f"broker {seed}", kill_java, (2.0, 2 + LATEST_S))
        code = command.wait()
        assert "Traceback" not in command.output()
    if code == 1:
        # It was killed while it came up: that is a reason to stop, and nothing was measured.
        assert steps(run) == []
    else:
        assert (code, rows(run)) == (0, ROWS)
    assert not list(run.glob("server*/"))


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
        capture_output=True, text=True, timeout=2 * LONG_S,
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
    run: Path, steps_by: tuple[Path, Mapping[str, str]], seed: int
) -> None:
    step, env = steps_by
    arguments = ("zmqfixed", "--rate", 200, "--clients", "3", "--duration", 3, "--set", "warmup_s=0")
    with background(*arguments, "--out", run, env=env) as command:
        command.until(lambda: (run / "run.db").exists(), "the run")
        at_random(command, f"step {seed}", step.touch, (0.0, 3.0))
        assert command.wait() == 0, command.output()
    (row,) = table(run)
    assert float(row["client_loss_pct"]) == 0
    # An hour of a step would be 0.17/s, and 3.6e9 µs; other tests may take the CPU for a moment.
    assert 100 <= float(row["avg_tx_rate_pps"]) <= 400
    assert float(row["latency_max_us"]) < 60e6
    # The step was real: the run saw an hour pass.
    with RunStore.open(run) as store:
        times = [event.time_ns for event in store.events()]
    assert max(times) - min(times) > 3599 * 10**9
