"""The interface of engines, which run groups on a cluster, and their specification (:class:`EngineSpec`)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import click

from hydra.model import Agent, Group, GroupEvent, GroupState, Launch
from hydra.system import Program, Waiting

ENDED_STATES: Final[frozenset[GroupState]] = frozenset({"finished", "failed", "killed", "lost"})
"""The states of a group that has ended."""


class Engine(Protocol):
    """Runs groups on agents.

    No call blocks except ``confirm`` and ``close``, and between rows ``agents`` and ``launch``, which may wait at most
    2 s for the cluster's nodes.
    """

    @property
    def address(self) -> str:
        """The address of this machine at which groups reach it."""

    @property
    def is_local(self) -> bool:
        """Whether groups run on this machine, so its limits apply to them."""

    def agents(self) -> list[Agent]:
        """The agents of the cluster with their free resources."""

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups (:mod:`hydra.engine.placement`) and starts them; either all of them or none.

        An engine whose agents start groups later returns at once; ``events`` then reports the state of each group.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: a group was placed but cannot be started.
        """

    def kill(self, groups: Iterable[str]) -> None:
        """Ends all processes of the groups with these ids; ignores unknown and ended groups."""

    def events(self) -> list[GroupEvent]:
        """The events since the last call, oldest first."""

    def confirm(self, wait: Waiting) -> None:
        """Checks that the cluster still has the run, so a user's ``hydra kill`` does not count as a failed step.

        A run calls it once for a step that has failed, and for a step with dead or silent subscribers.

        Args:
            wait: waits for the cluster's answer, a few seconds at most.

        Raises:
            ClusterError: the run was ended from outside; the text describes how.
        """

    def close(self) -> None:
        """Ends all groups that this engine launched and frees its resources; may be called twice."""


def with_real_agent(launch: Launch, event: GroupEvent) -> Launch:
    """The launch of a running group with its real agent, as the cluster's own scheduler may have chosen another one."""
    if event.agent in ("", launch.agent.id):
        return launch
    return replace(launch, agent=replace(launch.agent, id=event.agent, hostname=event.agent))


class GroupEvents:
    """The events of one engine, divided among several callers: each takes those of its own groups."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[GroupEvent] = []
        self._ignored: set[str] = set()

    def ignore(self, group: str) -> None:
        """Drops this group's events from now on."""
        if not any(event.group == group and event.state in ENDED_STATES for event in self._waiting):
            self._ignored.add(group)
        self._waiting = [event for event in self._waiting if event.group != group]

    def take(self, groups: Container[str]) -> list[GroupEvent]:
        """The new events of these groups, oldest first; events of other groups are kept."""
        for event in self._engine.events():
            if event.group not in self._ignored:
                self._waiting.append(event)
            elif event.state in ENDED_STATES:
                self._ignored.remove(event.group)  # this was its last event
        taken = [event for event in self._waiting if event.group in groups]
        if taken:
            self._waiting = [event for event in self._waiting if event.group not in groups]
        return taken


# --- the specification of an engine ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments with which an engine is opened.

    Attributes:
        master: the value of ``--master``.
        agents: the agents that the cluster file declares.
        settings: the engine's settings, of its ``settings`` type.
        run: the run's name.
        folder: the run's directory, which an engine makes when it writes something there.
        programs: returns the programs of the groups, as this machine starts them. The call may take seconds, as it may
            fetch files of the programs; an engine whose agents have the programs never makes it.
        notify: takes a line for people about what the opening waits for, if that takes seconds.
    """

    master: str
    agents: Sequence[Agent]
    settings: Any
    run: str
    folder: Path
    programs: Callable[[], Sequence[Program]]
    notify: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class NoSettings:
    """The settings of an engine that has none."""


CARRIED_OUT: Final = "hydra.cli.resolved_command"
"""The module that runs a command whose settings another process resolved; its arguments are order and directory."""


class Shipment(NamedTuple):
    """Everything that a relocated command needs; it may contain secrets.

    Attributes:
        order: the command, in the form for :data:`CARRIED_OUT`.
        files: the files that the command reads: the path of each copy, by the file's path on this machine.
    """

    order: bytes
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Relocation:
    """A command that an engine may run in its cluster: it returns the exit code, or None to have it run here.

    Attributes:
        master: the value of ``--master``.
        settings: the engine's settings, of its ``settings`` type.
        arguments: the command and its arguments, as the user typed them after ``hydra``; the relocated one gets them
            in ``HYDRA_TYPED`` (JSON) of its environment.
        out: the directory that the command makes on this machine.
        resumed: whether the directory exists, and the command resumes its run.
        flags: the flags for the command's output, by name.
        shipment: makes the shipment. Takes the ``--master`` of the relocated command, and its folder for files.
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
    """The specification of an engine, by which generic code uses it.

    Attributes:
        name: the name of the entry point and of the table in the cluster file. The engine handles a ``--master`` that
            is this name or begins with ``NAME://``.
        masters: the possible values of ``--master``, as a part of a sentence: ``the address of a … master``.
        is_local: whether its groups run on this machine, so the machine's limits apply to them.
        open: opens the engine for a run and closes it at the end of the context. The call raises UsageError,
            ClusterError or MissingDependencyError if the command cannot begin.
        agents: returns the agents with their free resources; registers nothing. Takes ``--master``, the agents of the
            cluster file and the settings.
        handles: whether the engine handles another ``--master``; the first engine that does so gets it.
        settings: a frozen dataclass of texts, numbers, booleans, and mappings and tuples of these; every field has a
            default, and ``__post_init__`` raises ValueError for a wrong value with a text that begins with the field's
            name. Hydra never shows the value of a field with ``repr=False``.
        arrays: the fields of the settings that are arrays of tables at the top of the cluster file (``[[hosts]]``).
        environment: the names of environment variables that can replace texts of the table, by field.
        shorthand: a click option whose value VALUE stands for ``--master NAME://VALUE``; None if the engine has none.
        cluster_flags: click options that select the cluster, or a part of it, for every command with ``--master``. Each
            has the name of a field of the settings.
        flags: such options about how groups run, for commands that run or check a scenario.
        run_flags: such options for commands that run a scenario.
        commands: click commands added to ``hydra``, if the package has no entry points ``hydra.commands``: for them
            ``hydra --help`` must import the specification.
        secrets: returns the values of the settings that Hydra must not show.
        users: returns names that may precede a secret in HTTP's basic authentication.
        leftovers: returns a row for each run that the cluster still has, for ``hydra ps``: the name under ``run``, and
            counts of what is left. Takes ``--master`` and the settings. None if a run leaves nothing in a cluster.
        end_run: ends what is left of a run, for ``hydra kill``, and returns a line for each thing that it ended. Takes
            ``--master``, the settings and the run's name; raises UsageError if the cluster has no such run.
        check: checks the cluster for ``hydra check`` and returns lines, those that demand a change first; raises the
            error of a run that could not begin. Takes ``--master`` and the settings. None if it checks only the agents.
        texts: reads files of the kernel on all hosts for ``hydra check``, and returns for each host the texts of each
            reading by path. Takes ``--master``, the settings, and the files of each reading as patterns; the readings
            are half a second apart. None if the engine cannot do this before a run.
        relocate: runs a whole command in the cluster; None if the engine cannot. See :class:`Relocation`.
    """

    name: str
    masters: str
    is_local: bool
    open: Callable[[Opening], AbstractContextManager[Engine]]
    agents: Callable[[str, Sequence[Agent], Any], list[Agent]]
    handles: Callable[[str], bool] = lambda _: False
    settings: type = NoSettings
    arrays: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    shorthand: click.Option | None = None
    cluster_flags: Sequence[click.Option] = ()
    flags: Sequence[click.Option] = ()
    run_flags: Sequence[click.Option] = ()
    commands: Sequence[click.Command] = ()
    secrets: Callable[[Any], Iterable[str]] = lambda _: ()
    users: Callable[[Any], Iterable[str]] = lambda _: ()
    leftovers: Callable[[str, Any], list[dict[str, object]]] | None = None
    end_run: Callable[[str, Any, str], list[str]] | None = None
    check: Callable[[str, Any], Iterable[str]] | None = None
    texts: Callable[[str, Any, Sequence[Sequence[str]]], Mapping[str, Sequence[Mapping[str, str]]]] | None = None
    relocate: Callable[[Relocation], int | None] | None = None

    @property
    def all_flags(self) -> Sequence[click.Option]:
        """The flags of all three kinds."""
        return (*self.cluster_flags, *self.flags, *self.run_flags)
