"""In which groups the help of a command shows its flags."""

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
COMPARISON: Final = "Comparison of implementations"
CLUSTER: Final = "Cluster"
RUN: Final = "Run"
OUTPUT: Final = "Output"
GENERAL: Final = "General"

ORDER: Final = (
    *(WORKLOAD, OBJECTIVES, SEARCH, CLIENTS, SYSTEM, EXPERIMENT, COMPARISON),
    *(CLUSTER, RUN, OUTPUT, GENERAL),
)
"""Of the groups in a help text."""

_ATTRIBUTE: Final = "hydra_group"


def flags(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several flags as one decorator, in this order."""

    def decorate(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def grouped(group: str, *options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several flags as one decorator, in this order; those that have no group yet are shown in this one.

    Args:
        group: of :data:`ORDER`.
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
    """Shows a flag in this group, unless it has one."""
    # Engines and experiments bring plain options of click's.
    vars(param).setdefault(_ATTRIBUTE, group)


def group_of(param: click.Parameter) -> str:
    """The group in which a flag is shown; "" if nobody has said it."""
    if param.name == "help" or param.expose_value is False:
        return GENERAL
    return str(vars(param).get(_ATTRIBUTE, ""))


def _params(command: Any) -> Sequence[click.Parameter]:
    """The flags that a command, or a function that is to be one, has so far."""
    if isinstance(command, click.Command):
        return command.params
    found: Sequence[click.Parameter] = getattr(command, "__click_params__", ())
    return found
