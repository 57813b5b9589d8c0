"""An engine of another package, as small as possible: it notes what it launches, and uses the local one."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from hydra.config.cluster import load_engine
from hydra.engine.interface import Engine
from hydra.engine.specification import (
    CARRIED_OUT,
    EngineFlags,
    EngineSettings,
    EngineSpec,
    Leftovers,
    Opening,
    Relocation,
)
from hydra.errors import EXIT_INCOMPLETE, ClusterError, UsageError
from hydra.local.engine import LocalEngine
from hydra.model import Agent, Bounded, Group, Launch, setting


@dataclass(frozen=True, slots=True)
class ToySettings(Bounded):
    """``mark`` stands before every line that is noted, ``most`` is how many groups one launch may have."""

    mark: str = "toy"
    most: int = setting(10, least=1, most=1000)
    room: str = "nursery"
    password: str = field(default="", repr=False)


class ToyEngine(LocalEngine):
    """See :class:`hydra.engine.interface.Engine`."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening.agents, opening.folder / "sandbox")
        self._settings: ToySettings = opening.settings
        self._notes = opening.folder / "toy.log"

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        if len(groups) > self._settings.most:
            raise ClusterError(f"{len(groups)} groups are too many", "raise most under [toy]")
        launches = super().launch(groups)
        with self._notes.open("a") as file:
            file.writelines(f"{self._settings.mark}: {launch.group.role} on {launch.agent.id}\n" for launch in launches)
        return launches


@contextlib.contextmanager
def opened(opening: Opening) -> Iterator[Engine]:
    settings: ToySettings = opening.settings
    if opening.master == "toy://closed":
        raise ClusterError(f"the toy is closed to {settings.password}", "open it")
    opening.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(ToyEngine(opening)) as engine:
        yield engine


def agents(master: str, declared: Sequence[Agent], _: Any) -> list[Agent]:
    return [agent for agent in declared if agent.id != master.removeprefix("toy://")]


def leftovers(master: str, settings: ToySettings) -> list[dict[str, object]]:
    return [{"run": "old", "groups": 2, "room": settings.room}] if master == "toy://untidy" else []


def end_run(master: str, settings: ToySettings, run: str) -> list[str]:
    if run not in [row["run"] for row in leftovers(master, settings)]:
        raise UsageError(f"no run {run!r}", f"hydra ps --master {master} lists them")
    return [f"group {number} in {settings.room}" for number in (1, 2)]


def relocate(relocation: Relocation) -> int | None:
    settings: ToySettings = relocation.settings
    if relocation.master == "toy://refused":
        raise ClusterError(f"nobody else takes {settings.password}", "run it here")
    if relocation.master == "toy://sent":
        return _carried_out(relocation)
    if relocation.master != "toy://elsewhere":
        return None
    click.echo(f"{settings.mark}: {shlex.join(relocation.arguments)} into {relocation.out}")
    return EXIT_INCOMPLETE


def _carried_out(relocation: Relocation) -> int:
    """In another folder, with all that the command needs."""
    present = relocation.out.with_name("there")
    order, files = relocation.shipment("toy://there", str(present / "files"))
    for path, copy in files.items():
        Path(copy).parent.mkdir(parents=True)
        shutil.move(path, copy)
    present.mkdir(exist_ok=True)
    (present / "order").write_bytes(order)
    words = [sys.executable, "-m", CARRIED_OUT, str(present / "order"), str(relocation.out)]
    more = {"HYDRA_TYPED": json.dumps(list(relocation.arguments)), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(words, cwd=present, env={**os.environ, **more}, check=False).returncode


@click.command("toy-settings")
@click.option("--config", type=Path)
def settings_command(config: Path | None) -> None:
    """Print the settings."""
    click.echo(str(load_engine("toy", config)))


SPEC = EngineSpec(
    name="toy",
    masters="toy://ANYTHING",
    is_local=True,
    open=opened,
    agents=agents,
    settings=EngineSettings(
        ToySettings,
        environment={"password": "TOY_PASSWORD"},
        secrets=lambda settings: (settings.password,),
    ),
    flags=EngineFlags(
        cluster=(click.Option(["--room"], help="In which room the toy is."),),
        groups=(click.Option(["--mark"], help="What stands before every line that the toy notes."),),
        run=(click.Option(["--most"], type=int, help="How many groups one launch may have."),),
    ),
    commands=(settings_command,),
    leftovers=Leftovers(leftovers, end_run),
    relocate=relocate,
)
