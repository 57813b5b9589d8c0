"""A bare Python, with nothing but the archive, imports every program that an agent may start."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import cache_from_source
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hydra.config.plugins import systems
from hydra.config.scenario import resolved_from
from hydra.engine.artifacts.archive import compiled_name, contents
from hydra.kafkatest import system as kafka
from hydra.system import Program, programs
from tests.import_graph import PACKAGE, at_run_time, reached, sources, third_parties
from tests.suite.waiting import LONG_S

CREDENTIALS = f"-----BEGIN NATS USER JWT-----\nx.y.z\n------END NATS USER JWT------\nSU{'A' * 56}\n"
"""With a login of this kind a client gets further libraries."""

STANDALONE = {
    # An agent or a Pod runs these files by themselves, without the archive.
    "hydra.client.supervisor",
    *(f"hydra.kubernetes.pod_scripts.{name}" for name in ("fetch_archive", "job_command", "keeper_pod")),
    *(f"hydra.kubernetes.pod_scripts.{name}" for name in ("run_files", "wait_for_files")),
}
WITH_ALL_OF_HYDRA = {
    # These run on the controller's machine, or in a Pod whose image has Hydra installed.
    *("hydra.cli.main", "hydra.cli.resolved_command", "hydra.native.build"),
    *("hydra.kubernetes.driver", "hydra.mesos.driver", "hydra.ssh.driver", "hydra.serve.page_worker"),
}

_IMPORTS = """
import importlib, json, os, sys

def imported(folder, modules):
    sys.path.append(folder)
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"{module}: {error!r}", flush=True)

common, *others = json.loads(sys.argv[1])
imported(*common)
for further in others:
    # Each begins with what all programs have, so numpy is imported once.
    if os.fork() == 0:
        imported(*further)
        os._exit(0)
    os.wait()
"""
_RUNS_NOTHING = "import runpy, sys; [runpy.run_path(path) for path in sys.argv[1:]]"


@pytest.fixture
def of_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, set[str]]:
    """The modules that agents start, each with the libraries that it gets with some scenario."""
    monkeypatch.setattr(kafka, "fetch", lambda: SimpleNamespace(folder=tmp_path))  # no Python imports a jar
    found: dict[str, set[str]] = {}
    for program in _programs(tmp_path):
        python, flag, module, *_ = program.command
        assert (python, flag) == (sys.executable, "-m")
        found.setdefault(module, set()).update(program.libraries)
    return found


def _programs(folder: Path) -> Iterator[Program]:
    (folder / "user.creds").write_text(CREDENTIALS)
    logins: Any = {"nats": [{"nats.servers": "host:4222", "nats.creds_file": str(folder / "user.creds")}]}
    for name, spec in systems().items():
        for client, implementation in spec.identity.implementations.items():
            if implementation.program == "native":
                continue
            settings = {"rate": 1.0} if implementation.program != "tool" else {"messages": 1000}
            file: dict[str, Any] = {"system": name, "client": client, "table": "fixed", "settings": settings}
            file["sweep"] = {"clients": [1], "duration_s": 1.0}
            for more in ({}, *logins.get(name, ())):
                resolved = resolved_from("a test", name, file, more)
                yield from programs(spec.identity.make(resolved.scenario, True, False))


def _bare(code: str, *words: str) -> str:
    command = [sys.executable, "-I", "-S", "-c", code, *words]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=LONG_S, check=False)
    return done.stdout + done.stderr


def _files(libraries: tuple[str, ...]) -> Mapping[str, Path]:
    """What the archive of a program with these further libraries has."""
    return contents([Program((sys.executable, "-m", "any"), {}, libraries=libraries)], [])[0]


def _unpacked(files: Mapping[str, Path], folder: Path) -> str:
    """An agent's copy of these files, as links to them and to what was compiled of them; its folder of modules."""
    for name, source in files.items():
        compiled = {compiled_name(name): Path(cache_from_source(str(source)))} if name.endswith(".py") else {}
        for inside, path in {name: source, **compiled}.items():
            if path.exists():
                (folder / inside).parent.mkdir(parents=True, exist_ok=True)
                (folder / inside).symlink_to(path)
    return str(folder / "site-packages")


@pytest.mark.tier("test")
def test_every_program_of_an_agent_imports_the_archive_and_the_standard_library_only(
    of_agents: Mapping[str, set[str]], tmp_path: Path
) -> None:
    """Also what a function imports later, which fails in the middle of a run."""
    alike: dict[tuple[str, ...], set[str]] = {(): set()}
    known = at_run_time(sources())
    for program, its in of_agents.items():
        modules = reached(program, known)
        modules |= {library for module in modules for library in third_parties(known, module)}
        alike.setdefault(tuple(sorted(its)), set()).update(modules)
    common, order = _files(()), []
    for number, (libraries, modules) in enumerate(alike.items()):
        further = {name: path for name, path in _files(libraries).items() if not libraries or name not in common}
        order.append([_unpacked(further, tmp_path / str(number)), sorted(modules)])
    assert _bare(_IMPORTS, json.dumps(order)) == ""


@pytest.mark.tier("test")
def test_what_runs_without_the_archive_imports_the_standard_library_only() -> None:
    files = [PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py") for name in sorted(STANDALONE)]
    assert _bare(_RUNS_NOTHING, *map(str, files)) == ""


def test_these_are_all_programs_of_agents(of_agents: Mapping[str, set[str]]) -> None:
    """A new program is one that a system names, or is in one of the two lists above."""
    started = {name for name, text in sources().items() if re.search(r"^if __name__ == \"__main__\":", text, re.M)}
    assert of_agents.keys() | STANDALONE | WITH_ALL_OF_HYDRA == started
    assert not of_agents.keys() & (STANDALONE | WITH_ALL_OF_HYDRA)
