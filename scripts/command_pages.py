#!/usr/bin/env python3
"""Writes the reference in ``docs/commands.md`` from the commands: what each does, its arguments and its flags."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from hydra.cli.main import cli
from hydra.options.late_commands import ScenarioKeyOption

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
_MARK: Final = "<!-- made by scripts/command_pages.py from here on -->"
"""Above it, the page is written by hand."""


def page() -> str:
    """The whole page."""
    head = PAGE.read_text(encoding="utf-8").partition(_MARK)[0]
    root = click.Context(cli, info_name="hydra")
    known = ((name, cli.get_command(root, name)) for name in cli.list_commands(root))
    names = [name for name, command in known if command and not command.hidden]
    links = " · ".join(f"[{name}](#hydra-{name})" for name in names)
    return "\n".join([head + _MARK, "", links, "", *(part for name in names for part in _sections(root, cli, name))])


def _sections(parent: click.Context, group: click.Group, name: str) -> Iterator[str]:
    """A command, and those below it."""
    # As it is used: what engines and experiments add comes then.
    _, command, _ = group.resolve_command(parent, [name])
    if command is None:
        raise ValueError(f"there is no command {name}")
    context = click.Context(command, info_name=name, parent=parent)
    yield _section(command, context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _sections(context, command, inner)


def _section(command: click.Command, context: click.Context) -> str:
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    level = "##" if context.parent and context.parent.parent is None else "###"
    lines = [f"{level} {context.command_path}", "", "```", usage, "```", ""]
    # Paragraphs are the help's own; click wraps them for a terminal.
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    lines += [part for text in paragraphs for part in (_escaped(" ".join(text.split())), "")]
    rows = [row for option in options if (row := _row(option, context))]
    table = ["| flag | meaning | default |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join([*lines, *table])


def _row(option: click.Option, context: click.Context) -> str:
    if option.hidden or "--help" in option.opts:
        return ""
    record = option.get_help_record(context)
    names = record[0] if record else ", ".join(option.opts)
    params = context.command.get_params(context)
    texts = option.needs_of(params) if isinstance(option, ScenarioKeyOption) else ""
    needs = f" Needs `{_cell(texts)}`." if texts else ""
    return f"| `{_cell(names)}` | {_escaped(_cell(option.help or ''))}{needs} | {_default(option, context)} |"


def _default(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    told = re.search(r"\[(?:needs: [^;\]]*; )?default: (.*?)[\];]", record[1]) if record else None
    return f"`{_cell(told[1])}`" if told else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text whose angle brackets, stars and underscores are no Markdown."""
    return "".join(_plain(text))


def _plain(text: str) -> Iterator[str]:
    for part in re.split(r"(`[^`]*`)", text):
        yield part if part.startswith("`") else re.sub(r"([<*_\[\]])", r"\\\1", part)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
