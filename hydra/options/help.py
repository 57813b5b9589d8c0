"""The help of a command: its flags in groups, with defaults, and examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from hydra.options.help_sections import GENERAL, ORDER, group_of

RESULTS: Final = "Look at results"
MACHINE: Final = "Cluster and machine"
MORE: Final = "More"
"""Sections of the list of commands."""


class Helped(click.Command):
    """A command that shows its flags in groups, and examples below them.

    Args:
        examples: whole command lines, each of which can be typed as it stands.
        section: where a list of commands shows it.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), section: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = tuple(examples)
        self.section = section

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whatever is wrong is said of this command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as e:
            e.ctx = e.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section for each group; a group of commands lists these as well."""
        for group, params in in_groups(self.get_params(ctx)):
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's
        """The examples, never wrapped: they are to be copied."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in self.examples))


def in_groups(params: Sequence[click.Parameter]) -> list[tuple[str, list[click.Option]]]:
    """The flags by group, in the order of the groups; what has none is shown last."""
    groups: dict[str, list[click.Option]] = {}
    for param in params:
        if isinstance(param, click.Option):
            groups.setdefault(group_of(param) or GENERAL, []).append(param)
    # A package of somebody else's may have groups of its own.
    known = {name: number for number, name in enumerate(ORDER)}
    return sorted(groups.items(), key=lambda each: known.get(each[0], known[GENERAL] - 1))
