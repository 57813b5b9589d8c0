"""Where the program of a server is found: on PATH, in the folders of a distribution, in a Python package."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from hydra.client import server_interface
from hydra.client.server_interface import InstalledProgram, installed
from hydra.config import plugins
from hydra.errors import MissingDependencyError

PACKAGES = {"toyd": "toy-server-bin"}


def program(folder: Path) -> str:
    """A program in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "toyd").touch(0o755)
    return str(folder / "toyd")


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only folder of PATH; no program is installed anywhere."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(server_interface, "SYSTEM_PROGRAMS", str(tmp_path / "sbin"))
    return tmp_path / "path"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The environment of an installed Python package with the program, which is in ``bin``."""
    environment = tmp_path / "environment"
    facts = environment / "lib" / "toy_server_bin-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Name: toy-server-bin\nVersion: 1.0\n")
    (facts / "RECORD").write_text("toy_server_bin-1.0.dist-info/METADATA,,\n../bin/toyd,,\n")
    monkeypatch.syspath_prepend(environment / "lib")
    return environment


def test_a_program_on_path_comes_before_others(path: Path, site: Path, tmp_path: Path) -> None:
    program(site / "bin")
    in_sbin = program(tmp_path / "sbin")
    assert installed("toyd", PACKAGES) == InstalledProgram(in_sbin, "PATH")
    on_path = program(path)
    assert installed("toyd", PACKAGES) == InstalledProgram(on_path, "PATH")


def source_of(file: str) -> str:
    """The source of the program that is found, which is this file."""
    found = installed("toyd", PACKAGES)
    assert Path(found.path).samefile(file)
    return found.source


def test_without_one_that_of_the_package_is_taken(path: Path, site: Path) -> None:
    assert source_of(program(site / "bin")) == "toy-server-bin"


def test_a_package_whose_folder_is_on_path_is_named(monkeypatch: pytest.MonkeyPatch, path: Path, site: Path) -> None:
    file = program(site / "bin")
    monkeypatch.setenv("PATH", str(site / "bin"))
    monkeypatch.setattr(sys, "prefix", str(site))
    assert source_of(file) == "toy-server-bin"
    # A file that a user has put into the environment is not the package's.
    own = program(site / "own")
    monkeypatch.setenv("PATH", str(site / "own"))
    assert installed("toyd", PACKAGES) == InstalledProgram(own, "PATH")


def test_a_package_that_lacks_its_program_counts_as_missing(path: Path, site: Path) -> None:
    with pytest.raises(MissingDependencyError) as missing:
        installed("toyd", PACKAGES)
    assert str(missing.value) == (
        "the program toyd is not installed; "
        "apt install toyd, pip install 'hydra-scale[servers]', or name your servers with --servers HOST:PORT"
    )
    with pytest.raises(MissingDependencyError, match="apt install toyd, or name your servers"):
        installed("toyd", {})


def test_the_extra_has_the_packages_of_all_systems() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extra = {re.split("[<>=]", each)[0] for each in project["optional-dependencies"]["servers"]}
    servers = [spec.servers for spec in plugins.systems().values() if spec.servers is not None]
    assert extra == {package for kind in servers for package in kind.packages.values()}
