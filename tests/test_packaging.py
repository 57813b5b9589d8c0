"""The built package holds everything that an installed Hydra reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import hydra
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import conf_dir, scenarios
from hydra.config.scenario import load_scenario

pytestmark = pytest.mark.tier("all")

TREE = Path(__file__).resolve().parents[1]
PARTS = ("pyproject.toml", "setup.py", "README.md", "hydra", "conf")


def copied(tree: Path, *more: str) -> Path:
    """A copy of what a wheel is built from: setuptools leaves a build folder, which would end up in later wheels."""
    tree.mkdir(exist_ok=True)
    for part in (*PARTS, *more):
        source = TREE / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("__pycache__", "hydra-client*"))
        else:
            shutil.copy(source, tree / part)
    return tree


def built(kind: str, tree: Path, out: Path, **reported: str) -> Path:
    """The wheel, or the sdist, of a tree."""
    out.mkdir(exist_ok=True)
    build = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    command = [sys.executable, "-c", build, str(out)]
    done = subprocess.run(command, cwd=tree, env=os.environ | reported, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = out.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(built("wheel", copied(folder / "tree"), folder / "out")) as file:
        yield file


def test_a_wheel_takes_the_client_and_the_platform_that_it_is_told(tmp_path: Path) -> None:
    client = tmp_path / "portable"
    client.write_bytes(b"\x7fELF as it was built")
    client.chmod(0o755)
    reported = {"HYDRA_WHEEL_CLIENT": str(client), "HYDRA_WHEEL_PLATFORM": "manylinux_2_28_aarch64"}
    found = built("wheel", copied(tmp_path / "tree"), tmp_path / "out", **reported)
    assert found.name.endswith("-py3-none-manylinux_2_28_aarch64.whl")
    with zipfile.ZipFile(found) as file:
        assert file.read("hydra/native/hydra-client") == client.read_bytes()
        assert file.getinfo("hydra/native/hydra-client").external_attr >> 16 & 0o111


def test_a_source_distribution_can_build_the_native_client(tmp_path: Path) -> None:
    archive = built("sdist", copied(tmp_path / "tree", "MANIFEST.in", "native", "shims"), tmp_path / "out")
    with tarfile.open(archive) as file:
        held = {name.partition("/")[2] for name in file.getnames()}
    sources = {str(p.relative_to(TREE)) for p in (TREE / "native").rglob("*") if p.name == "CMakeLists.txt"}
    sources |= {str(p.relative_to(TREE)) for p in (TREE / "native" / "src").rglob("*") if p.is_file()}
    assert sources
    assert sources | {"conf/hydra.toml", "shims/http-parser/pyproject.toml"} <= held


def test_conf_is_in_the_wheel_file_by_file(wheel: zipfile.ZipFile) -> None:
    expected = {f"hydra/{path.relative_to(TREE)}" for path in (TREE / "conf").rglob("*") if path.is_file()}
    known = ("hydra.toml", "kafka/pom.xml", "kubernetes/role.yaml", "scenarios/zmqrate.toml")
    assert {f"hydra/conf/{name}" for name in known} <= expected
    assert expected - set(wheel.namelist()) == set()


def test_every_module_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    files = [path for pattern in ("*.py", "native-packages") for path in (TREE / "hydra").rglob(pattern)]
    expected = {str(path.relative_to(TREE)) for path in files} | {"hydra/py.typed", "hydra/kafkatest/native-packages"}
    assert expected - set(wheel.namelist()) == set()


def test_nothing_but_hydra_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hydra"}


def test_the_wheel_installs_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "hydra = hydra.cli.entry_point:main" in wheel.read(name).decode()


def test_the_wheel_asks_for_what_pyproject_names(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    requests = {
        Requirement(line.split(": ")[1])
        for line in wheel.read(name).decode().splitlines()
        if line.startswith("Requires-Dist")
    }
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    assert set(map(Requirement, project["dependencies"])) <= requests


@pytest.mark.tier("quick")
def test_the_installed_hydra_finds_its_scenarios_and_its_cluster() -> None:
    assert scenarios() == sorted(path.stem for path in (TREE / "conf" / "scenarios").glob("*.toml"))
    assert load_scenario("zmqrate").system == "zmq"
    assert load_cluster().agents


@pytest.mark.tier("quick")
def test_an_installed_hydra_reads_no_file_of_the_working_tree() -> None:
    package = Path(hydra.__file__).resolve().parent
    if package.parent == TREE:
        pytest.skip("hydra is installed as editable; tox tests the built package")
    assert conf_dir() == package / "conf"


@pytest.mark.tier("quick")
def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="hydra")
    assert command.value == "hydra.cli.entry_point:main"
