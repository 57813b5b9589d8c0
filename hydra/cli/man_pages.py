"""Man pages of all commands, made from their help; ``scripts/man_pages.py`` writes the files."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Final

import click

from hydra.options.help import in_groups
from hydra.options.plugin_commands import add_flags

_SECTION: Final = 1


def pages(root: click.Group) -> Iterator[tuple[str, str]]:
    """The file name and the text of each page: one for the program, and one for each command.

    Args:
        root: the ``hydra`` command.
    """
    yield from _pages(root, click.Context(root, info_name="hydra", **root.context_settings), [])


def _pages(command: click.Command, context: click.Context, above: Sequence[str]) -> Iterator[tuple[str, str]]:
    names = [*above, str(context.info_name)]
    inner: list[tuple[str, click.Command]] = []
    if isinstance(command, click.Group):
        found = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        inner = [(name, each) for name, each in found if each is not None and not each.hidden]
    else:
        add_flags(command, context)
    page = "-".join(names)
    yield f"{page}.{_SECTION}", _page(page, command, context, [(f"{page}-{name}", each) for name, each in inner])
    for name, each in inner:
        yield from _pages(each, click.Context(each, info_name=name, parent=context), names)


def _page(page: str, command: click.Command, context: click.Context, inner: Sequence[tuple[str, click.Command]]) -> str:
    first, *others = inspect.cleandoc(command.help or "").split("\n\n")
    usage = " ".join([page.replace("-", " ", context.command_path.count(" ")), *command.collect_usage_pieces(context)])
    lines = [
        f'.TH "{_roff(page.upper())}" "{_SECTION}" "" "Hydra" "Hydra\'s commands"',
        ".SH NAME",
        f"{_roff(page)} \\- {_text(first).rstrip('.')}",
        ".SH SYNOPSIS",
        f".B {_roff(usage)}",
        ".SH DESCRIPTION",
        _text(first),
    ]
    for paragraph in others:
        lines += [".PP", _text(paragraph)]
    for group, options in in_groups(command.get_params(context)):
        lines.append(f'.SH "{_roff(group.upper())}"')
        for option in options:
            if record := option.get_help_record(context):
                lines += [".TP", f".B {_roff(record[0])}", _text(record[1])]
    if inner:
        lines.append(".SH COMMANDS")
        for name, each in inner:
            lines += [".TP", f".BR {_roff(name)} ({_SECTION})", _text(each.get_short_help_str(200))]
    if examples := getattr(command, "examples", ()):
        lines += [".SH EXAMPLES", ".nf", *map(_roff, examples), ".fi"]
    if " " in context.command_path:
        lines += [".SH SEE ALSO", f".BR {_roff(context.find_root().info_name or '')} ({_SECTION})"]
    return "\n".join(lines) + "\n"


def _text(paragraph: str) -> str:
    """The paragraph as roff text, escaped so that no line is read as a request."""
    return _roff(" ".join(paragraph.split()))


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
