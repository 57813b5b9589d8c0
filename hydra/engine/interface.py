"""The one interface behind which a cluster runs groups, and what an engine tells of itself (:class:`EngineSpec`)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import click

from hydra.model import Agent, Group, GroupEvent, GroupState, Launch
from hydra.system import Program, Waiting

GONE: Final[frozenset[GroupState]] = frozenset({"finished", "failed", "killed", "lost"})
"""The states of a group that has ended."""


class Engine(Protocol):
    """Runs groups on agents.

    No call blocks for more than a moment, except ``confirm`` and ``close``; and ``agents`` and ``launch``, which may
    ask the cluster for its nodes: 2 s at most, between rows.
    """

    @property
    def address(self) -> str:
        """The address of this machine at which groups reach it."""

    @property
    def is_local(self) -> bool:
        """Whether groups run on this machine, so that its limits are theirs."""

    def agents(self) -> list[Agent]:
        """The agents of the cluster with the resources that are free on each now."""

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups (``cluster.placement``) and starts them; either all of them or none.

        An engine whose agents start groups later returns at once, and tells by ``events`` what became of each.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: a group could be placed and not started.
        """

    def kill(self, groups: Iterable[str]) -> None:
        """Ends these groups by id, all their processes with them; an unknown or ended one is ignored."""

    def events(self) -> list[GroupEvent]:
        """What happened since the last call, oldest first."""

    def confirm(self, wait: Waiting) -> None:
        """Makes sure that the cluster has the run still, before the end of its groups is taken for their own failure.

        Asked once for a step that has failed, and for one in which subscribers died or never answered.

        Args:
            wait: how the caller waits for the cluster's answer; a few seconds at most.

        Raises:
            ClusterError: somebody has ended the run; the text says how.
        """

    def close(self) -> None:
        """Ends everything that this engine launched and frees what it holds; may be called twice."""


def where_it_runs(launch: Launch, event: GroupEvent) -> Launch:
    """The launch of a group that runs, on the agent where it really is: a cluster's own scheduler may have moved it."""
    if event.agent in ("", launch.agent.id):
        return launch
    return replace(launch, agent=replace(launch.agent, id=event.agent, hostname=event.agent))


class GroupEvents:
    """The events of one engine for several who launch groups on it: each takes those of its own groups."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[GroupEvent] = []
        self._ignored: set[str] = set()

    def ignore(self, group: str) -> None:
        """Nobody asks for this group's events any more."""
        if not any(event.group == group and event.state in GONE for event in self._waiting):
            self._ignored.add(group)
        self._waiting = [event for event in self._waiting if event.group != group]

    def take(self, groups: Container[str]) -> list[GroupEvent]:
        """What happened to these groups since they were asked about last, oldest first; the rest waits."""
        for event in self._engine.events():
            if event.group not in self._ignored:
                self._waiting.append(event)
            elif event.state in GONE:
                self._ignored.remove(event.group)  # its last one
        taken = [event for event in self._waiting if event.group in groups]
        if taken:
            self._waiting = [event for event in self._waiting if event.group not in groups]
        return taken


# --- what an engine tells of itself ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opening:
    """What an engine is opened with.

    Attributes:
        master: what ``--master`` names.
        agents: those that the cluster file declares.
        settings: the engine's own, of its ``settings`` type.
        run: the run's name.
        folder: the run's directory, which an engine makes when it writes something there.
        programs: the programs of the groups that will be launched, as they are started on this machine. It may take
            seconds, as files that they need may have to be fetched; an engine whose agents have them never asks.
        tell: takes a line for people about what the opening waits for, where that takes seconds.
    """

    master: str
    agents: Sequence[Agent]
    settings: Any
    run: str
    folder: Path
    programs: Callable[[], Sequence[Program]]
    tell: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class NoSettings:
    """The settings of an engine that has none."""


CARRIED_OUT: Final = "hydra.cli.handed_over"
"""The module that carries out a command that was resolved elsewhere; its arguments are the order and the directory."""


class Shipment(NamedTuple):
    """All that a command needs elsewhere; it may hold secrets.

    Attributes:
        order: what is to be done, for :data:`CARRIED_OUT`.
        files: what it reads: the path of each copy, by the path of the file here.
    """

    order: bytes
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Relocation:
    """A command that may run elsewhere than here: an engine returns its exit code, or None for running it here.

    Attributes:
        master: what ``--master`` names.
        settings: the engine's own, of its ``settings`` type.
        arguments: the command and its arguments, as they were typed behind ``hydra``; ``HYDRA_TYPED`` (JSON) in the
            environment of the command elsewhere tells it.
        out: the directory that the command makes, here.
        resumed: whether it is there, and the command goes on in it.
        flags: those that say how the command shows what it measures, by name.
        shipment: what carries the command out elsewhere. Takes the ``--master`` there, and the folder for files there.
    """

    master: str
    settings: Any
    arguments: Sequence[str]
    out: Path
    resumed: bool
    flags: Mapping[str, Any]
    shipment: Callable[[str, str], Shipment]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """Everything that generic code knows of an engine.

    Attributes:
        name: of its entry point, and of its table in the cluster file. A ``--master`` that is this name, or begins
            with ``NAME://``, is this engine's.
        masters: what to write behind ``--master`` for it, as a part of a sentence: ``the address of a … master``.
        is_local: whether its groups run on this machine, so that its limits are theirs.
        open: the engine for a run, closed at the end of the context. Its errors are those of a command that cannot
            begin: UsageError, ClusterError, MissingDependencyError.
        agents: the agents with what is free on each; registers nothing. Takes ``--master``, the agents of the cluster
            file and the settings.
        handles: whether another ``--master`` is this engine's. The first engine that says so takes it.
        settings: a frozen dataclass of texts, numbers, booleans, and mappings and tuples of these; every field has a
            default, and ``__post_init__`` raises ValueError for what cannot be: a text that begins with the field's
            name. Of a field with ``repr=False`` no value is ever shown.
        bounds: the least and the most of its numbers, by field.
        environment: texts that may stand in the environment instead: the variable's name by field.
        cluster_flags: click options that say which cluster, or which part of it; every command with ``--master`` gets
            them. Each names a field of the settings.
        flags: likewise, of how its groups run: only commands that run a scenario, or check one, get them.
        run_flags: likewise, only of commands that run a scenario.
        commands: click commands, added to ``hydra``, of a package that has none under its entry points
            (``hydra.commands``): for them ``hydra --help`` has to import the specification.
        secrets: values of the settings that must not be seen.
        users: names that may stand before a secret in HTTP's basic authentication.
        leftovers: a row for each run that the cluster still knows, for ``hydra ps``: its name under ``run``, and
            counts of what is left. Takes ``--master`` and the settings. None: a run leaves nothing where nobody looks.
        end_run: ends what is left of a run, for ``hydra kill``, and tells what was ended, a line each. Takes
            ``--master``, the settings and the run's name; raises UsageError for a run that the cluster does not know.
        check: what a scenario's groups meet on the cluster, for ``hydra check``: lines, those that ask for a change
            first; its error is that of a run that could not begin. Takes ``--master`` and the settings. None: nothing
            beyond the agents.
        relocate: runs a whole command elsewhere; None: never. See :class:`Relocation`.
    """

    name: str
    masters: str
    is_local: bool
    open: Callable[[Opening], AbstractContextManager[Engine]]
    agents: Callable[[str, Sequence[Agent], Any], list[Agent]]
    handles: Callable[[str], bool] = lambda _: False
    settings: type = NoSettings
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    cluster_flags: Sequence[click.Option] = ()
    flags: Sequence[click.Option] = ()
    run_flags: Sequence[click.Option] = ()
    commands: Sequence[click.Command] = ()
    secrets: Callable[[Any], Iterable[str]] = lambda _: ()
    users: Callable[[Any], Iterable[str]] = lambda _: ()
    leftovers: Callable[[str, Any], list[dict[str, object]]] | None = None
    end_run: Callable[[str, Any, str], list[str]] | None = None
    check: Callable[[str, Any], Iterable[str]] | None = None
    relocate: Callable[[Relocation], int | None] | None = None

    @property
    def all_flags(self) -> Sequence[click.Option]:
        """Those of every kind."""
        return (*self.cluster_flags, *self.flags, *self.run_flags)
