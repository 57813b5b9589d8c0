from __future__ import annotations

import hashlib
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


A_JAR = b"a jar"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "pom.xml").write_text(POM)
    (tmp_path / jars.CHECKSUMS).write_text(f"{hashlib.sha256(A_JAR).hexdigest()}  a.jar\n")
    return tmp_path


def maven(folder: Path, what: str, calls: Path) -> None:
    """A Maven that writes jars: a shell script in which ``$out`` is their folder."""
    fetching = f'for a in "$@"; do case $a in -DoutputDirectory=*) out="${{a#*=}}"; {what};; esac; done'
    program(folder, "mvn", f'{fetching}\necho "$@" >> {calls}')


def one_line(e: pytest.ExceptionInfo[MissingDependencyError]) -> str:
    assert "\n" not in str(e.value)
    assert "needs neither Java nor Maven" in str(e.value)
    return str(e.value)


def test_without_java_the_package_is_named(bin_only: Path) -> None:
    with pytest.raises(MissingDependencyError) as e:
        jars.find_java()
    assert "openjdk-17-jre-headless" in one_line(e)


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo 'openjdk version \"1.8.0_402\"' >&2", "and .*java is 1.8.0_402; apt install"),
        (
            "echo 'Error occurred\nCould not reserve' >&2; exit 1",
            "does not start: Error occurred Could not reserve;",
        ),
        ("exit 3", "java does not start: exit status 3;"),
    ],
)
def test_a_java_that_is_old_or_does_not_start_is_refused(bin_only: Path, script: str, text: str) -> None:
    program(bin_only, "java", script)
    with pytest.raises(MissingDependencyError) as e:
        jars.find_java()
    assert re.search(text, one_line(e))


def test_without_maven_the_package_is_named(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError) as e:
        jars.fetch(conf, tmp_path / "cache")
    assert re.search(r"apt install maven\b", one_line(e))


@pytest.mark.tier("test")
def test_jars_are_fetched_once(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    maven(bin_only, 'printf "a jar" > "$out/a.jar"', tmp_path / "calls")
    first, second = (jars.fetch(conf, tmp_path / "cache") for _ in range(2))
    assert first == second
    assert first.version == "9.9.9"
    assert first.classpath.endswith(f"{os.sep}a.jar")
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert "--strict-checksums" in call


UNLISTED = "^{} in .* is not as .*jars.sha256 lists it; "


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("echo '[ERROR] no route'; exit 1", "no route"),
        ('printf "another" > "$out/a.jar"', UNLISTED.format("a.jar")),
        ('printf "a jar" > "$out/a.jar"; printf "" > "$out/b.jar"', UNLISTED.format("b.jar")),
        ("true", UNLISTED.format("a.jar")),
    ],
    ids=["failed", "changed", "one more", "one less"],
)
def test_a_fetch_that_fails_or_brings_other_jars_than_the_list_leaves_nothing(
    bin_only: Path, conf: Path, tmp_path: Path, what: str, expected: str
) -> None:
    maven(bin_only, what, tmp_path / "calls")
    with pytest.raises(MissingDependencyError, match=expected):
        jars.fetch(conf, tmp_path / "cache")
    found = [path for path in (tmp_path / "cache").rglob("*") if path.suffix != ".lock"]
    assert not [path for path in found if path.suffix == ".jar" or path.name.startswith(".")]


@pytest.mark.tier("test")
def test_a_cached_jar_that_was_changed_is_found_out_and_told_in_one_line(
    bin_only: Path, conf: Path, tmp_path: Path
) -> None:
    maven(bin_only, 'printf "a jar" > "$out/a.jar"', tmp_path / "calls")
    cached = jars.fetch(conf, tmp_path / "cache").folder
    (cached / "a.jar").write_bytes(b"b jar")
    with pytest.raises(MissingDependencyError, match=f"a.jar in {cached} is not as .* remove {cached}") as e:
        jars.fetch(conf, tmp_path / "cache")
    assert "\n" not in str(e.value)


def test_jars_that_came_with_the_program_need_no_maven(bin_only: Path, conf: Path, tmp_path: Path) -> None:
    (conf / "jars").mkdir()
    (conf / "jars" / "a.jar").write_bytes(A_JAR)
    assert jars.fetch(conf, tmp_path / "cache") == jars.Jars("9.9.9", conf / "jars")
    (conf / "jars" / "a.jar").write_bytes(b"")
    with pytest.raises(MissingDependencyError, match="make the agents' archive again"):
        jars.fetch(conf, tmp_path / "cache")


def test_the_list_names_every_jar_of_this_kafka() -> None:
    """A pom.xml that was changed without its list would refuse every broker."""
    version = re.search(r"<kafka.version>([^<]+)<", (jars.conf_folder() / "pom.xml").read_text())
    assert version is not None
    names = [line.split()[1] for line in (jars.conf_folder() / jars.CHECKSUMS).read_text().splitlines()]
    assert {f"kafka_2.13-{version[1]}.jar", f"kafka-tools-{version[1]}.jar"} <= set(names)
