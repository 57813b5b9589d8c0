"""The build of the native client in a folder of sources, with a CMake that compiles nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hydra.native import build
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = pytest.mark.tier("test")

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
echo build >>"$2/builds"
printf '#!/bin/sh\\necho whole' >"$2/hydra-client"
chmod +x "$2/hydra-client"
"""
HALF = """
printf '#!/bin/sh\\necho half' >"$2/hydra-client"
chmod +x "$2/hydra-client"
"""
WAITS = """
echo waits >"$2/waits"
read -r line <"$2/../../go"
"""
AS_A_COMMAND_DOES = "import sys; sys.path.insert(0, ''); from build import compile_once; print(compile_once(print))"


class SourceTree:
    """A folder of sources.

    Attributes:
        program: where the compiled program is expected.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.program = folder / "hydra" / build.PROGRAM
        self.program.parent.mkdir(parents=True)
        shutil.copy(ROOT / "hydra/native/build.py", self.program.parent)
        (folder / "native").mkdir()
        (folder / "native" / "CMakeLists.txt").touch()
        self.lock = folder / "build/native/lock"
        for name in ("c++", "make", "pkg-config"):
            self.put(name, "")
        os.mkfifo(folder / "go")

    def put(self, name: str, script: str) -> None:
        """Puts a program first on the path."""
        file = self._folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}")
        file.chmod(0o755)

    def compile(self, script: str, *words: str, folder: str = "hydra/native") -> subprocess.Popen[str]:
        """Begins to compile with a CMake that runs the script in place of ``cmake --build FOLDER``."""
        self.put("cmake", f'[ "$1" = --build ] || exit 0\n{script}')
        path = f"{self._folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.Popen(
            # In the background of a shell that is not interactive, SIGINT is ignored.
            ["env", "--default-signal=INT", sys.executable, *(words or ("build.py",))],
            cwd=self._folder / folder,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_compiler(self) -> None:
        """Waits until the compiler of WAITS runs."""
        wait_until((self.lock.parent / "waits").is_file, "the compiler")

    def let_go(self) -> None:
        """Lets the compiler of WAITS continue."""
        (self._folder / "go").write_text("on\n")

    def builds(self) -> int:
        """How often something was compiled."""
        return len((self.lock.parent / "builds").read_text().split())


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    return SourceTree(tmp_path)


def waits_for_lock(process: subprocess.Popen[str]) -> bool:
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(words[1] == "->" and str(process.pid) in words for words in lines)


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    return out


def test_a_failed_build_is_said_without_a_traceback_and_leaves_no_program(tree: SourceTree) -> None:
    failed = tree.compile(f"{HALF}echo 'client.cpp:7: error'; exit 2")
    _, text = failed.communicate(timeout=SOON_S)
    assert failed.returncode == 1
    assert text.startswith("the native client cannot be compiled: cmake --build")
    assert text.endswith("client.cpp:7: error\n\n")
    assert not tree.program.exists()


def test_an_interrupted_build_leaves_no_program_and_the_next_one_compiles(tree: SourceTree) -> None:
    interrupted = tree.compile(HALF + WAITS, "-c", AS_A_COMMAND_DOES)
    tree.wait_for_compiler()
    os.killpg(interrupted.pid, signal.SIGINT)
    interrupted.communicate(timeout=SOON_S)
    assert interrupted.returncode != 0
    assert not tree.program.exists()
    assert output(tree.compile(GOOD, "-c", AS_A_COMMAND_DOES)) == f"{tree.program}\n"
    assert subprocess.run([tree.program], capture_output=True, text=True, check=True).stdout == "whole\n"


def test_of_two_processes_one_compiles_and_the_other_waits_for_its_program(tree: SourceTree) -> None:
    first = tree.compile(WAITS + GOOD, "-c", AS_A_COMMAND_DOES)
    tree.wait_for_compiler()
    second = tree.compile(WAITS + GOOD, "-c", AS_A_COMMAND_DOES)
    wait_until(lambda: waits_for_lock(second), "the second process at the lock")
    tree.let_go()
    assert [output(each) for each in (first, second)] == [f"{tree.program}\n"] * 2
    assert tree.builds() == 1


def test_an_installation_waits_for_a_build_in_the_same_folder(tree: SourceTree, tmp_path: Path) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "conf").mkdir()
    tree.lock.parent.mkdir(parents=True)
    with tree.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        setup = tree.compile(GOOD, "setup.py", "-q", "build_py", "--build-lib", "lib", folder=".")
        wait_until(lambda: waits_for_lock(setup), "setup.py at the lock")
    output(setup)
    assert (tmp_path / "lib/hydra" / build.PROGRAM).is_file()
    assert tree.builds() == 1
