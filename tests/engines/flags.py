"""Commands are made once: what an engine of a test adds to them is taken away again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click
import pytest

from hydra.config import plugins
from hydra.engine.specification import EngineSpec
from hydra.options.plugin_commands import add_flags


@contextlib.contextmanager
def for_a_test(spec: EngineSpec) -> Iterator[None]:
    """Within, commands that are run in this process may get the engine's flags, and its words in the help.

    Those that were run before have a help already, without its words: their help is made again.
    """
    others = f"{', or '.join(each.masters for each in plugins.engines().values() if each is not spec)}."
    touched: list[click.Command] = []
    helps: list[tuple[click.Option, str | None]] = []

    def noted(command: click.Command, context: click.Context) -> None:
        options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
        for option in options:
            if option.name == "master":
                helps.append((option, option.help))
                option.help = "" if option.help == others else option.help
        touched.append(command)
        add_flags(command, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hydra.cli.main.add_flags", noted)
        yield
    for command in touched:
        command.params = [param for param in command.params if param not in spec.flags.of_settings]
    for option, text in reversed(helps):
        option.help = text
