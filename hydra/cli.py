"""The ``hydra`` command: parse, call, print.

What a command runs is imported when it runs: ``hydra --help`` and a refusal of flags do not wait for it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NoReturn, TextIO

import click

from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_USAGE, HydraError, UsageError
from hydra.options import (
    BANDWIDTH,
    COUNTS,
    MEMORY,
    PATH,
    WORD,
    Finite,
    LateCommand,
    Runs,
    comparing_flags,
    experiment_flags,
    flags,
    implementation_flag,
    keyed,
    master_flag,
    overrides,
    packing_flag,
    preset_flag,
    run_flags,
    set_flag,
    slo_flags,
)
from hydra.run.contributed import add_experiment_flags, add_flags, commands, refuse_comparing, refuse_flags
from hydra.run.interrupts import hung_up, interrupt_on_the_first


class Hydra(click.Group):
    """Has the commands of systems and engines beside its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """In alphabetical order."""
        return sorted(commands(self.commands))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # likewise
        """None if there is none of that name."""
        found = commands(self.commands).get(cmd_name)
        return found() if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is used, with all its flags: those of engines and experiments among them."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            add_flags(command, ctx)
            if command is run_:
                add_experiment_flags(command)
        return name, command, rest


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


def _experiment(system: str, name: str, replaced: Mapping[str, object], values: Mapping[str, Any]) -> None:
    from hydra.experiments.named import find

    if name or values["resume"] is None:
        find(system, name)

    from hydra.experiments.command import run_experiment

    run_experiment(system, name, replaced, values)


def _experiments(*order: Any) -> None:
    from hydra.experiments.listing import list_experiments

    list_experiments(*order)


def _presets(*order: Any) -> None:
    from hydra.experiments.listing import list_presets

    list_presets(*order)


@cli.command(
    "run",
    cls=LateCommand,
    flags=flags(preset_flag, experiment_flags, comparing_flags, run_flags, click.argument("scenario")),
)
def run_(scenario: str, **values: Any) -> None:
    """Run any scenario: a name from conf/scenarios or a TOML file; or a published experiment by its name."""
    from hydra.config.places import experiments, scenarios

    if scenario in experiments() and scenario not in scenarios():
        refuse_comparing(scenario, values)
        _experiment("", scenario, overrides(), values)
    refuse_flags(scenario, values)
    _scenario(scenario, overrides(), values)


@cli.command(cls=LateCommand, flags=flags(slo_flags, implementation_flag(), run_flags, click.argument("scenario")))
def slo(scenario: str, **values: Any) -> None:
    """Say whether a workload holds: yes (exit code 0) or no (3), and the margin of each objective."""
    from hydra.run.slo import run_slo

    run_slo(scenario, overrides(), values)


@cli.command()
@click.argument("run", type=PATH)
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser, too.")
@click.option(
    "--plotly",
    type=click.Choice(["inline", "shared"]),
    default="inline",
    show_default=True,
    help="Where plotly.js (4.7 MB) is: in the page, or in a file beside the run's folder that all pages share.",
)
def report(run: Path, opened: bool, plotly: str) -> None:
    """Write report.ipynb and report.html into the run directory RUN, or into the folder of an experiment."""
    from hydra.jupyter.command import write_report

    paths = write_report(run, shared=plotly == "shared")
    click.echo("\n".join(map(str, paths)))
    if opened:
        click.launch(str(paths[-1]))


@cli.command()
@click.argument("runs", metavar="A B…", type=PATH, nargs=-1)
@click.option(
    "--figure", type=WORD, metavar="NAME", help="The figure that decides: a column (default: as docs/compare.md)."
)
@click.option(
    "--fail-if",
    "fail_if",
    multiple=True,
    metavar="EXPR",
    help="Exit with 3 if this is true of a row, such as 'avg_rx_rate_pps < 0.95 * base'.",
)
@click.option("--all", "whole", is_flag=True, help="Print figures without a difference, too.")
@click.option("--html", type=PATH, metavar="FILE", help="Write a page with the plots of all runs into FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    runs: tuple[Path, ...], figure: str | None, fail_if: tuple[str, ...], html: Path | None, **shown: bool
) -> None:
    """Compare run directories with the first of them, row by row.

    A folder of runs that took turns (--compare-implementations) stands for all of these.
    """
    from hydra.results.compared import compare_runs
    from hydra.results.comparison import json_text, markdown
    from hydra.run.failing import failed_if

    compared, lines = compare_runs(runs, figure or "", fail_if)
    if html is not None:
        from hydra.jupyter.command import write_comparison

        click.echo(str(write_comparison(compared, html)), err=True)
    text = json_text(compared) if shown["as_json"] else markdown(compared, whole=shown["whole"])
    click.echo(text, nl=False)
    sys.exit(failed_if(lines, EXIT_GOOD))


@cli.command()
@click.argument("folder", type=PATH, default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs(folder: Path, as_json: bool) -> None:
    """List the run directories in FOLDER (default: runs), newest first, with how each ended and why."""
    from hydra.results.folders import refuse_no_folder

    refuse_no_folder(folder)

    import json

    from tabulate import tabulate

    from hydra.results.catalog import catalog

    entries = catalog(folder)
    # A line of a terminal has room for the beginning of a reason; JSON has all of it.
    short = [{**entry, "why": shorten(entry["why"], 72, placeholder=" …")} for entry in entries]
    click.echo(json.dumps(entries, indent=2) if as_json else tabulate(short, headers="keys"))


@cli.command()
@click.argument("folder", type=PATH, default=Path("runs"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen (default: any free port).")
@click.option(
    "--host", type=WORD, default="127.0.0.1", show_default=True, help="A loopback address; no other is taken."
)
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser, too.")
def serve(folder: Path, port: int, host: str, opened: bool) -> None:
    """Show the runs in FOLDER (default: runs) in a browser on this machine: reports and comparisons.

    Nothing is written into the folder: reports are made when they are opened, into the user's cache. Ctrl-C ends it.
    """
    from hydra.serve.command import serve_runs

    serve_runs(folder, host, port, opened=opened)


@cli.command()
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@master_flag
@click.option("--for", "scenario", type=WORD, metavar="SCENARIO", help="Say also which of its roles could run on each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def agents(config: Path | None, master: str, scenario: str | None, as_json: bool) -> None:
    """List the cluster's agents with their attributes and free resources."""
    from hydra.config.cluster import load_cluster
    from hydra.config.scenario import load_scenario
    from hydra.run.engines import choose

    required = load_scenario(scenario) if scenario else None
    declared, engine = load_cluster(config).agents, choose(master, config)

    import json

    from tabulate import tabulate

    from hydra.cluster.resources import format_resources
    from hydra.run.launcher import roles_on

    rows = [
        {
            "agent": a.id,
            "hostname": a.hostname,
            "attributes": ";".join(f"{k}:{v}" for k, v in a.attributes.items()),
            "resources": format_resources(a.resources),
            **({"could run": ", ".join(roles_on(a, required))} if required else {}),
        }
        for a in engine.agents(declared)
    ]
    click.echo(json.dumps(rows, indent=2) if as_json else tabulate(rows, headers="keys"))


@cli.command()
@click.option("--implementation", "languages", type=click.Choice(["python", "native"]), multiple=True,
              help="Clients in Python or native ones (default: both).")  # fmt: skip
@click.option("--clients", type=COUNTS, default="1,2,4,8", show_default=True, help="Subscriber counts.")
@click.option("--size", "sizes", type=COUNTS, default="24,1024,16384", show_default=True, help="Message sizes, bytes.")
@click.option("--duration", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds of each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ceiling(languages: tuple[str, ...], clients: list[int], sizes: list[int], duration: float, as_json: bool) -> None:
    """Measure what the clients' own code can do on this machine: rows near it tell of Hydra, not of the system.

    It is the code of every run with its connection to the system replaced by none. What was measured is kept in the
    user's cache, and every later run compares its rows with it.
    """
    from hydra.ceiling.command import run_ceiling

    if min(clients) < 1 or not all(24 <= size <= 64 * 1024 * 1024 for size in sizes):
        raise UsageError("there is no such count or size", "give counts from 1 on, and sizes of 24 to 67108864 bytes")
    run_ceiling(languages, clients, sizes, duration, as_json=as_json)


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
    from hydra.config.cluster import load_cluster
    from hydra.config.scenario import load_scenario

    loaded, cluster = load_scenario(scenario, overrides()), load_cluster(config)

    from tabulate import tabulate

    from hydra.client.processes import raise_open_files
    from hydra.limits.machine import read
    from hydra.limits.report import check_all, needs_line
    from hydra.run.launcher import system_for

    system_for(loaded).program("subscriber")
    raise_open_files()
    rows = check_all(loaded, cluster, read())
    click.echo(tabulate([needs_line(row) for row in rows], headers="keys", floatfmt=".1f"))
    # The largest row asks for the most: its lines mend the others too.
    for shortage in rows[-1].shortages:
        click.echo(str(shortage))
    sys.exit(EXIT_GOOD if all(row.fits for row in rows) else EXIT_INCOMPLETE)


@cli.command()
@click.argument("run", type=PATH)
@click.option(
    "--clients", type=COUNTS, default=[], help="Client counts to predict (default: 2, 5, 10 times the largest)."
)
@click.option("--plot", "page", type=PATH, metavar="FILE.html", help="Draw the points, the law and its interval.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fit(run: Path, clients: list[int], page: Path | None, as_json: bool) -> None:
    """Fit the scalability law and linear budgets to the run in RUN, and predict other client counts.

    Needs six client counts. Every prediction has the 95 % interval of a new measurement.
    """
    from hydra.planning.fit import fit_run

    fit_run(run, clients, page, as_json)


@cli.command()
@click.argument("scenario", required=False)
@click.option("--clients", type=click.IntRange(min=1), required=True, help="How many subscribers.")
@click.option("--rate", type=Finite(min=0, min_open=True), required=True, help="Messages/s to each of them.")
@click.option(
    "--from", "runs", type=PATH, multiple=True, metavar="RUN", help="Take costs from this run; several times."
)
@click.option("--cores", type=Finite(min=0, min_open=True), help="Of an agent (default: this machine's).")
@click.option("--memory", type=MEMORY, help="Of an agent, such as 64GB (default: this machine's).")
@click.option("--network", type=BANDWIDTH, help="Of an agent, such as 10Gbit (default: this machine's).")
@click.option("--implementation", "--client", "implementation", type=WORD, help="Client implementation.")
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@set_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    scenario: str | None,
    clients: int,
    rate: float,
    runs: tuple[Path, ...],
    cores: float | None,
    memory: float | None,
    network: float | None,
    implementation: str | None,
    config: Path | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Say how many agents, publishers and servers so many clients take, what breaks first, and where evidence ends.

    Costs are those of the runs that are named; what these do not tell, those that were measured with Hydra. Exit code 3
    if something is needed that there cannot be.
    """
    from hydra.planning.plan import Asked, show_plan

    asked = Asked(clients, rate, scenario, implementation, runs, cores, memory, network, config, overrides())
    sys.exit(show_plan(asked, "zmqrate", as_json))


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
