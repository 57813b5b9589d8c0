"""The specification of an engine (:class:`EngineSpec`), by which generic code uses it, and its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from hydra.engine.interface import Engine
from hydra.model import Agent
from hydra.system import Program


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments with which an engine is opened.

    Attributes:
        master: the value of ``--master``.
        agents: the agents that the cluster file declares.
        settings: the engine's settings, of its ``settings.kind``.
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
        settings: the engine's settings, of its ``settings.kind``.
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


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of an engine: the table of its name in the cluster file.

    Attributes:
        kind: a frozen dataclass of texts, numbers, booleans, and mappings and tuples of these; every field has a
            default, and ``__post_init__`` raises ValueError for a wrong value with a text that begins with the field's
            name. Hydra never shows the value of a field with ``repr=False``.
        arrays: the fields that are arrays of tables at the top of the cluster file (``[[hosts]]``).
        environment: the names of environment variables that can replace texts of the table, by field.
        secrets: returns the values of the settings that Hydra must not show.
        users: returns names that may precede a secret in HTTP's basic authentication.
    """

    kind: type = NoSettings
    arrays: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Callable[[Any], Iterable[str]] = lambda _: ()
    users: Callable[[Any], Iterable[str]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """The flags that an engine adds to Hydra's commands: click options with the names of fields of its settings.

    Attributes:
        cluster: flags that select the cluster, or a part of it, for every command with ``--master``.
        groups: flags about how groups run, for commands that run or check a scenario.
        run: flags for commands that run a scenario.
        shorthand: a flag of any name whose value VALUE stands for ``--master NAME://VALUE``; None: there is none.
    """

    cluster: Sequence[click.Option] = ()
    groups: Sequence[click.Option] = ()
    run: Sequence[click.Option] = ()
    shorthand: click.Option | None = None

    @property
    def of_settings(self) -> Sequence[click.Option]:
        """The flags that set fields of the settings."""
        return (*self.cluster, *self.groups, *self.run)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What runs leave in a cluster; both functions take ``--master`` and the settings.

    Attributes:
        listed: returns a row for each run that the cluster still has, for ``hydra ps``: the name under ``run``, and
            counts of what is left.
        end: ends what is left of a run, for ``hydra kill``, and returns a line for each thing that it ended. Takes the
            run's name, too; raises UsageError if the cluster has no such run.
    """

    listed: Callable[[str, Any], list[dict[str, object]]]
    end: Callable[[str, Any, str], list[str]]


@dataclass(frozen=True, slots=True)
class ClusterChecks:
    """What ``hydra check`` learns of a cluster before a run; both functions take ``--master`` and the settings.

    Attributes:
        advice: checks the cluster and returns lines, those that demand a change first; raises the error of a run that
            could not begin.
        texts: reads files of the kernel on all hosts, and returns for each host the texts of each reading by path.
            Takes the files of each reading as patterns, too; the readings are half a second apart. None if the engine
            cannot do this before a run.
    """

    advice: Callable[[str, Any], Iterable[str]] = lambda *_: ()
    texts: Callable[[str, Any, Sequence[Sequence[str]]], Mapping[str, Sequence[Mapping[str, str]]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """The specification of an engine.

    Attributes:
        name: the name of the entry point and of the table in the cluster file. The engine handles a ``--master`` that
            is this name or begins with ``NAME://``.
        masters: the possible values of ``--master``, as a part of a sentence: ``the address of a … master``.
        handles: whether the engine handles another ``--master``; the first engine that does so gets it.
        is_local: whether its groups run on this machine, so the machine's limits apply to them.
        open: opens the engine for a run and closes it at the end of the context. The call raises UsageError,
            ClusterError or MissingDependencyError if the command cannot begin.
        agents: returns the agents with their free resources; registers nothing. Takes ``--master``, the agents of the
            cluster file and the settings.
        settings: its settings.
        flags: its flags of Hydra's commands.
        commands: click commands added to ``hydra``, if the package has no entry points ``hydra.commands``: for them
            ``hydra --help`` must import the specification.
        leftovers: what runs leave in a cluster; None: nothing.
        checks: what it can check before a run, besides the agents.
        relocate: runs a whole command in the cluster; None if the engine cannot. See :class:`Relocation`.
    """

    name: str
    masters: str
    is_local: bool
    open: Callable[[Opening], AbstractContextManager[Engine]]
    agents: Callable[[str, Sequence[Agent], Any], list[Agent]]
    handles: Callable[[str], bool] = lambda _: False
    settings: EngineSettings = EngineSettings()
    flags: EngineFlags = EngineFlags()
    commands: Sequence[click.Command] = ()
    leftovers: Leftovers | None = None
    checks: ClusterChecks = ClusterChecks()
    relocate: Callable[[Relocation], int | None] | None = None
