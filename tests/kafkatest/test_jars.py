from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hydra.errors import MissingDependencyError
from hydra.kafkatest import jars

POM = "<project><properties><kafka.version>9.9.9</kafka.version></properties></project>"


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def bin_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "pom.xml").write_text(POM)
    return tmp_path


def one_line(e: pytest.ExceptionInfo[MissingDependencyError]) -> str:
    assert "\n" not in str(e.value)
    assert "ZMQ half" in str(e.value)
    return str(e.value)


def test_without_java_the_package_is_named(bin_only: Path) -> None:
    with pytest.raises(MissingDependencyError) as e:
        jars.find_java()
    assert "openjdk-17-jre-headless" in one_line(e)


def test_an_old_java_is_refused(bin_only: Path) -> None:
    program(bin_only, "java", "echo 'openjdk version \"1.8.0_402\"' >&2")
    with pytest.raises(MissingDependencyError) as e:
        jars.find_java()
    assert "1.8.0_402" in one_line(e)


def test_without_maven_the_package_is_named(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError) as e:
        jars.fetch(conf, tmp_path / "cache")
    assert re.search(r"apt install maven\b", one_line(e))


def test_a_failed_fetch_leaves_nothing_and_says_why(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    program(bin_only, "mvn", "echo '[ERROR] no route'; exit 1")
    with pytest.raises(MissingDependencyError, match="no route"):
        jars.fetch(conf, tmp_path / "cache")
    assert [p.name for p in (tmp_path / "cache").rglob("*") if p.suffix != ".lock" and p.name.startswith(".")] == []


def test_jars_are_fetched_once(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    fetching = 'for a in "$@"; do case $a in -DoutputDirectory=*) : > "${a#*=}/a.jar";; esac; done'
    program(bin_only, "mvn", f"{fetching}\necho x >> {tmp_path}/calls")
    first, second = (jars.fetch(conf, tmp_path / "cache") for _ in range(2))
    assert first == second
    assert first.version == "9.9.9"
    assert first.classpath.endswith(f"{os.sep}a.jar")
    assert (tmp_path / "calls").read_text() == "x\n"


def test_jars_that_came_with_the_program_need_no_maven(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    (conf / "jars").mkdir()
    assert jars.fetch(conf, tmp_path / "cache") == jars.Jars("9.9.9", conf / "jars")
