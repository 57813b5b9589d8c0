"""The end of the ``hydra`` command: an exit code, and one line on standard error if something is wrong."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn, TextIO

import click

from hydra.errors import EXIT_INCOMPLETE, HydraError
from hydra.options.shared_flags import TYPED


def command_of(error: click.ClickException) -> str:
    """The command that an error is about, such as ``hydra GROUP COMMAND``."""
    names: list[str] = []
    context = error.ctx if isinstance(error, click.UsageError) else None
    while context is not None and context.parent is not None:
        names.insert(0, str(context.info_name))
        context = context.parent
    return " ".join(["hydra", *names])


def error_text(error: click.ClickException, command: str) -> str:
    """The error's text, with the command's usage or names if an argument is missing, wrong or one too many."""
    text = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return text
    shown = error.ctx.command
    if isinstance(error, click.NoSuchOption):
        meant = _meant(error.option_name, shown.get_params(error.ctx)) or _elsewhere(error.option_name, error.ctx)
        return f"No such option {error.option_name!r}{meant}"
    if isinstance(error, click.MissingParameter) or "unexpected extra argument" in text:
        return f"{text.rstrip('.')}; write {' '.join([command, *shown.collect_usage_pieces(error.ctx)])}"
    if "No such command" in text and isinstance(shown, click.Group):
        from difflib import get_close_matches  # of errors only

        unknown = text.split("'")[1]
        text = f"No such command {unknown!r}"  # newer versions of click add a guess of their own
        if error.ctx.parent is not None:
            return f"{text}; there are {', '.join(shown.list_commands(error.ctx))}"
        # Some names have a hyphen and others do not: users mix them up.
        known = ((name, shown.get_command(error.ctx, name)) for name in shown.list_commands(error.ctx))
        plain = {name.replace("-", ""): name for name, command in known if command and not command.hidden}
        if near := get_close_matches(unknown.replace("-", ""), plain, 1):
            return f"{text}; did you mean {plain[near[0]]}?"
    return text


def _meant(flag: str, params: Iterable[click.Parameter]) -> str:
    """The flag that a user may mean by an unknown one, as a question; "" if none is similar."""
    from difflib import get_close_matches

    # Without hyphens: two of them make short names similar.
    names = {opt.strip("-"): opt for param in params for opt in param.opts if opt.startswith("--")}
    plain = flag.strip("-")
    begun = [name for name in names if plain and name.startswith(plain)]
    near = begun or get_close_matches(plain, names, 1)
    return f"; did you mean {' or '.join(names[name] for name in near)}?" if near else ""


def _elsewhere(flag: str, context: click.Context) -> str:
    """Hydra's own commands that have a flag which this command lacks; "" if there are none."""
    root = context.find_root().command
    own = root.commands.items() if isinstance(root, click.Group) else ()
    names = [
        f"hydra {name}" for name, command in own if any(flag in param.opts for param in command.get_params(context))
    ]
    return f"; it is a flag of {' and '.join(names)}" if names else ""


FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors that standard output can have, too; its errors name no file."""

REMEDIES: Final = {
    **dict.fromkeys(FULL, "free some space, raise ulimit -f, or write elsewhere"),
    errno.EACCES: "check the permissions, or name another place",
    errno.EPERM: "check the permissions, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check that the folder exists and can be written",
    errno.ENOTDIR: "a part of the path is no folder: name another path",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "the symbolic links of the path form a loop: name another path",
}
"""What the user can do about files that cannot be read or written, by the kernel's error."""


_LINE: Final = 800
"""Maximum length of an error in characters: an argument that it quotes may be as long as a file."""


def leave(text: str, code: int) -> NoReturn:
    """Prints one line without secrets of the command line on standard error, and exits with ``code``."""
    if TYPED in os.environ or may_hold_secrets(text, sys.argv[1:]):
        from hydra.store.redaction import Redactor, typed

        with contextlib.suppress(HydraError):  # a system's package is damaged, and the text reports it
            text = Redactor.of_command(typed()).text(text)
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(line) > _LINE:
        line = f"{line[: _LINE // 2]} … {line[-_LINE // 2 :]}"
    with contextlib.suppress(OSError):  # standard error is closed
        click.echo(line, err=True)
    sys.exit(code)


def may_hold_secrets(text: str, words: Sequence[str]) -> bool:
    """Whether an error may have to be redacted; more is known only with the settings of all systems, which load slowly.

    A secret on a command line stands in an assignment, or behind a flag and a key, or in a command that is one word. A
    login stands in a URL.

    Args:
        text: the error.
        words: the arguments of this command.
    """
    return (
        "://" in text
        or any(mark in word for word in words for mark in "=: \t\n")
        or any(word.startswith("-") for word in words[:-2])
    )


def drop(stream: TextIO) -> None:
    """Redirects a stream to /dev/null: what is left in its buffer could not be written at the end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def failed_if(lines: Iterable[str], code: int, flag: str = "--fail-if") -> int:
    """Prints each condition that held, and returns the exit code; an exit code other than 0 stays.

    Args:
        lines: a text for each condition that held.
        code: the exit code if no condition held.
        flag: the flag with the condition.
    """
    for line in lines:
        click.echo(f"{flag}: {line}", err=True)
        code = code or EXIT_INCOMPLETE
    return code
