"""The help of a command: its flags in groups, with defaults, and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

WORKLOAD: Final = "Workload"
OBJECTIVES: Final = "Objectives"
SEARCH: Final = "Search for a rate"
CLIENTS: Final = "Clients"
SYSTEM: Final = "System under test"
EXPERIMENT: Final = "Published experiment"
COMPARISON: Final = "Comparison"
CLUSTER: Final = "Cluster"
RUN: Final = "Run"
OUTPUT: Final = "Output"
GENERAL: Final = "General"

ORDER: Final = (
    *(WORKLOAD, OBJECTIVES, SEARCH, CLIENTS, SYSTEM, EXPERIMENT, COMPARISON),
    *(CLUSTER, RUN, OUTPUT, GENERAL),
)
"""The order of the flags' groups in a help text."""
OF_RUNS: Final = (RUN, OUTPUT, CLUSTER, COMPARISON)
"""The groups of flags that do not change the scenario."""

_FIRST: Final = ("--subscribers", "--rate", "--duration", "--publishers")
"""The flags at the top of their group, because most users set these."""
_ATTRIBUTE: Final = "hydra_group"


def flags(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several flags as one decorator, in this order."""

    def decorate(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def grouped(group: str, *options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several flags as one decorator, in this order; flags without a group are shown in this group.

    Args:
        group: one of :data:`ORDER`.
        options: the flags.
    """

    def decorate(command: _F) -> _F:
        before = len(_params(command))
        command = flags(*options)(command)
        for param in _params(command)[before:]:
            put(param, group)
        return command

    return decorate


def put(param: click.Parameter, group: str) -> None:
    """Sets the group of a flag, unless the flag has one."""
    # Options of engines and experiments are plain click options, which have no attribute for a group.
    vars(param).setdefault(_ATTRIBUTE, group)


def group_of(param: click.Parameter) -> str:
    """The group in which a flag is shown; "" if none was set."""
    if param.name == "help" or param.expose_value is False:
        return GENERAL
    return str(vars(param).get(_ATTRIBUTE, ""))


def _params(command: Any) -> Sequence[click.Parameter]:
    """The flags that a command, or a function that becomes one, has so far."""
    if isinstance(command, click.Command):
        return command.params
    found: Sequence[click.Parameter] = getattr(command, "__click_params__", ())
    return found


RESULTS: Final = "Look at results"
MACHINE: Final = "Cluster and machine"
MORE: Final = "More"
"""Sections of the list of commands."""


class GroupedHelpCommand(click.Command):
    """A command that shows its flags in groups, and examples below them.

    Args:
        examples: complete command lines.
        section: the section of a list of commands that shows this command.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), section: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = tuple(examples)
        self.section = section

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments; every error names this command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as e:
            e.ctx = e.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a section for each group of flags; a group of commands also lists its commands."""
        for group, params in in_groups(self.get_params(ctx)):
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's
        """Writes the examples without wrapping, so users can copy them."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in self.examples))


def in_groups(params: Sequence[click.Parameter]) -> list[tuple[str, list[click.Option]]]:
    """The flags by group, in the order of the groups; flags without a group are in the last one."""
    groups: dict[str, list[click.Option]] = {}
    for param in params:
        if isinstance(param, click.Option):
            groups.setdefault(group_of(param) or GENERAL, []).append(param)
    for its in groups.values():
        its.sort(key=lambda param: _FIRST.index(param.opts[0]) if param.opts[0] in _FIRST else len(_FIRST))
    # Packages of other authors may have their own groups.
    known = {name: number for number, name in enumerate(ORDER)}
    return sorted(groups.items(), key=lambda each: known.get(each[0], known[GENERAL] - 1))
