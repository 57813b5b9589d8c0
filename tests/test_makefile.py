"""The Makefile's order of installation, and the link to the installed command."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.tier("test")

ROOT = Path(__file__).parents[1]
COMMAND = ".venv/bin/hydra"


@pytest.mark.parametrize("targets", ["soak", "test", "bench", "quick", "lint install test", "install lint"])
def test_the_environment_of_a_fresh_tree_is_made_once_before_anything_is_installed_into_it(
    targets: str, tmp_path: Path
) -> None:
    for name in ("Makefile", "pyproject.toml", "setup.py", "shims/http-parser/pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-n", *targets.split()]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    made = [number for number, line in enumerate(lines) if "-m venv" in line]
    used = [number for number, line in enumerate(lines) if ".venv/bin/" in line]
    assert len(made) == 1
    assert made[0] < used[0]


class Installed:
    """A tree with a command, and a path with folders of a user.

    Attributes:
        command: the command in the tree.
        link: where the command is linked to.
        later: a program of the same name in a later folder of the path.
    """

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "tree"
        self._path = [folder / "home/.local/bin", folder / "later"]
        self.command = program(self._tree / COMMAND)
        self.link, self.later = (each / "hydra" for each in self._path)
        # As root the script would link into the machine's own folder.
        program(folder / "tools/id", "echo 1000")
        self._path.append(folder / "tools")

    def run(self, *words: str) -> str:
        """What scripts/link-command prints."""
        path = ":".join(map(str, [*self._path, "/usr/bin", "/bin"]))
        environment = {"PATH": path, "HOME": str(self._path[0].parents[1])}
        command = ["sh", str(ROOT / "scripts/link-command"), *words, COMMAND]
        done = subprocess.run(command, cwd=self._tree, env=environment, capture_output=True, text=True, check=True)
        return done.stdout


def program(path: Path, script: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_the_command_is_linked_in_place_of_that_of_a_tree_that_is_gone_and_the_link_is_removed(
    installed: Installed, tmp_path: Path
) -> None:
    installed.link.parent.mkdir(parents=True)
    installed.link.symlink_to(tmp_path / "gone" / COMMAND)
    assert f"{installed.link} leads to {COMMAND}" in installed.run()
    assert installed.link.readlink() == installed.command
    installed.run("--remove")
    assert not installed.link.is_symlink()


@pytest.mark.parametrize("kind", ["program", "link", "link to another tree", "broken link", "later"])
def test_another_program_of_this_name_stays_and_the_path_of_the_command_is_printed(
    installed: Installed, tmp_path: Path, kind: str
) -> None:
    other = installed.later if kind == "later" else installed.link
    target = (
        tmp_path / ("another" if "tree" in kind else "pipx/venvs/hydra") / (COMMAND if "tree" in kind else "bin/hydra")
    )
    if "link" in kind:
        other.parent.mkdir(parents=True)
        other.symlink_to(target if kind == "broken link" else program(target))
    else:
        program(other)
    before = (other.is_symlink(), other.resolve())
    assert installed.run() == f"The command is {COMMAND}; {other} is another program\n"
    installed.run("--remove")
    assert (other.is_symlink(), other.resolve()) == before
    assert installed.link == other or not installed.link.is_symlink()
