"""How the ``hydra`` command leaves: one line on standard error where something is wrong, and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable
from typing import Final, NoReturn, TextIO

import click

from hydra.errors import EXIT_INCOMPLETE, HydraError


def command_of(error: click.ClickException) -> str:
    """The command that an error is about: ``hydra broker up``."""
    names: list[str] = []
    context = error.ctx if isinstance(error, click.UsageError) else None
    while context is not None and context.parent is not None:
        names.insert(0, str(context.info_name))
        context = context.parent
    return " ".join(["hydra", *names])


def error_text(error: click.ClickException, command: str) -> str:
    """What an error says, with what the command takes where there are too many words, too few, or a wrong one."""
    text = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return text
    taker = error.ctx.command
    if isinstance(error, click.MissingParameter) or "unexpected extra argument" in text:
        return f"{text.rstrip('.')}; write {' '.join([command, *taker.collect_usage_pieces(error.ctx)])}"
    if "No such command" in text and isinstance(taker, click.Group) and error.ctx.parent is not None:
        return f"{text.rstrip('.')}; there are {', '.join(taker.list_commands(error.ctx))}"
    if "No such command" in text and isinstance(taker, click.Group):
        from difflib import get_close_matches

        asked = text.split("'")[1]
        # Some names have a hyphen and others have none: who has seen one writes another one like it.
        plain = {name.replace("-", ""): name for name in taker.list_commands(error.ctx)}
        if near := get_close_matches(asked.replace("-", ""), plain, 1):
            return f"{text.rstrip('.')}; did you mean {plain[near[0]]}?"
    return text


FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What happens to output as well, which has no file's name."""

REMEDIES: Final = {
    **dict.fromkeys(FULL, "free some space, raise ulimit -f, or write elsewhere"),
    errno.EACCES: "check the permissions, or name another place",
    errno.EPERM: "check the permissions, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check that the folder exists and can be written",
    errno.ENOTDIR: "a part of it is no folder: name another place",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "its symbolic links form a loop: name another path",
}
"""What the user can do about files that cannot be read or written, by the kernel's error."""


_LINE: Final = 800
"""Characters of an error at most: what the user gave may be a file."""


def leave(text: str, code: int) -> NoReturn:
    """Ends with one line, in which no secret of the command line is repeated."""
    from hydra.store.redaction import Redactor, typed

    with contextlib.suppress(HydraError):  # a system's package is damaged: that is what the text is about
        text = Redactor.of_command(typed()).text(text)
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(line) > _LINE:
        line = f"{line[: _LINE // 2]} … {line[-_LINE // 2 :]}"
    with contextlib.suppress(OSError):  # nobody reads it
        click.echo(line, err=True)
    sys.exit(code)


def drop(stream: TextIO) -> None:
    """It leads nowhere from now on: what is left in its buffer could not be written at the end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def failed_if(lines: Iterable[str], code: int) -> int:
    """Shows each condition that held, and gives the exit code: a worse one than EXIT_INCOMPLETE stays.

    Args:
        lines: a text for each.
        code: the exit code without them.
    """
    for line in lines:
        click.echo(f"--fail-if: {line}", err=True)
        code = code or EXIT_INCOMPLETE
    return code
