"""The ``hydra`` command: parse, call, print.

What a command runs is imported when it runs: ``hydra --help`` and a refusal of flags do not wait for it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NoReturn, TextIO

import click

from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_USAGE, HydraError, UsageError
from hydra.options import (
    COUNTS,
    PATH,
    WORD,
    Runs,
    experiment_flags,
    implementation_flag,
    keyed,
    master_flag,
    overrides,
    packing_flag,
    preset_flag,
    run_flags,
    set_flag,
)
from hydra.run.contributed import add_flags, complete, refuse_flags
from hydra.run.interrupts import hung_up, interrupt_on_the_first


class Hydra(click.Group):
    """Has the commands of systems and engines beside its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In alphabetical order."""
        complete(self)
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """None if there is none of that name."""
        complete(self)
        add_flags(run_)
        return super().get_command(ctx, cmd_name)


@click.group(cls=Hydra, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hydra-scale", prog_name="hydra")
@click.pass_context
def cli(context: click.Context) -> None:
    """Find out how a publish-subscribe system behaves as the number of its clients grows."""
    # For the commands of systems, which know nothing of runs.
    context.obj = Runs(_scenario, _experiment, _experiments, _presets)


def _scenario(*order: Any) -> None:
    from hydra.run.command import run_scenario

    run_scenario(*order)


def _experiment(*order: Any) -> None:
    from hydra.experiments.command import run_experiment

    run_experiment(*order)


def _experiments(*order: Any) -> None:
    from hydra.experiments.listing import list_experiments

    list_experiments(*order)


def _presets(*order: Any) -> None:
    from hydra.experiments.listing import list_presets

    list_presets(*order)


@cli.command("run")
@preset_flag
@experiment_flags
@run_flags
@click.argument("scenario")
def run_(scenario: str, **flags: Any) -> None:
    """Run any scenario: a name from conf/scenarios or a TOML file; or a published experiment by its name."""
    from hydra.config.places import experiments, scenarios

    if scenario in experiments() and scenario not in scenarios():
        _experiment("", scenario, overrides(), flags)
    refuse_flags(scenario, flags)
    _scenario(scenario, overrides(), flags)


@cli.command()
@click.argument("run", type=PATH)
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser, too.")
def report(run: Path, opened: bool) -> None:
    """Write report.ipynb and report.html into the run directory RUN, or into the folder of an experiment."""
    from hydra.jupyter.command import write_report

    paths = write_report(run)
    click.echo("\n".join(map(str, paths)))
    if opened:
        click.launch(str(paths[-1]))


@cli.command()
@click.argument("folder", type=PATH, default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs(folder: Path, as_json: bool) -> None:
    """List the run directories in FOLDER (default: runs), newest first, with how each ended and why."""
    from tabulate import tabulate

    from hydra.results.catalog import catalog

    entries = catalog(folder)
    # A line of a terminal has room for the beginning of a reason; JSON has all of it.
    short = [{**entry, "why": shorten(entry["why"], 72, placeholder=" …")} for entry in entries]
    click.echo(json.dumps(entries, indent=2) if as_json else tabulate(short, headers="keys"))


@cli.command()
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@master_flag
@click.option("--for", "scenario", type=WORD, metavar="SCENARIO", help="Say also which of its roles could run on each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def agents(config: Path | None, master: str, scenario: str | None, as_json: bool) -> None:
    """List the cluster's agents with their attributes and free resources."""
    from tabulate import tabulate

    from hydra.cluster.resources import format_resources
    from hydra.config.cluster import load_cluster
    from hydra.config.scenario import load_scenario
    from hydra.run.engines import choose
    from hydra.run.launcher import roles_on

    required = load_scenario(scenario) if scenario else None
    rows = [
        {
            "agent": a.id,
            "hostname": a.hostname,
            "attributes": ";".join(f"{k}:{v}" for k, v in a.attributes.items()),
            "resources": format_resources(a.resources),
            **({"could run": ", ".join(roles_on(a, required))} if required else {}),
        }
        for a in choose(master, config).agents(load_cluster(config).agents)
    ]
    click.echo(json.dumps(rows, indent=2) if as_json else tabulate(rows, headers="keys"))


@cli.command()
@click.argument("scenario", default="zmqrate")
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@keyed("--clients", key="sweep.clients", type=COUNTS, help="Client counts to check (default: the scenario's).")
@implementation_flag()
@packing_flag
@preset_flag
@set_flag
def check(scenario: str, config: Path | None, **_: Any) -> None:
    """Say what a scenario needs of this machine, and the command that removes each shortage.

    Exit code 3 if some row does not fit.
    """
    from tabulate import tabulate

    from hydra.client.processes import raise_open_files
    from hydra.config.cluster import load_cluster
    from hydra.config.scenario import load_scenario
    from hydra.limits.machine import read
    from hydra.limits.report import check_all, needs_line

    loaded = load_scenario(scenario, overrides())

    from hydra.run.launcher import system_for  # not before the scenario is known to be one

    system_for(loaded).program("subscriber")
    raise_open_files()
    rows = check_all(loaded, load_cluster(config), read())
    click.echo(tabulate([needs_line(row) for row in rows], headers="keys", floatfmt=".1f"))
    # The largest row asks for the most: its lines mend the others too.
    for shortage in rows[-1].shortages:
        click.echo(str(shortage))
    sys.exit(EXIT_GOOD if all(row.fits for row in rows) else EXIT_INCOMPLETE)


def main() -> None:
    """Runs the command; what goes wrong is one line on standard error and an exit code."""
    interrupt_on_the_first()
    try:
        _obey()
    finally:
        # What could not be written is still in the buffers: at the end Python would try again, and exit with 120.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                _drop(stream)


def _obey() -> None:
    try:
        for number, word in enumerate(sys.argv):
            if not word.isascii() and any("\ud800" <= c <= "\udfff" for c in word):
                raise UsageError(f"argument {number} is not UTF-8", "set the terminal to UTF-8")
        cli(standalone_mode=False)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as e:
        # One line instead of click's usage block: what, where, what to try.
        where = f"hydra {e.ctx.info_name}" if isinstance(e, click.UsageError) and e.ctx and e.ctx.parent else "hydra"
        if not sys.argv[1:] or e.format_message().startswith("Usage:"):  # a command alone, which asks for its help
            click.echo(e.format_message(), err=True)
            sys.exit(e.exit_code)
        _leave(f"{where}: {e.format_message()} (see {where} --help)", e.exit_code)
    except HydraError as e:
        _leave(f"hydra: {e}", e.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone; nothing can be said to them any more.
        _drop(sys.stdout)
        sys.exit(EXIT_FAILED)
    except OSError as e:
        if e.errno == errno.EIO and hung_up():
            sys.exit(EXIT_INTERRUPTED)
        if e.errno is None or e.errno not in (_REMEDIES if e.filename else _FULL):
            raise
        what = f"{e.filename}: {e.strerror}"
        if not e.filename:
            _drop(sys.stdout)
            what = f"cannot write: {e.strerror}"
        _leave(f"hydra: {what}; {_REMEDIES[e.errno]}", EXIT_USAGE)


_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What happens to output as well, which has no file's name."""

_REMEDIES: Final = {
    **dict.fromkeys(_FULL, "free some space, raise ulimit -f, or write elsewhere"),
    errno.EACCES: "check the permissions, or name another place",
    errno.EPERM: "check the permissions, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check that the folder exists and can be written",
    errno.ENOTDIR: "a part of it is no folder: name another place",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "its symbolic links lead in a circle: name another place",
}
"""What the user can do about files that cannot be read or written, by the kernel's error."""


_LINE: Final = 800
"""Characters of an error at most: what the user gave may be a file."""


def _leave(text: str, code: int) -> NoReturn:
    """Ends with one line, in which no secret of the command line is repeated."""
    from hydra.run.redaction import Redactor

    with contextlib.suppress(HydraError):  # a system's package is damaged: that is what the text is about
        text = Redactor.of_command(sys.argv).text(text)
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(line) > _LINE:
        line = f"{line[: _LINE // 2]} … {line[-_LINE // 2 :]}"
    with contextlib.suppress(OSError):  # nobody reads it
        click.echo(line, err=True)
    sys.exit(code)


def _drop(stream: TextIO) -> None:
    """It leads nowhere from now on: what is left in its buffer could not be written at the end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    main()
