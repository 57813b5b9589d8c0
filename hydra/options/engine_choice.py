"""Selects the engine of a run by ``--master``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hydra.config.cluster import load_engine
from hydra.config.plugins import engines
from hydra.engine.interface import Engine
from hydra.engine.specification import EngineSpec, Opening
from hydra.errors import UsageError
from hydra.model import Agent
from hydra.options.plugin_commands import masters
from hydra.system import Program

DEFAULT_MASTER: Final = "local"
"""The ``--master`` of a command that was given none."""


@dataclass(frozen=True, slots=True)
class SelectedEngine:
    """An engine that ``--master`` names, with its settings; these may hold secrets and are never stored."""

    master: str
    spec: EngineSpec
    settings: Any

    def open(
        self,
        agents: Sequence[Agent],
        run: str,
        out: Path,
        programs: Callable[[], Sequence[Program]],
        notify: Callable[[str], None],
    ) -> AbstractContextManager[Engine]:
        """The engine for a run, closed at the end.

        Args:
            agents: the agents of the cluster file.
            run: the run's name.
            out: the run directory.
            programs: the programs of the groups that will be launched; see
                :class:`~hydra.engine.specification.Opening`.
            notify: prints a line for the user; see there.

        Raises:
            UsageError, ClusterError, MissingDependencyError: the engine cannot be used.
        """
        return self.spec.open(Opening(self.master, agents, self.settings, run, out, programs, notify))

    def agents(self, declared: Sequence[Agent]) -> list[Agent]:
        """The agents with their free resources; registers nothing.

        Args:
            declared: the agents of the cluster file.

        Raises:
            UsageError, ClusterError: the master is not valid, or does not answer.
        """
        return self.spec.agents(self.master, declared, self.settings)

    def secrets(self) -> tuple[Iterable[str], Iterable[str]]:
        """The secret values of the settings, and the user names that may stand before them."""
        return self.spec.settings.secrets(self.settings), self.spec.settings.users(self.settings)


def choose(master: str | None, config: Path | None, flags: Mapping[str, object] | None = None) -> SelectedEngine:
    """The engine of a ``--master``, with the settings from its table, the environment and flags.

    The tables of the other engines are read, too: a mistake in one is found before that engine is needed.

    Args:
        master: the value of ``--master``; None: it was not given.
        config: the cluster file; None is ``conf/hydra.toml``.
        flags: the flags of a command, by name; only the engines' flags are read.

    Raises:
        UsageError: no engine accepts this master, a flag of another engine was given, or two flags name a cluster.
        ConfigError: a table of the cluster file cannot be used.
    """
    given = flags or {}
    master = _spelled_out(master, given)
    spec = _engine_of(master)
    own = {str(flag.name): given.get(str(flag.name)) for flag in spec.flags.of_settings}
    owners: dict[str, list[str]] = {}
    for other in engines().values():
        for flag in other.flags.of_settings:
            if flag.name not in own and given.get(str(flag.name)) is not None:
                owners.setdefault(flag.opts[0], []).append(other.masters)
    for name, names in owners.items():
        raise UsageError(f"{name} is for another --master: {', or '.join(names)}", f"name one, or leave out {name}")
    settings = {name: load_engine(name, config, own if name == spec.name else None) for name in engines()}
    return SelectedEngine(master, spec, settings[spec.name])


def _spelled_out(master: str | None, given: Mapping[str, object]) -> str:
    """The value of ``--master`` that these flags stand for."""
    for spec in engines().values():
        shorthand = spec.flags.shorthand
        if shorthand is not None and (value := given.get(str(shorthand.name))) is not None:
            flag = shorthand.opts[0]
            if master not in (None, spec.name):
                raise UsageError(f"{flag} and --master {master} name two clusters", f"leave out {flag} or --master")
            master = f"{spec.name}://{value}"
    return master or DEFAULT_MASTER


def _engine_of(master: str) -> EngineSpec:
    known = engines()
    named = known.get(master.partition("://")[0])
    found = named or next((spec for spec in known.values() if spec.handles(master)), None)
    if found is None:
        raise UsageError(f"--master {master} belongs to no installed engine", f"write {masters()}")
    return found
