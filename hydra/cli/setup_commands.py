"""``hydra install-completion`` and ``hydra schema``."""

from __future__ import annotations

import os
from shlex import quote

import click

from hydra.errors import UsageError
from hydra.options.help import MORE, OUTPUT, grouped
from hydra.options.late_commands import Command


@click.command(
    "install-completion",
    cls=Command,
    section=MORE,
    examples=("hydra install-completion", "hydra install-completion zsh", "hydra install-completion fish --show"),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
@grouped(OUTPUT, click.option("--show", is_flag=True, help="Print the script and write no file."))
@click.pass_context
def install_completion(context: click.Context, shell: str | None, show: bool) -> None:
    """Complete commands and flags with the Tab key.

    Your shell then completes names of scenarios, too. SHELL is that of $SHELL unless you name one. The command writes
    one file; remove that file to undo it.
    """
    from hydra.cli.completion import VARIABLE, completion_for, shell_of
    from hydra.store.run_folders import write_whole

    made = completion_for(shell or shell_of(os.environ), context.find_root().command, os.environ)
    if show:
        click.echo(made.text)
        return
    installed = made.file.read_text() if made.file.is_file() else ""
    if installed and VARIABLE not in installed:
        raise UsageError(
            f"{made.file} exists, and Hydra did not write it", "move the file away, or print the script with --show"
        )
    if installed == made.text:
        click.echo(f"{made.file} already exists and is up to date")
    else:
        made.file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(made.file, made.text, "check the permissions, or print the script with --show")
        click.echo(f"wrote {made.file}; shells that you start from now on read this file")
    for note in made.notes:
        click.echo(note)
    click.echo(f"to undo the installation: rm {quote(str(made.file))}")


@click.command(cls=Command, section=MORE, examples=("hydra schema", "hydra schema ./mine.toml > mine.schema.json"))
@click.argument("scenario", required=False)
def schema(scenario: str | None) -> None:
    """Print the JSON Schema of --json and of rows.json.

    With SCENARIO, the schema has exactly the columns that rows of this scenario can have; without, those of every
    scenario in conf/scenarios.
    """
    from hydra.report.json_schema import schema_of

    click.echo(schema_of(scenario), nl=False)
