"""The Job of a command in the cluster, its log, its Pod, and the scripts of its two containers."""

from __future__ import annotations

import base64
import fcntl
import io
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import pytest

from hydra.errors import UsageError
from hydra.kubernetes import object_names
from hydra.kubernetes.in_cluster import job_objects, job_state
from hydra.kubernetes.in_cluster.job_objects import FILES
from hydra.kubernetes.in_cluster.job_state import OUTPUT, LogReader
from hydra.kubernetes.pod_scripts import job_command, keeper_pod, run_files, wait_for_files
from hydra.kubernetes.pods import RunObjects
from hydra.kubernetes.program_delivery import sources
from hydra.kubernetes.settings import KubernetesSettings
from tests.cluster.kubernetes.objects import Json
from tests.cluster.kubernetes.objects import command_pod as pod
from tests.cluster.kubernetes.stated import unschedulable
from tests.suite.waiting import SOON_S, wait_until

SHIPPED = {job_objects.COMMAND_FILE: b'system = "zmq"', f"{FILES}/0/pw.txt": b"secret\xff"}
ORDER = job_objects.JobRequest(
    ("python3", "-m", "it"), ("run", "--set", "mqtt.password=pst"), "1.0", "d1gest", "hydra:1"
)
FAMILY = RunObjects("first", "lab", {}, KubernetesSettings(keep_s=60), "hydra:1", archive=False)

# --- objects ---------------------------------------------------------------------------------------------------------


DATA = job_objects.secret_data(ORDER, SHIPPED, {"OTEL_X": "token"})
JOB = job_objects.job(FAMILY, list(SHIPPED), ["OTEL_X"])
POD = JOB["spec"]["template"]
(VOLUME,) = (each["secret"] for each in POD["spec"]["volumes"] if each["name"] == "shipped")


def test_everything_that_may_be_secret_stands_in_the_secret_only() -> None:
    secret = job_objects.secret(FAMILY, DATA)
    assert not any(word in json.dumps(JOB) for word in ("pst", "token", "zmq"))
    assert {base64.b64decode(value) for value in secret["data"].values()} >= {*SHIPPED.values(), b"token"}
    assert json.loads(base64.b64decode(secret["data"]["order.json"])) == json.loads(json.dumps(asdict(ORDER)))


def test_a_pod_finds_its_files_where_its_words_name_them() -> None:
    found = {f"{job_objects.MOUNTED}/{item['path']}": DATA[item["key"]] for item in VOLUME["items"]}
    assert found.items() >= SHIPPED.items()
    containers = POD["spec"]["containers"]
    assert found.keys() >= {container["command"][1] for container in containers}
    variable = containers[0]["env"][-1]
    assert variable["name"] == "OTEL_X"
    assert DATA[variable["valueFrom"]["secretKeyRef"]["key"]] == b"token"


def test_the_pod_is_never_replaced_and_keeps_to_restricted() -> None:
    assert JOB["spec"]["backoffLimit"] == 0
    assert POD["metadata"]["labels"].items() >= object_names.labels("first", "controller").items()
    spec = POD["spec"]
    assert (spec["restartPolicy"], spec["serviceAccountName"]) == ("Never", "hydra")
    assert spec["securityContext"]["runAsNonRoot"]
    for container in spec["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "512Mi"}
    assert spec["containers"][1]["command"][-1] == "60"


def test_a_pod_waits_for_its_files_and_for_no_longer_than_it_says() -> None:
    assert VOLUME["optional"], "without it a Pod waits for ever"
    # The end of the first has the node look for the Secret again; the Pod ends with the second.
    ends = ((job_objects.SOON_S, 0), (job_objects.FILES_WITHIN_S, 1))
    for waiting, (its_s, late) in zip(POD["spec"]["initContainers"], ends, strict=True):
        *words, file, within_s, code = waiting["command"]
        assert (words[0], file) == ("python3", f"{job_objects.MOUNTED}/order.json")
        assert (within_s, code) == (str(its_s), str(late))
        assert waiting["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.tier("test")
def test_a_command_begins_when_its_files_come_and_ends_where_they_do_not(tmp_path: Path) -> None:
    def starts(within_s: int) -> subprocess.Popen[str]:
        words = [sys.executable, wait_for_files.__file__, str(tmp_path / "order.json"), str(within_s), "1"]
        return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)

    code, text = end_of(starts(0))
    assert "did not appear within 0 s" in text
    assert code == 1
    late = starts(round(SOON_S))
    (tmp_path / "order.json").touch()
    assert end_of(late) == (0, "")


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a process that ends, and its stderr; there is nothing on stdout."""
    with process:
        out, text = process.communicate(timeout=SOON_S)
    assert not out
    return process.returncode, text


def test_what_a_secret_does_not_hold_is_refused_and_named() -> None:
    with pytest.raises(UsageError, match=r"the largest is big\.csv with 1\.1 MB; leave out --in-cluster"):
        job_objects.secret_data(ORDER, {f"{FILES}/0/big.csv": bytes(1_100_000)}, {})


# --- its log ---------------------------------------------------------------------------------------------------------

TIMES = [f"2026-11-22T20:00:0{second}.000000000Z" for second in range(5)]


def test_a_log_that_is_read_again_shows_each_line_once() -> None:
    log = LogReader("first", "runs/mine")
    lines = [f"{TIMES[0]} a", f"{TIMES[1]} b", f"{TIMES[1]} c", f"{TIMES[1]} d", f"{TIMES[2]} e"]
    shown = [log.line(line) for line in lines[:3]]
    log.reconnected()
    shown += [line for line in map(log.line, lines) if line is not None]
    log.reconnected()
    shown += [line for line in map(log.line, lines[1:]) if line is not None]
    assert shown == ["a", "b", "c", "d", "e"]
    assert log.since == TIMES[2]


def test_lines_behind_the_mark_are_output_and_paths_are_those_of_here() -> None:
    log = LogReader("first", "runs/mine")
    assert log.line(f"{TIMES[0]} done: /runs/first/run.db") == "done: runs/mine/run.db"
    before = log.is_output
    assert log.line(f"{TIMES[1]} {OUTPUT}") is None
    assert (before, log.is_output) == (False, True)
    assert log.line(f"{TIMES[1]} ") == ""
    assert log.line("failed to watch file: too many open files") == "failed to watch file: too many open files"


# --- its Pod -----------------------------------------------------------------------------------------------


UNPLACED = {**pod({}), "spec": {"containers": [{"name": "hydra"}]}, "status": unschedulable()}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
UNPULLED = {"waiting": {"reason": "ImagePullBackOff", "message": "i/o timeout"}}
UNSTARTED = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "python3: not found"}}
UNMOUNTED = {"type": "Warning", "reason": "FailedMount", "message": "MountVolume.SetUp failed"}
LOOKS_UP = 'Error creating: pods "p" is forbidden: error looking up service account lab/x: serviceaccount "x" not found'
NO_ACCOUNT = {"reason": "FailedCreate", "message": LOOKS_UP}


@pytest.mark.parametrize(
    ("seen", "events", "waited_s", "text"),
    [
        (None, [], 1, ""),
        (None, [], 301, "the run's Job has made no Pod"),
        (None, [NO_ACCOUNT], 1, 'serviceaccount "x" not found'),
        (UNPLACED, [], 59, ""),
        (UNPLACED, [], 61, "none of 2 nodes takes it: 2 Insufficient cpu; add nodes, end other Pods, or lower contro"),
        (pod({"waiting": {"reason": "InvalidImageName", "message": "?"}}), [], 1, "image"),
        (pod(UNPULLED), [], 29, ""),
        (pod(UNPULLED), [], 31, "image"),
        (pod(CREATING), [], 299, ""),
        (pod(UNSTARTED), [], 1, "cannot be started: python3: not found; is the image Hydra's own"),
        (pod(CREATING), [UNMOUNTED], 301, "MountVolume.SetUp failed"),
    ],
)
def test_why_a_command_has_not_begun(seen: Json | None, events: list[Json], waited_s: float, text: str) -> None:
    """It is sent in time."""
    what, remedy = job_state.why_not_begun(seen, events, waited_s, "lab")
    assert text in f"{what}; {remedy}"
    assert bool(what) == bool(text)


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
    assert (job_state.has_begun(seen), job_state.has_ended(seen), job_state.is_kept(seen)) == (begun, ended, kept)


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        ({"exitCode": 137, "reason": "OOMKilled"}, "raise controller_mem in [kubernetes]"),
        ({"exitCode": 137, "reason": "Error", "message": "step 1: lost"}, "killed by SIGKILL; "),
    ],
)
def test_an_untimely_end_is_explained(ended: Json, text: str) -> None:
    assert text in "; ".join(job_state.end_reason(pod({"terminated": ended})))


# --- in its containers -----------------------------------------------------------------------------------------------

SAME = {"typed": ["run", "it"], "image": "hydra:1", "terminal": {}}
HERE = {"version": version("hydra-scale"), "digest": keeper_pod.digest(str(sources()))}


@pytest.fixture
def order(tmp_path: Path) -> Path:
    """The file with a command."""
    (tmp_path / "runs").mkdir()
    return tmp_path / "order.json"


def started(order: Path, code: str, **more: object) -> subprocess.Popen[str]:
    order.write_text(json.dumps({"words": [sys.executable, "-c", code], **SAME, **HERE, **more}))
    command = [sys.executable, job_command.__file__, str(order), str(order.parent / "runs")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("code", "exit_code", "out"),
    [
        ("print('table'); raise SystemExit(3)", 3, f"{OUTPUT}\ntable\n"),
        ("import os; os.kill(os.getpid(), 9)", 137, ""),
        ("from hydra.store.redaction import typed; print(*typed())", 0, f"{OUTPUT}\nhydra run it\n"),
        ("import sys; print('table'); sys.stderr.write('step 1\\n')", 0, f"step 1\n{OUTPUT}\ntable\n"),
    ],
)
def test_the_first_process_ends_like_the_command(order: Path, code: str, exit_code: int, out: str) -> None:
    assert end_of(started(order, code)) == (exit_code, out)
    assert run_files.found(order.parent / "runs" / ".hydra") == {"ended": True, "exit": exit_code}


@pytest.mark.tier("all")
def test_output_for_a_terminal_is_that_of_a_terminal(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    code = "import sys; from shutil import get_terminal_size as size; print(sys.stdout.isatty(), size().columns)"
    long = f"{code}; print('x' * 100_000)"
    for terminal, text in (({}, "False 80"), ({"COLUMNS": "117"}, "True 117")):
        shutil.rmtree(order.parent / "runs" / ".hydra", ignore_errors=True)
        assert end_of(started(order, long, terminal=terminal)) == (0, f"{OUTPUT}\n{text}\n{'x' * 100_000}\n")


@pytest.mark.tier("test")
def test_a_signal_reaches_the_command_which_ends_in_order(order: Path) -> None:
    waits = "import signal\ntry:\n print('waits', flush=True); signal.pause()\n"
    code = f"{waits}except KeyboardInterrupt: raise SystemExit(130)"
    process = started(order, code)
    state = order.parent / "runs" / ".hydra"
    output = state / "output"
    wait_until(lambda: output.exists() and "waits" in output.read_text(), "the command's word")
    assert run_files.found(state) == {"ended": False, "exit": None}
    process.send_signal(signal.SIGINT)
    assert end_of(process)[0] == 130


@pytest.mark.tier("all")
def test_what_a_killed_command_has_left_comes_to_its_end_first(order: Path) -> None:
    left = "import time, pathlib; time.sleep(0.5); pathlib.Path('left').touch()"
    code = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {left!r}]); os.kill(os.getpid(), 9)"
    # Only the first process of a container gets orphans by itself.
    subreaper = "import ctypes, runpy, sys; ctypes.CDLL(None).prctl(36, 1); sys.argv = sys.argv[1:]"
    order.write_text(json.dumps({"words": [sys.executable, "-c", code], **SAME, **HERE}))
    runs = f"{subreaper}; runpy.run_path(sys.argv[0], run_name='__main__')"
    words = [sys.executable, "-c", runs, job_command.__file__, str(order), str(order.parent / "runs")]
    assert subprocess.run(words, cwd=order.parent, timeout=SOON_S, check=False).returncode == 137
    assert (order.parent / "left").exists()


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("other", "text"),
    [({"version": "2.0"}, ", and this is 2.0; build"), ({"digest": "0"}, " of other sources than this one; build")],
)
def test_an_image_with_another_hydra_is_one_line(order: Path, other: dict[str, str], text: str) -> None:
    code, reported = end_of(started(order, "raise SystemExit(0)", **other))
    assert code == 2
    assert text in reported
    assert reported.startswith("hydra: the image hydra:1 holds ")
    assert len(reported.splitlines()) == 1


@pytest.mark.tier("all")
def test_files_are_kept_until_the_command_has_ended_however_it_did(tmp_path: Path) -> None:
    state = tmp_path / ".hydra"
    state.mkdir()
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        keeping = subprocess.Popen([sys.executable, run_files.__file__, "keep", str(tmp_path), "0"])
        with pytest.raises(subprocess.TimeoutExpired):
            keeping.wait(0.3)
    assert keeping.wait(SOON_S) == 0
    assert run_files.found(state) == {"ended": True, "exit": None}


def test_a_packed_database_is_whole_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    (run / "table.md").write_text("| 1 |")
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    with closing(sqlite3.connect(run / "run.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE steps AS SELECT 1 AS step")
        db.execute("BEGIN")
        db.execute("INSERT INTO steps VALUES (2)")
        run_files.pack(str(tmp_path / "runs"), "first")
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as archive:
        assert archive.getnames() == [".hydra/state", "first/run.db", "first/table.md"]
        archive.extract("first/run.db", tmp_path / "here", filter="data")
    with closing(sqlite3.connect(tmp_path / "here" / "first" / "run.db")) as db:
        assert db.execute("SELECT step FROM steps").fetchall() == [(1,)]


# --- what becomes of the command's output -----------------------------------------------------------------------------


@pytest.mark.tier("test")
def test_a_command_writes_to_a_terminal_and_the_file_has_it_as_it_is(tmp_path: Path) -> None:
    script = "import sys; print(sys.stdout.isatty()); print('x' * 300_000)"
    with (tmp_path / "output").open("wb", buffering=0) as written, job_command.passed_on(written) as terminal:
        assert subprocess.run([sys.executable, "-c", script], stdout=terminal, timeout=SOON_S).returncode == 0
    assert (tmp_path / "output").read_text() == "True\n" + "x" * 300_000 + "\n"


@pytest.mark.tier("test")
def test_a_command_whose_output_cannot_be_kept_is_told_and_does_not_wait(capsys: pytest.CaptureFixture[str]) -> None:
    script = "import os\nwhile True: os.write(1, bytes(65536))"
    with Path("/dev/full").open("wb", buffering=0) as written, job_command.passed_on(written) as terminal:
        child = subprocess.Popen([sys.executable, "-c", script], stdout=terminal, stderr=subprocess.PIPE)
        try:
            _, text = child.communicate(timeout=SOON_S)
        finally:
            child.kill()
    assert b"Input/output error" in text
    assert capsys.readouterr().err == "hydra: the output of the command cannot be kept: No space left on device\n"


@pytest.mark.tier("test")
def test_nobody_waits_for_another_process_with_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_command, "COPIED_WITHIN_S", 0.1)
    before = set(threading.enumerate())
    script = "import os; os.read(0, 1); os.write(1, b'late')"
    with (tmp_path / "output").open("wb", buffering=0) as written, job_command.passed_on(written) as terminal:
        (copying,) = set(threading.enumerate()) - before
        left = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=terminal)
    left.communicate(b"x", timeout=SOON_S)
    copying.join(SOON_S)
    # What a thread raises fails the test.
    assert not copying.is_alive()
