"""Real processes: a busy process is named by a row and by ``hydra check``, and clients run on the CPUs of their pin."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from hydra.measure.disturbance import Disturbance
from hydra.store.database import RunStore
from tests.suite.native_client import native_client
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("test")

NAME = "disturber"
SECONDS = "1"
PYTHON, NATIVE = f"{sys.executable} -m hydra.zmqtest.pyzmq", native_client("zmq-sub")


@pytest.fixture
def busy() -> Iterator[None]:
    """Processes that use half of a quarter of the cores, with a name of their own."""
    code = f"import time; open('/proc/self/comm', 'w').write('{NAME}'); print(flush=True)\n" + dedent("""
        while True:
            until = time.thread_time() + 0.01
            while time.thread_time() < until: pass
            time.sleep(0.01)
    """)
    with ExitStack() as stack:
        for _ in range(max(1, len(os.sched_getaffinity(0)) // 4)):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


def hydra(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hydra.cli.main", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 0, done.stderr
    return done


def zmqfixed(folder: Path, *more: str) -> list[str]:
    flags = ("--clients", "2", "--rate", "100", "--duration", SECONDS, "--implementation", "native")
    return ["zmqfixed", *flags, "--set", "warmup_s=0", "--out", str(folder / "run"), "--json", "--quiet", *more]


def test_a_row_names_what_disturbed_it_and_its_clients_run_where_their_pin_says(busy: None, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    first, last = str(cpus[0]), str(cpus[-1])
    pins = ("--publisher-pin", first, "--subscriber-pin", last)
    command = [sys.executable, "-m", "hydra.cli.main", *zmqfixed(tmp_path, *pins)]
    errors = tmp_path / "stderr"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr, text=True) as run,
    ):
        seen: dict[str, set[str]] = {"zmq-pub": set(), "zmq-sub": set()}

        def every_role() -> bool:
            assert run.poll() is None, errors.read_text()
            for role, lists in seen.items():
                lists.update(allowed_of(role, run.pid))
            return all(seen.values())

        wait_until(every_role, "a publisher and subscribers", LONG_S)
        assert seen == {"zmq-pub": {first}, "zmq-sub": {last}}
        output, _ = run.communicate(timeout=LONG_S)
    assert run.returncode == 0
    (row,) = json.loads(output)["rows"]
    (disturbance,) = msgspec.json.decode(row["disturbed"], type=list[Disturbance])
    assert NAME in dict(disturbance.by)
    assert disturbance.others_pct > 5
    with RunStore.open(tmp_path / "run") as store:
        (record,) = store.machines().values()
        (epoch,) = [result.epoch for result in store.results()]
        (activity,) = store.machine_activities(epoch).values()
        kinds = [event.kind for event in store.events()]
    assert record.cpus is not None
    assert set(cpus) <= set(record.cpus)
    assert activity.pinned == {"publisher": first, "subscriber": last}
    assert activity.before is not None
    assert NAME in activity.before
    assert "roles_pinned" in kinds
    # The warning names it, and the row is as clean as it is without it.
    warnings = json.loads(output)["warnings"]
    assert [w["level"] for w in warnings if w["kind"] == "row_disturbed"] == ["note"]


def allowed_of(kind: str, ancestor: int) -> set[str]:
    """The CPUs of the relays and clients of a kind, which the parents of their groups have forked."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parent = re.search(r"PPid:\t(\d+)", text := status.read_text())
            forked = parent and kind in words(status.parent) and kind in words(Path("/proc") / parent[1])
            if parent and forked and descends(int(parent[1]), ancestor):
                found |= set(re.findall(r"Cpus_allowed_list:\t(.*)", text))
        except OSError:
            continue  # a process has ended
    return found


def words(process: Path) -> list[str]:
    return (process / "cmdline").read_text().split("\0")


def descends(pid: int, ancestor: int) -> bool:
    while pid not in (0, ancestor):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    return pid == ancestor


def test_check_names_what_uses_the_cpu_now(busy: None, tmp_path: Path) -> None:
    text = hydra("check", "zmqfixed", "--clients", "2", "--json", folder=tmp_path).stdout
    machine = json.loads(text)["machine"]
    assert NAME in machine["others"]
    assert machine["facts"]["cpus"]
    assert next(it["fact"] for it in machine["judgements"]) == "others"


def test_a_pin_that_the_machine_does_not_have_is_refused_before_anything_starts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hydra.cli.main", *zmqfixed(tmp_path, "--publisher-pin", "4095")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 2
    assert "publisher.pin = '4095'" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("program", "cpus"), [(PYTHON, "4095"), (NATIVE, "4095"), (NATIVE, "x")])
def test_a_group_refuses_cpus_that_its_host_does_not_have(program: str | None, cpus: str) -> None:
    if program is None:
        pytest.skip("the native client is not built")
    command = [*shlex.split(program), "zmq-sub", "--group", "g", "--first-id", "1", "--count", "1"]
    keys = {f"HYDRA_CONTROL_{name}": "x" * 40 for name in ("SERVER_KEY", "CLIENT_KEY", "CLIENT_SECRET")}
    environment = {**os.environ, **keys, "HYDRA_CONTROL": "tcp://127.0.0.1:1", "HYDRA_CPUS": cpus}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 2
    assert f"the environment variable HYDRA_CPUS is {cpus}" in done.stderr
