"""What conditions of ``--fail-if`` make of a command's exit code."""

from __future__ import annotations

from collections.abc import Iterable

import click

from hydra.errors import EXIT_INCOMPLETE


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
