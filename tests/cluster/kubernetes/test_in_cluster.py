"""The Job of a command in the cluster, its log, what its Pod says, and the scripts of its two containers."""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes.delivery import sources
from hydra.cluster.kubernetes.in_cluster import objects, podstate
from hydra.cluster.kubernetes.in_cluster.log import OUTPUT, Log
from hydra.cluster.kubernetes.in_cluster.words import FILES
from hydra.cluster.kubernetes.inside import begin, controller, files, keeper
from hydra.cluster.kubernetes.pods import Family
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.errors import UsageError
from tests.integration.command import wait_until

Json = dict[str, Any]

SHIPPED = {f"{FILES}/0/mine.toml": b'system = "zmq"', f"{FILES}/1/pw.txt": b"secret\xff"}
ORDER = objects.Order(("run", "--set", "mqtt.password=pst"), ("run", "--in-cluster"), "1.0", "d1gest", "hydra:1")
FAMILY = Family("first", "lab", {}, KubernetesSettings(keep_s=60), "hydra:1", archive=False)

# --- objects ---------------------------------------------------------------------------------------------------------


def test_everything_that_may_be_secret_stands_in_the_secret_only() -> None:
    data = objects.secret_data(ORDER, SHIPPED, {"OTEL_X": "token"})
    job = objects.job(FAMILY, list(SHIPPED), ["OTEL_X"])
    secret = objects.secret(FAMILY, data)
    assert not any(word in json.dumps(job) for word in ("pst", "token", "zmq"))
    assert {base64.b64decode(value) for value in secret["data"].values()} >= {*SHIPPED.values(), b"token"}
    order = json.loads(base64.b64decode(secret["data"]["order.json"]))
    assert order == json.loads(json.dumps(asdict(ORDER)))


def test_a_pod_finds_its_files_where_its_words_name_them() -> None:
    data = objects.secret_data(ORDER, SHIPPED, {"OTEL_X": "token"})
    spec = objects.job(FAMILY, list(SHIPPED), ["OTEL_X"])["spec"]["template"]["spec"]
    volume = next(each["secret"] for each in spec["volumes"] if each["name"] == "shipped")
    found = {f"{objects.MOUNTED}/{item['path']}": data[item["key"]] for item in volume["items"]}
    assert found.items() >= SHIPPED.items()
    for container in spec["containers"]:
        assert container["command"][1] in found
    variable = spec["containers"][0]["env"][-1]
    assert variable["name"] == "OTEL_X"
    assert data[variable["valueFrom"]["secretKeyRef"]["key"]] == b"token"


def test_the_pod_is_never_replaced_and_keeps_to_restricted() -> None:
    job = objects.job(FAMILY, [], [])
    assert job["spec"]["backoffLimit"] == 0
    pod = job["spec"]["template"]
    assert pod["metadata"]["labels"].items() >= names.labels("first", "controller").items()
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["serviceAccountName"] == "hydra"
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    for container in pod["spec"]["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "512Mi"}
    assert pod["spec"]["containers"][1]["command"][-1] == "60"


def test_a_pod_waits_for_its_files_and_for_no_longer_than_it_says() -> None:
    spec = objects.job(FAMILY, list(SHIPPED), [])["spec"]["template"]["spec"]
    volume = next(each["secret"] for each in spec["volumes"] if each["name"] == "shipped")
    assert volume["optional"], "without it a Pod waits for ever"
    # The end of the first has the node look for the Secret again; the Pod ends with the second.
    for waiting, (its_s, late) in zip(
        spec["initContainers"], [(objects.SOON_S, 0), (objects.FILES_WITHIN_S, 1)], strict=True
    ):
        *words, file, within_s, code = waiting["command"]
        assert (words[0], file) == ("python3", f"{objects.MOUNTED}/order.json")
        assert (within_s, code) == (str(its_s), str(late))
        assert waiting["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.processes
def test_a_command_begins_when_its_files_come_and_ends_where_they_do_not(tmp_path: Path) -> None:
    def starts(within_s: int) -> subprocess.Popen[str]:
        words = [sys.executable, begin.__file__, str(tmp_path / "order.json"), str(within_s), "1"]
        return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)

    none = starts(0)
    assert "have not come within 0 s" in none.communicate(timeout=20)[1]
    assert none.returncode == 1
    late = starts(20)
    (tmp_path / "order.json").touch()
    assert late.communicate(timeout=20)[1] == ""
    assert late.returncode == 0


def test_what_a_secret_does_not_hold_is_refused_and_named() -> None:
    with pytest.raises(UsageError, match=r"the largest is big\.csv with 1\.1 MB; leave out --in-cluster"):
        objects.secret_data(ORDER, {f"{FILES}/0/big.csv": bytes(1_100_000)}, {})


# --- its log ---------------------------------------------------------------------------------------------------------

TIMES = [f"2026-11-22T20:00:0{second}.000000000Z" for second in range(5)]


def test_a_log_that_is_read_again_shows_each_line_once() -> None:
    log = Log("first", "runs/mine")
    lines = [f"{TIMES[0]} a", f"{TIMES[1]} b", f"{TIMES[1]} c", f"{TIMES[1]} d", f"{TIMES[2]} e"]
    shown = [log.line(line) for line in lines[:3]]
    log.reconnected()
    shown += [line for line in map(log.line, lines) if line is not None]
    log.reconnected()
    shown += [line for line in map(log.line, lines[1:]) if line is not None]
    assert shown == ["a", "b", "c", "d", "e"]
    assert log.since == TIMES[2]


def test_lines_behind_the_mark_are_output_and_paths_are_those_of_here() -> None:
    log = Log("first", "runs/mine")
    assert log.line(f"{TIMES[0]} done: /runs/first/run.db") == "done: runs/mine/run.db"
    before = log.is_output
    assert log.line(f"{TIMES[1]} {OUTPUT}") is None
    assert (before, log.is_output) == (False, True)
    assert log.line(f"{TIMES[1]} ") == ""
    assert log.line("failed to watch file: too many open files") == "failed to watch file: too many open files"


def test_both_ends_know_the_same_mark() -> None:
    assert controller.OUTPUT == OUTPUT


# --- what its Pod says -----------------------------------------------------------------------------------------------


def pod(hydra: Json, keeping: Json | None = None, **status: Any) -> Json:
    states = [{"name": "hydra", "state": hydra}, {"name": "files", "state": keeping or {"running": {}}}]
    containers = [{"name": "hydra"}, {"name": "files"}]
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "node1", "containers": containers},
        "status": {"phase": "Running", "containerStatuses": states, **status},
    }


UNPLACED = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "hydra"}]},
    "status": {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/2 nodes are available: 2 Insufficient cpu. preemption: none",
            }
        ],
    },
}
NO_ACCOUNT = {
    "reason": "FailedCreate",
    "message": 'Error creating: pods "p" is forbidden: error looking up service account lab/x: serviceaccount "x" not'
    " found",
}


@pytest.mark.parametrize(
    ("seen", "events", "waited_s", "said"),
    [
        (None, [], 1, ""),
        (None, [], 301, "its Job has made no Pod"),
        (None, [NO_ACCOUNT], 1, 'serviceaccount "x" not found'),
        (UNPLACED, [], 59, ""),
        (UNPLACED, [], 61, "none of 2 nodes takes it: 2 Insufficient cpu; add nodes, end other Pods, or lower contro"),
        (pod({"waiting": {"reason": "InvalidImageName", "message": "?"}}), [], 1, "image"),
        (pod({"waiting": {"reason": "ImagePullBackOff", "message": "i/o timeout"}}), [], 29, ""),
        (pod({"waiting": {"reason": "ImagePullBackOff", "message": "i/o timeout"}}), [], 31, "image"),
        (pod({"waiting": {"reason": "ContainerCreating"}}), [], 299, ""),
        (
            pod({"terminated": {"exitCode": 128, "reason": "StartError", "message": "python3: not found"}}),
            [],
            1,
            "cannot be started: python3: not found; is the image Hydra's own",
        ),
        (
            pod({"waiting": {"reason": "ContainerCreating"}}),
            [{"type": "Warning", "reason": "FailedMount", "message": "MountVolume.SetUp failed"}],
            301,
            "MountVolume.SetUp failed",
        ),
    ],
)
def test_what_keeps_a_command_from_beginning_is_named_in_time(
    seen: Json | None, events: list[Json], waited_s: float, said: str
) -> None:
    what, remedy = podstate.why_not_begun(seen, events, waited_s, "lab")
    assert said in f"{what}; {remedy}"
    assert bool(what) == bool(said)


@pytest.mark.parametrize(
    ("seen", "begun", "ended", "kept"),
    [
        (UNPLACED, False, False, True),
        (pod({"waiting": {}}, {"waiting": {}}), False, False, True),
        (pod({"running": {}}, {"waiting": {}}), True, False, True),
        (pod({"running": {}}), True, False, True),
        (pod({"terminated": {"exitCode": 128, "reason": "StartError"}}), False, True, True),
        (pod({"terminated": {"exitCode": 0}}), True, True, True),
        (pod({"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 0}}), True, True, False),
    ],
)
def test_a_pod_tells_how_far_its_command_is(seen: Json, begun: bool, ended: bool, kept: bool) -> None:
    assert (podstate.has_begun(seen), podstate.has_ended(seen), podstate.is_kept(seen)) == (begun, ended, kept)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"exitCode": 137, "reason": "OOMKilled"}, "raise controller_mem in [kubernetes]"),
        ({"exitCode": 137, "reason": "Error", "message": "step 1: lost"}, "killed by SIGKILL; "),
    ],
)
def test_an_untimely_end_is_explained(ended: Json, said: str) -> None:
    assert said in "; ".join(podstate.explained(pod({"terminated": ended})))


# --- in its containers -----------------------------------------------------------------------------------------------

HYDRA = """#!/bin/sh
exec {python} -c "$@"
"""
SAME = {"typed": ["run", "it"], "image": "hydra:1", "terminal": {}}
HERE = {"version": version("hydra-scale"), "digest": keeper.digest(str(sources()))}


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with a command; hydra is a program that runs Python code."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "hydra"
    program.write_text(HYDRA.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "runs").mkdir()
    return tmp_path / "order.json"


def started(order: Path, code: str, **more: object) -> subprocess.Popen[str]:
    order.write_text(json.dumps({"arguments": [code], **SAME, **HERE, **more}))
    command = [sys.executable, controller.__file__, str(order), str(order.parent / "runs")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("code", "exit_code", "out"),
    [
        ("print('table'); raise SystemExit(3)", 3, f"{OUTPUT}\ntable\n"),
        ("import os; os.kill(os.getpid(), 9)", 137, ""),
        ("from hydra.run.relocating import typed; print(*typed())", 0, f"{OUTPUT}\nhydra run it\n"),
        ("import sys; print('table'); sys.stderr.write('step 1\\n')", 0, f"step 1\n{OUTPUT}\ntable\n"),
    ],
)
def test_the_first_process_ends_like_the_command(order: Path, code: str, exit_code: int, out: str) -> None:
    process = started(order, code)
    said, told = process.communicate(timeout=20)
    assert (process.returncode, said, told) == (exit_code, "", out)
    assert files.found(order.parent / "runs" / ".hydra") == {"ended": True, "exit": exit_code}


@pytest.mark.processes
def test_output_for_a_terminal_is_that_of_a_terminal(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    code = "import sys; from shutil import get_terminal_size as size; print(sys.stdout.isatty(), size().columns)"
    long = f"{code}; print('x' * 100_000)"
    for terminal, said in (({}, "False 80"), ({"COLUMNS": "117"}, "True 117")):
        shutil.rmtree(order.parent / "runs" / ".hydra", ignore_errors=True)
        process = started(order, long, terminal=terminal)
        _, told = process.communicate(timeout=20)
        assert told == f"{OUTPUT}\n{said}\n{'x' * 100_000}\n"


@pytest.mark.processes
def test_a_signal_reaches_the_command_which_ends_in_order(order: Path) -> None:
    waits = "import signal\ntry:\n print('waits', flush=True); signal.pause()\n"
    code = f"{waits}except KeyboardInterrupt: raise SystemExit(130)"
    process = started(order, code)
    state = order.parent / "runs" / ".hydra"
    wait_until(lambda: (state / "output").exists() and "waits" in (state / "output").read_text(), 20, "the command")
    assert files.found(state) == {"ended": False, "exit": None}
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130


@pytest.mark.processes
def test_what_a_killed_command_has_left_comes_to_its_end_first(order: Path) -> None:
    left = "import time, pathlib; time.sleep(0.5); pathlib.Path('left').touch()"
    code = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {left!r}]); os.kill(os.getpid(), 9)"
    # Only the first process of a container gets orphans by itself.
    subreaper = "import ctypes, runpy, sys; ctypes.CDLL(None).prctl(36, 1); sys.argv = sys.argv[1:]"
    order.write_text(json.dumps({"arguments": [code], **SAME, **HERE}))
    runs = f"{subreaper}; runpy.run_path(sys.argv[0], run_name='__main__')"
    words = [sys.executable, "-c", runs, controller.__file__, str(order), str(order.parent / "runs")]
    assert subprocess.run(words, cwd=order.parent, timeout=20, check=False).returncode == 137
    assert (order.parent / "left").exists()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("other", "said"),
    [({"version": "2.0"}, ", and this is 2.0; build"), ({"digest": "0"}, " of other sources than this one; build")],
)
def test_an_image_with_another_hydra_is_one_line(order: Path, other: dict[str, str], said: str) -> None:
    process = started(order, "raise SystemExit(0)", **other)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 2
    assert said in told
    assert told.startswith("hydra: the image hydra:1 holds ")
    assert len(told.splitlines()) == 1


@pytest.mark.processes
def test_files_are_kept_until_the_command_has_ended_however_it_did(tmp_path: Path) -> None:
    state = tmp_path / ".hydra"
    state.mkdir()
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        keeping = subprocess.Popen([sys.executable, files.__file__, "keep", str(tmp_path), "0"])
        with pytest.raises(subprocess.TimeoutExpired):
            keeping.wait(0.5)
    assert keeping.wait(20) == 0
    assert files.found(state) == {"ended": True, "exit": None}


def test_a_packed_database_is_whole_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    (run / "table.md").write_text("| 1 |")
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    with closing(sqlite3.connect(run / "run.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE steps (step)")
        db.execute("INSERT INTO steps VALUES (1)")
        db.execute("BEGIN")
        db.execute("INSERT INTO steps VALUES (2)")
        files.pack(str(tmp_path / "runs"), "first")
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as archive:
        assert archive.getnames() == [".hydra/state", "first/run.db", "first/table.md"]
        archive.extract("first/run.db", tmp_path / "here", filter="data")
    with closing(sqlite3.connect(tmp_path / "here" / "first" / "run.db")) as db:
        assert db.execute("SELECT step FROM steps").fetchall() == [(1,)]
