"""``hydra install-completion``: one file, written once, that a real shell completes with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hydra.cli.main import cli
from hydra.errors import UsageError

FILES = {
    "bash": "data/bash-completion/completions/hydra",
    "zsh": "data/zsh/site-functions/_hydra",
    "fish": "config/fish/completions/hydra.fish",
}

BASH = """
. "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_hydra_completion hydra
printf '%s\\n' "${COMPREPLY[@]}"
"""


def install(folder: Path, *words: str, shell: str = "") -> Result:
    own = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
    return CliRunner().invoke(cli, ["install-completion", *words], env={**own, "SHELL": shell})


@pytest.mark.parametrize("shell", FILES)
def test_it_writes_one_file_once_and_says_how_to_undo_it(tmp_path: Path, shell: str) -> None:
    file = tmp_path / FILES[shell]
    first = install(tmp_path, shell=f"/usr/bin/{shell}").output
    assert f"wrote {file}" in first
    assert first.endswith(f"to undo the installation: rm {file}\n")
    text = file.read_text()
    assert f"{file} already exists" in install(tmp_path, shell).output
    assert file.read_text() == text
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    # A file of another program stays.
    file.write_text("mine")
    assert "Hydra did not write it" in str(install(tmp_path, shell).exception)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("shell", FILES)
def test_show_prints_and_writes_nothing(tmp_path: Path, shell: str) -> None:
    assert "_HYDRA_COMPLETE" in install(tmp_path, shell, "--show").output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("shell", "text"), [("/bin/dash", "your shell is dash, for which"), ("", "SHELL does not name your shell")]
)
def test_other_shells_are_refused(tmp_path: Path, shell: str, text: str) -> None:
    error = install(tmp_path, shell=shell).exception
    assert isinstance(error, UsageError)
    assert text in str(error)
    assert "bash|zsh|fish" in str(error)
    assert not list(tmp_path.iterdir())


@pytest.mark.tier("test")
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "present", "not_there"),
    [
        (["hydra", "run", "zmqf"], {"zmqfixed"}, {"kafka-fixed"}),
        (["hydra", "run", "zmqfixed", "--r"], {"--rcvhwm", "--rate", "--resume"}, {"--replicas"}),
        (["hydra", "broker", ""], {"up", "down", "status"}, set()),
    ],
)
def test_a_real_bash_completes(tmp_path: Path, words: list[str], present: set[str], not_there: set[str]) -> None:
    script = tmp_path / "hydra.bash"
    script.write_text(install(tmp_path, "bash", "--show").output)
    program = tmp_path / "hydra"
    program.write_text(f"#!{sys.executable}\nfrom hydra.cli.main import main\n\nmain()\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "--norc", "-c", BASH, "bash", str(script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = set(done.stdout.split())
    assert present <= found, done.stderr
    assert not not_there & found
