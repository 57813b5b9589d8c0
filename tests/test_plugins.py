"""Entry points: what packages bring to the ``hydra`` command, and when it is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

from hydra.config import plugins
from hydra.errors import ConfigError
from tests.integration.command import hydra

MODULE = """
import click
print("imported")

@click.command("greet")
def greet() -> None:
    \"\"\"Say hello.\"\"\"
    print("hello")
"""


def python(program: str, **env: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={**os.environ, **env}
    )
    return done.stdout


def bring(folder: Path, entries: str, *, package: str = "greeter-1.0.dist-info", module: str = MODULE) -> Path:
    """A package in this folder, as pip leaves it there."""
    (folder / package).mkdir(parents=True)
    (folder / package / "entry_points.txt").write_text(entries)
    (folder / "greeter.py").write_text(module)
    return folder


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    plugins.commands.cache_clear()
    yield
    plugins.commands.cache_clear()


def test_entry_points_are_those_of_importlib() -> None:
    installed: dict[str, dict[str, str]] = {}
    seen = set()
    for distribution in distributions():
        if distribution.name not in seen:
            seen.add(distribution.name)
            for point in distribution.entry_points:
                installed.setdefault(point.group, {}).setdefault(point.name, point.value)
    assert {"hydra.systems", "hydra.engines", "hydra.commands"} <= set(installed)
    for group in (plugins.SYSTEMS, plugins.ENGINES, plugins.COMMANDS):
        assert plugins.entry_points(group) == dict(sorted(installed[group].items()))


@pytest.mark.tier("test")
def test_a_command_by_its_entry_point_is_imported_when_it_is_used(tmp_path: Path) -> None:
    path = str(bring(tmp_path, "[hydra.commands]\ngreet = greeter:greet\n"))
    assert hydra("greet", PYTHONPATH=path).stdout == "imported\nhello\n"
    assert re.search(r"\n  greet +Say hello\.", hydra("--help", PYTHONPATH=path).stdout)
    assert "imported" not in hydra("runs", "--help", PYTHONPATH=path).stdout


@pytest.mark.tier("test")
def test_a_shell_completes_commands_and_flags_of_engines() -> None:
    def completed(words: str) -> set[str]:
        requests = {
            "_HYDRA_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        }
        program = "from hydra.cli.main import cli; cli(prog_name='hydra')"
        return {line.partition(",")[2] for line in python(program, **requests).splitlines()}

    assert {"zmq-rate", "zmq-fixed"} <= completed("hydra zmq")
    assert {"--rate", "--rcvhwm", "--resume", "--advertise"} <= completed("hydra zmqfixed --")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("greet = nowhere:greet", "nowhere:greet, the entry point 'greet' of hydra.commands, cannot be loaded: No mod"),
        ("greet = greeter:greed", "greeter:greed, the entry point 'greet' of hydra.commands, cannot be loaded: mod"),
        ("greed = greeter:greet", "the entry point 'greed' of hydra.commands is no Command of that name"),
        ("zmqrate = greeter:greet", "'zmqrate' to hydra.commands, which .* adds already; remove one of the packages"),
    ],
)
def test_a_damaged_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: str, expected: str
) -> None:
    monkeypatch.syspath_prepend(bring(tmp_path, f"[hydra.commands]\n{entries}\n"))
    with pytest.raises(ConfigError, match=expected):
        dict(plugins.commands())


_ENGINE = """
from contextlib import nullcontext
from dataclasses import dataclass
from hydra.engine.specification import EngineSettings, EngineSpec
from hydra.model import Bounded, setting

@dataclass(frozen=True)
class Settings{base}:
    port: int = setting(1, least=1)

SPEC = EngineSpec(
    name="greet",
    masters="greet",
    is_local=True,
    open=nullcontext,
    agents=lambda *_: [],
    settings=EngineSettings(Settings){more},
)
"""


@pytest.mark.parametrize(
    ("base", "more", "expected"),
    [
        ("(Bounded)", "", ""),
        ("", "", "greeter:SPEC.*: nothing checks the bounds of Settings; derive Settings from hydra.model.Bounded"),
        ("(Bounded)", ", bounds={}", "greeter:SPEC.* cannot be loaded: .* unexpected keyword argument 'bounds'"),
    ],
)
def test_the_specification_of_a_package_is_checked_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, more: str, expected: str
) -> None:
    module = _ENGINE.format(base=base, more=more)
    monkeypatch.syspath_prepend(bring(tmp_path, "[hydra.engines]\ngreet = greeter:SPEC\n", module=module))
    monkeypatch.delitem(sys.modules, "greeter", raising=False)
    plugins.engines.cache_clear()
    try:
        if expected:
            with pytest.raises(ConfigError, match=expected):
                plugins.engines()["greet"]
        else:
            assert plugins.engines()["greet"].name == "greet"
    finally:
        plugins.engines.cache_clear()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[hydra.commands]\na = m:x\n[other]\nb = m:y\n", {"a": "m:x"}),
        ("[other]\nb = m:y\n\n[hydra.commands]\n# no = m:z\n; no = m:z\na=m:x [extra]\n\n", {"a": "m:x"}),
        ("", {}),
    ],
)
def test_entries_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: dict[str, str]) -> None:
    monkeypatch.setattr("sys.path", [str(bring(tmp_path, text, package="greeter.egg-info")), "/nowhere"])
    assert plugins.entry_points(plugins.COMMANDS) == found


def test_of_a_package_that_is_there_twice_the_first_on_the_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [
        bring(tmp_path / "new", "[hydra.commands]\ngreet = new:greet\n"),
        bring(tmp_path / "old", "[hydra.commands]\ngreet = old:greet\n", package="Greeter-0.9.dist-info"),
    ]
    monkeypatch.setattr("sys.path", list(map(str, folders)))
    assert plugins.entry_points(plugins.COMMANDS) == {"greet": "new:greet"}
