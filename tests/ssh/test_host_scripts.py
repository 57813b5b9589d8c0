"""The supervisor itself, as a shell runs it: what it starts, and that nothing of it is left however it ends."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hydra.ssh import host_scripts
from tests.ssh.daemons import left_in
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("test")

RUNNER = '#!/bin/sh\n[ "$1" = python ] && { echo "hydra-run: this agent has no Python" >&2; exit 78; }\nexec "$@"\n'
"""Stands for the archive's: it starts what it is given."""
GROUPS = {
    "killed": "trap '' TERM; echo up; while :; do sleep 0.1; done",
    "stdin": "setsid sleep 1000 & exec sleep 1000",
}
"""A group that ignores SIGTERM, and one of which a process has left."""
SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"there is no {shell}"))
    for shell in ("dash", "bash")
]


_NUMBERS = itertools.count()


class Supervised:
    """A supervisor of a run of its own, ``it's run …``, and both ends of its streams."""

    def __init__(self, tmp: Path, shell: str, run: str = "", uid: int = 0, **around: str) -> None:
        self.run = run or f"it's run {os.getpid()}-{next(_NUMBERS)}"
        self.tmp = tmp
        self._user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
        self._around = {**os.environ, "TMPDIR": str(tmp), **around}
        kept = tmp / f"hydra-{uid or os.getuid()}" / "abc"
        kept.mkdir(parents=True, exist_ok=True)
        if uid:
            os.chown(kept.parent, uid, uid)
        (kept / "complete").touch()
        (kept / "hydra-run").write_text(RUNNER)
        (kept / "hydra-run").chmod(0o755)
        script = host_scripts.filled(host_scripts.SUPERVISOR, digest="abc", python="python3.11")
        words = [shell if word == "/bin/sh" else word for word in host_scripts.started(script, self.run)]
        self.process = psutil.Popen(
            [*self._user, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._around
        )
        self.process.stdin.write(script.encode())
        self.facts = {}
        while (found := self.hear())["kind"] == "fact":
            self.facts[found["name"]] = found["value"]
        assert found["kind"] == "hello"

    def send(self, *words: str) -> None:
        self.process.stdin.write(host_scripts.line(*words))
        self.process.stdin.flush()

    def hear(self) -> dict[str, str]:
        self.process.stdin.flush()
        found = host_scripts.reply(self.process.stdout.readline().decode().rstrip("\n"))
        assert found is not None
        return found

    def output_of(self, script: str) -> list[list[str]]:
        """What its user's own command prints, which runs this script there."""
        words = [*self._user, "sh", "-c", script]
        done = subprocess.run(words, env=self._around, capture_output=True, text=True, check=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def left(self) -> list[str]:
        """Its folders, or else the processes that it started."""
        return left_in([self.tmp])

    def commands(self) -> list[str]:
        """The command lines of its processes."""
        found = []
        for process in self.process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                found.append(" ".join(process.cmdline()))
        return found

    def close(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.kill()
        wait_until(lambda: not self.left(), "the end of all that it started", saw=self.left)
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        self.process.wait(SOON_S)


@pytest.fixture(params=["sh"])
def supervised(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Supervised]:
    started = Supervised(tmp_path / "tmp", request.param)
    yield started
    started.close()


@pytest.mark.parametrize("supervised", SHELLS, indirect=True)
def test_a_group_has_its_words_its_environment_and_a_lifeline(supervised: Supervised) -> None:
    assert supervised.facts["archive"] == "kept"
    word = 'x y\'s\nz\\n$HOME `id` "ü"'
    script = 'printf "%s|" "$A" "$HYDRA_RUN" "$HYDRA_LIFELINE" "$1" >&2; exit 3'
    supervised.send("start", "g", "1", f"A={word}", "sh", "-c", script, "sh", "*")
    started, ended = supervised.hear(), supervised.hear()
    assert (started["kind"], started["group"]) == ("started", "g")
    text = word.replace("\n", "|")
    assert ended == {"kind": "ended", "group": "g", "status": "3", "text": f"{text}|{supervised.run}|9|*|"}


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        (["true"], ""),
        (["python", "-c", "pass"], "hydra-run: this agent has no Python"),
        (["sh", "-c", "exit 3"], "sh -c exit 3 ends with status 3 there, and prints nothing"),
    ],
)
def test_a_program_is_started_to_see_why_it_does_not(supervised: Supervised, words: list[str], failure: str) -> None:
    supervised.send("prove", *words)
    assert supervised.hear() == {"kind": "tried", "failure": failure}


@pytest.mark.parametrize("python", ["python3.11", ""])
def test_a_host_without_bash_and_nc_finds_out_with_python_whether_it_reaches_an_address(
    tmp_path: Path, python: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for path in Path("/usr/bin").iterdir():
        if path.name not in ("bash", "nc", "python3.11"):
            (tools / path.name).symlink_to(path)
    if python:
        (tools / python).symlink_to(sys.executable)
    with (
        contextlib.closing(Supervised(tmp_path / "tmp", "sh", PATH=str(tools))) as supervised,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        for port, answer in ((server.getsockname()[1], "yes"), (1, "no")):
            supervised.send("reach", "127.0.0.1", str(port))
            assert supervised.hear() == {"kind": "reach", "answer": answer if python else "unknown"}


def test_a_signal_reaches_a_group_that_is_just_being_started(supervised: Supervised) -> None:
    supervised.send("start", "g", "0", "sleep", "1000")
    supervised.send("signal", "g", "KILL")
    assert supervised.hear()["kind"] == "started"
    assert supervised.hear()["status"] == "137"


def test_a_signal_reaches_the_whole_group_and_no_other(supervised: Supervised) -> None:
    for name in ("g", "h"):
        supervised.send("start", name, "0", "sh", "-c", "sleep 1000 & wait")
        supervised.hear()
    wait_until(lambda: supervised.commands().count("sleep 1000") == 2, "both groups", saw=supervised.commands)
    supervised.send("signal", "g", "TERM")
    assert supervised.hear()["status"] == "143"
    wait_until(lambda: supervised.commands().count("sleep 1000") == 1, "one group", saw=supervised.commands)


def test_an_archive_arrives_in_pieces_with_pings_between_them(supervised: Supervised) -> None:
    data = b"`touch evaluated`\n$(touch evaluated)\n" * 20_000
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("data")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    for begin in range(0, len(packed.getvalue()), 300_000):
        piece = packed.getvalue()[begin : begin + 300_000]
        supervised.process.stdin.write(host_scripts.line("archive", str(len(piece))) + piece)
        supervised.send("ping")
    supervised.send("unpack")
    assert supervised.hear()["kind"] == "stored"
    (kept,) = supervised.tmp.glob("hydra-run-*/data")
    assert kept.read_bytes() == data


def test_what_does_not_fit_ends_the_supervisor_and_is_not_evaluated(supervised: Supervised) -> None:
    (work,) = supervised.tmp.glob("hydra-run-*")
    (work / "archive").mkdir()  # nothing can be appended to it
    supervised.process.stdin.write(host_scripts.line("archive", "10") + b"`exit 9`\n" * 2)
    assert supervised.hear()["kind"] == "refused"
    assert supervised.process.wait(SOON_S) == 0
    assert supervised.left() == []


def test_a_name_is_that_of_several_runs_and_the_digits_are_of_one(tmp_path: Path) -> None:
    name = f"it's z {os.getpid()}"
    around = {**os.environ, "TMPDIR": str(tmp_path)}
    one, two = (psutil.Popen(["sleep", "1000"], env={**around, "HYDRA_RUN": f"{name}/{digits}"}) for digits in "12")
    try:
        for run, ended in ((f"{name}/3", set()), (f"{name}/1", {one}), (name, {two})):
            script = host_scripts.filled(host_scripts.KILLED, run=run)
            done = subprocess.run(["sh", "-c", script], env=around, capture_output=True, text=True, check=True)
            pids = {line.split("\t")[1] for line in done.stdout.splitlines()[:-1]}  # a dying one may be found twice
            assert pids == {str(each.pid) for each in ended}
            for each in ended:
                assert each.wait(SOON_S) == -signal.SIGKILL
    finally:
        for each in (one, two):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
            each.wait(SOON_S)


def test_a_copy_behind_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "theirs/abc").mkdir(parents=True)
    for name in ("complete", "hydra-run"):
        (tmp_path / "theirs/abc" / name).touch(0o755)
    (tmp_path / f"hydra-{os.getuid()}").symlink_to(tmp_path / "theirs")
    script = host_scripts.filled(host_scripts.FACTS, digest="abc", python="python3.11")
    around = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", script], env=around, capture_output=True, text=True, check=True)
    assert "fact\tarchive\t\n" in done.stdout


@pytest.mark.parametrize("end", ["end", "stdin", "killed", "killed in an archive", "watcher killed"])
def test_nothing_is_left_however_it_ends(supervised: Supervised, end: str) -> None:
    supervised.send("start", "g", "0", "sh", "-c", GROUPS.get(end, "exec sleep 1000"))
    supervised.hear()
    match end:
        case "end":
            supervised.send("end")
        case "stdin":
            wait_until(lambda: supervised.commands().count("sleep 1000") == 2, "both", saw=supervised.commands)
            supervised.process.stdin.close()
        case "killed":
            supervised.process.send_signal(signal.SIGKILL)
        case "killed in an archive":  # the network falls silent, so its standard input stays open
            supervised.send("archive", "1000000")
            wait_until(lambda: "head -c 1000000" in supervised.commands(), "head", saw=supervised.commands)
            supervised.process.send_signal(signal.SIGKILL)
        case "watcher killed":  # what the user's own command then does
            for process in [*supervised.process.children(), supervised.process]:  # a watcher that lives ends the group
                if process.name() != "setsid":
                    process.kill()
            ended = supervised.output_of(host_scripts.filled(host_scripts.KILLED, run=supervised.run))
            assert {kind for kind, *_ in ended} == {"process", "folder", "hello"}
    if end in ("end", "stdin"):
        assert supervised.process.wait(SOON_S) == 0
        assert list(supervised.tmp.glob("hydra-run-*")) == []
    wait_until(lambda: not supervised.left(), "the end of all that it started", saw=supervised.left)


def test_a_group_that_is_not_yet_a_process_group_ends(tmp_path: Path) -> None:
    slow = tmp_path / "bin/setsid"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 0.5\nexec {shutil.which("setsid")} "$@"\n')
    slow.chmod(0o755)
    supervised = Supervised(tmp_path / "tmp", "sh", PATH=f"{slow.parent}:{os.environ['PATH']}")
    supervised.send("start", "g", "0", "sh", "-c", "exec sleep 1000")
    supervised.send("end")
    assert supervised.process.wait(SOON_S) == 0
    supervised.close()


def test_what_a_batch_system_has_left_is_removed_by_the_next_supervisor(supervised: Supervised) -> None:
    supervised.send("start", "g", "0", "sleep", "1000")
    supervised.hear()
    another = Supervised(supervised.tmp, "sh")
    assert len(list(supervised.tmp.glob("hydra-run-*"))) == 2  # it leaves those of other runs alone
    another.process.kill()
    wait_until(lambda: len(list(supervised.tmp.glob("hydra-run-*"))) == 1, "the end of its watcher")
    for process in [*supervised.process.children(recursive=True), supervised.process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    supervised.process.wait(SOON_S)
    (left,) = supervised.tmp.glob("hydra-run-*")
    # A folder of another host that has the same TMPDIR.
    elsewhere = supervised.tmp / "hydra-run-elsewhere"
    elsewhere.mkdir()
    pid, host, rest = (left / "run").read_text().split(" ", 2)
    (elsewhere / "run").write_text(f"{pid} not-{host} {rest}")
    third = Supervised(supervised.tmp, "sh")
    assert not left.exists()
    assert elsewhere.exists()
    shutil.rmtree(elsewhere)
    for each in (third, another):
        each.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_files_are_read_by_patterns_and_no_name_of_a_file_is_a_command(tmp_path: Path, shell: str) -> None:
    odd = tmp_path / "a b;`touch there`$(touch there)'"
    odd.write_text("one\n\ttwo\n")
    script = host_scripts.reading([[str(odd), f"{tmp_path}/none*"], [f"{tmp_path}/[a-c]*"]])
    done = subprocess.run([shell, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    *lines, hello = map(host_scripts.reply, done.stdout.splitlines())
    assert lines == [
        {"kind": "text", "reading": reading, "path": str(odd), "line": line}
        for reading in ("0", "1")
        for line in ("one", " two")
    ]
    assert hello == {"kind": "hello"}
    assert list(tmp_path.iterdir()) == [odd]


def test_a_run_is_listed_and_ended_by_its_name_only(supervised: Supervised) -> None:
    supervised.send("start", "g", "1", "MY_HYDRA_RUN=another", "sleep", "1000")
    supervised.hear()
    listed = supervised.output_of(host_scripts.LISTED)
    assert {kind for kind, *rest in listed if supervised.run in rest} == {"process", "folder"}
    assert supervised.output_of(host_scripts.filled(host_scripts.KILLED, run="another")) == [["hello"]]
    assert supervised.process.is_running()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_a_run_of_another_user_with_the_same_name_is_not_seen() -> None:
    with tempfile.TemporaryDirectory() as shared:  # another user cannot enter the folders of pytest
        Path(shared).chmod(0o1777)
        with (
            contextlib.closing(Supervised(Path(shared), "sh")) as own,
            contextlib.closing(Supervised(Path(shared), "sh", own.run, uid=65_534)) as others,
        ):
            own.send("start", "g", "0", "sleep", "1000")
            own.hear()
            assert sum(kind == "folder" for kind, *_ in others.output_of(host_scripts.LISTED)) == 1
            own.output_of(host_scripts.filled(host_scripts.KILLED, run=own.run))
            own.process.wait(SOON_S)
            assert own.run not in str(own.output_of(host_scripts.LISTED))
            others.send("start", "g", "0", "true")
            assert [others.hear()["kind"] for _ in range(2)] == ["started", "ended"]
