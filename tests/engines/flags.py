"""Commands are made once: what an engine of a test adds to them is taken away again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click
import pytest

from hydra.cluster.engine import EngineSpec
from hydra.run.contributed import add_flags


@contextlib.contextmanager
def for_a_test(spec: EngineSpec) -> Iterator[None]:
    """Within, commands that are run in this process may get the engine's flags, and its words in the help."""
    touched: list[click.Command] = []
    helps: list[tuple[click.Option, str | None]] = []

    def noted(command: click.Command, context: click.Context) -> None:
        options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
        helps.extend((option, option.help) for option in options if option.name == "master")
        touched.append(command)
        add_flags(command, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hydra.cli.add_flags", noted)
        yield
    for command in touched:
        command.params = [param for param in command.params if param not in spec.all_flags]
    for option, text in reversed(helps):
        option.help = text
