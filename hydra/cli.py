"""The ``hydra`` command: parse, call, print.

What a command runs is imported when it runs: ``hydra --help`` and a refusal of flags do not wait for it.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_USAGE, HydraError, UsageError
from hydra.options import (
    BANDWIDTH,
    CLIENTS,
    CLUSTER,
    COUNTS,
    MEMORY,
    OUTPUT,
    PATH,
    WORD,
    WORKLOAD,
    Command,
    Concerning,
    Counts,
    ExperimentCommand,
    Finite,
    Runs,
    comparing_flags,
    config_flag,
    flags,
    grouped,
    implementation_flag,
    json_flag,
    keyed,
    master_flag,
    overrides,
    packing_flag,
    preset_flag,
    run_flags,
    set_flag,
    slo_flags,
)
from hydra.options.help import MACHINE, MORE, RESULTS, Helped
from hydra.options.scenarios import MEASURE
from hydra.run.alike import OfScenario, like_of, replaced_by, values_of
from hydra.run.contributed import add_flags, commands, refuse_comparing
from hydra.run.interrupts import hung_up, interrupt_on_the_first
from hydra.shell.commands import install_completion, schema
from hydra.shell.leaving import FULL, REMEDIES, command_of, drop, explained, leave

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_F = TypeVar("_F", bound=Callable[..., Any])

USUAL: Final = "zmqrate"
"""The scenario of commands that take one, where none is named."""

SECTIONS: Final = (MEASURE, RESULTS, MACHINE, MORE)
"""Of the list of commands, in this order."""


def scenario_argument(**attributes: Any) -> Callable[[_F], _F]:
    """The argument that names a scenario; a shell completes the names of those that come along."""

    def complete(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from hydra.config.places import experiments, scenarios

        names = [name for name in (*scenarios(), *experiments()) if name.startswith(incomplete)]
        # What is none of these is a file.
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]

    return click.argument("scenario", shell_complete=complete, **attributes)


class Hydra(Helped, click.Group):
    """Has the commands of systems and engines beside its own."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In sections, each in alphabetical order."""
        found = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        width = formatter.width - 6 - max(map(len, found))
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for name, command in found.items():
            section = getattr(command, "section", "") or MORE
            rows.setdefault(section, []).append((name, command.get_short_help_str(width)))
        for section, commands_ in rows.items():
            if commands_:
                with formatter.section(section):
                    formatter.write_dl(commands_, col_max=max(map(len, found)))

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
        return name, command, rest


@click.group(
    cls=Hydra,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "hydra zmqrate --clients 30,120 --step-seconds 2 --out runs/first",
        "hydra report runs/first",
        "hydra zmqrate --help",
    ),
)
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
    cls=OfScenario,
    flags=flags(preset_flag, comparing_flags, run_flags, scenario_argument(required=True)),
    section=MEASURE,
    examples=(
        "hydra run ./mine.toml --clients 10,50 --out runs/mine",
        "hydra run ./mine.toml --set sweep.duration_s=2.0 --json",
        "hydra run ./mine.toml --help",
    ),
)
@click.pass_context
def run_(context: click.Context, /, scenario: str, **_: Any) -> None:
    """Run any scenario: a name from conf/scenarios or a TOML file; or a published experiment by its name.

    It has the flags of the scenario's system as well, or of the experiment: hydra run SCENARIO --help shows them.
    """
    replaced, values = overrides(replaced_by(context)), values_of(context)
    if isinstance(like_of(context), ExperimentCommand):
        refuse_comparing(scenario, values)
        _experiment("", scenario, replaced, values)
    _scenario(scenario, replaced, values)


@cli.command(
    cls=OfScenario,
    flags=flags(slo_flags, implementation_flag(), run_flags, scenario_argument(required=True)),
    table="fixed",
    section=MEASURE,
    examples=("hydra slo ./mine.toml --clients 10 --rate 500 --duration 10s --p99 20ms --loss 0",),
)
@click.pass_context
def slo(context: click.Context, /, scenario: str, **_: Any) -> None:
    """Say whether a workload holds: yes (exit code 0) or no (3), and the margin of each objective.

    It has the flags of the scenario's system as well: hydra slo SCENARIO --help shows them.
    """
    from hydra.run.slo import run_slo

    run_slo(scenario, overrides(replaced_by(context)), values_of(context))


@cli.command(
    cls=Command,
    section=RESULTS,
    examples=("hydra report runs/first --open", "hydra report runs/before runs/after --images auto"),
)
@click.argument("runs", metavar="RUN [OTHER]…", type=PATH, nargs=-1, required=True)
@grouped(
    OUTPUT,
    click.option("--open", "opened", is_flag=True, help="Open the page in a browser, too."),
    click.option(
        "--plotly",
        type=click.Choice(["inline", "shared"]),
        default="inline",
        show_default=True,
        help="Where plotly.js (4.7 MB) is: in the page, or in a file beside the run's folder that all pages share.",
    ),
    click.option(
        "--images",
        type=WORD,
        metavar="FOLDER|auto",
        help="Write every plot as PNG and SVG into FOLDER, too (auto: `images` beside the page). Needs Chromium.",
    ),
)
def report(runs: tuple[Path, ...], opened: bool, plotly: str, images: str | None) -> None:
    """Write report.ipynb and report.html into the run directory RUN, or into the folder of an experiment.

    With other runs it is one page that compares these with the first, written beside that run's folder.
    """
    from hydra.jupyter.command import write_report

    paths = write_report(*runs, shared=plotly == "shared", images=images or "")
    click.echo("\n".join(map(str, paths)))
    if opened:
        click.launch(str(next(path for path in paths if path.suffix == ".html")))


@cli.command(
    cls=Command,
    section=RESULTS,
    examples=(
        "hydra compare runs/before runs/after",
        "hydra compare runs/before runs/after --fail-if 'avg_rx_rate_pps < 0.95 * base'",
    ),
)
@click.argument("runs", metavar="A B…", type=PATH, nargs=-1)
@grouped(
    OUTPUT,
    click.option(
        "--figure", type=WORD, metavar="NAME", help="The figure that decides: a column (default: as docs/compare.md)."
    ),
    click.option(
        "--fail-if",
        "fail_if",
        multiple=True,
        metavar="EXPR",
        help="Exit with 3 if this is true of a row, such as 'avg_rx_rate_pps < 0.95 * base'.",
    ),
    click.option("--all", "whole", is_flag=True, help="Print figures without a difference, too."),
    click.option("--html", type=PATH, metavar="FILE", help="Write a page with the plots of all runs into FILE."),
    json_flag,
)
def compare(
    runs: tuple[Path, ...], figure: str | None, fail_if: tuple[str, ...], html: Path | None, **shown: bool
) -> None:
    """Compare run directories with the first of them, row by row.

    A folder of runs that took turns (--compare-implementations) stands for all of these.
    """
    from hydra.results.compared import compare_runs
    from hydra.results.comparison import json_text, markdown
    from hydra.results.fitted import fitted, terminal_width
    from hydra.run.failing import failed_if

    compared, lines = compare_runs(runs, figure or "", fail_if)
    if html is not None:
        from hydra.jupyter.command import write_comparison

        click.echo(str(write_comparison(compared, html)), err=True)
    text = markdown(compared, whole=shown["whole"])
    click.echo(json_text(compared) if shown["as_json"] else fitted(text, terminal_width()), nl=False)
    sys.exit(failed_if(lines, EXIT_GOOD))


@cli.command(cls=Command, section=RESULTS, examples=("hydra runs", "hydra runs /data/runs --json"))
@click.argument("folder", type=PATH, default=Path("runs"))
@json_flag
def runs(folder: Path, as_json: bool) -> None:
    """List the run directories in FOLDER (default: runs), newest first, with how each ended and why."""
    from hydra.results.folders import refuse_no_folder

    refuse_no_folder(folder)

    import json

    from hydra.results.catalog import catalog
    from hydra.results.fitted import tabled, terminal_width

    entries = catalog(folder)
    # A line of a terminal has room for the beginning of a reason; JSON has all of it.
    short = [
        {
            **{"began (UTC)" if key == "began" else key: value for key, value in entry.items()},
            "began (UTC)": entry["began"][:16].replace("T", " "),
            "why": shorten(entry["why"], 72, placeholder=" …"),
        }
        for entry in entries
    ]
    click.echo(json.dumps(entries, indent=2) if as_json else tabled(short, terminal_width()))


@cli.command(
    cls=Command,
    section=RESULTS,
    examples=("hydra serve", "hydra serve runs --port 8000 --open"),
)
@click.argument("folder", type=PATH, default=Path("runs"))
@grouped(
    OUTPUT,
    click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen (default: any free port)."),
    click.option(
        "--host", type=WORD, default="127.0.0.1", show_default=True, help="A loopback address; no other is taken."
    ),
    click.option("--open", "opened", is_flag=True, help="Open the page in a browser, too."),
)
def serve(folder: Path, port: int, host: str, opened: bool) -> None:
    """Show the runs in FOLDER (default: runs) in a browser on this machine: reports and comparisons.

    Nothing is written into the folder: reports are made when they are opened, into the user's cache. Ctrl-C ends it.
    """
    from hydra.serve.command import serve_runs

    serve_runs(folder, host, port, opened=opened)


@cli.command(
    cls=Command,
    section=MACHINE,
    examples=("hydra agents", "hydra agents --for zmqrate", "hydra agents --config ./cluster.toml --json"),
)
@config_flag
@master_flag
@grouped(
    OUTPUT,
    click.option("--for", "scenario", type=WORD, metavar="SCENARIO", help="Say which of its roles could run on each."),
    json_flag,
)
def agents(config: Path | None, master: str, scenario: str | None, as_json: bool) -> None:
    """List the cluster's agents with their attributes and free resources."""
    from hydra.run.agents import list_agents

    list_agents(config, master, scenario, as_json=as_json)


@cli.command(
    cls=Command,
    section=MACHINE,
    examples=("hydra ceiling", "hydra ceiling --implementation native --clients 1,8 --size 24"),
)
@grouped(
    WORKLOAD,
    click.option("--clients", type=Counts(1), default="1,2,4,8", show_default=True, help="Subscriber counts."),
    click.option(
        "--size",
        "sizes",
        type=Counts(24, 64 * 1024 * 1024),
        default="24,1024,16384",
        show_default=True,
        help="Bytes of messages.",
    ),
    click.option(
        "--duration",
        type=click.FloatRange(0.2, 60),
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="Of each measurement.",
    ),
)
@grouped(
    CLIENTS,
    click.option(
        "--implementation",
        "languages",
        type=click.Choice(["python", "native"]),
        multiple=True,
        help="Clients in Python or native ones (default: both).",
    ),
)
@json_flag
def ceiling(languages: tuple[str, ...], clients: list[int], sizes: list[int], duration: float, as_json: bool) -> None:
    """Measure what the clients' own code can do on this machine: rows near it tell of Hydra, not of the system.

    It is the code of every run with its connection to the system replaced by none. What was measured is kept in the
    user's cache, and every later run compares its rows with it.
    """
    from hydra.ceiling.command import run_ceiling

    run_ceiling(languages, clients, sizes, duration, as_json=as_json)


@cli.command(
    cls=OfScenario,
    flags=flags(
        scenario_argument(default=USUAL),
        config_flag,
        grouped(
            WORKLOAD,
            keyed(
                "--clients", key="sweep.clients", type=COUNTS, help="Client counts to check (default: the scenario's)."
            ),
        ),
        implementation_flag(),
        packing_flag,
        preset_flag,
        set_flag,
    ),
    section=MACHINE,
    examples=("hydra check", "hydra check ./mine.toml --implementation native --clients 1920,7680"),
)
@click.pass_context
def check(context: click.Context, /, scenario: str, config: Path | None, **_: Any) -> None:
    """Say what a scenario needs of this machine, and the command that removes each shortage.

    Without SCENARIO it is zmqrate. It has the flags of the scenario's system as well: hydra check SCENARIO --help shows
    them. Exit code 3 if some row does not fit.
    """
    from hydra.config.cluster import load_cluster
    from hydra.config.places import scenario_path
    from hydra.config.scenario import load_scenario

    loaded, cluster = load_scenario(scenario, overrides(replaced_by(context))), load_cluster(config)

    from hydra.client.processes import raise_open_files
    from hydra.limits.machine import read
    from hydra.limits.report import check_all, checked_line, needs_line
    from hydra.results.fitted import fitted, tabled, terminal_width
    from hydra.run.launcher import system_for

    system_for(loaded).program("subscriber")
    raise_open_files()
    rows = check_all(loaded, cluster, read())
    width = terminal_width()
    named = context.get_parameter_source("scenario") is not ParameterSource.DEFAULT
    click.echo(f"{fitted(checked_line(loaded, scenario, scenario_path(scenario), named=named), width)}\n")
    click.echo(tabled([needs_line(row) for row in rows], width, floats=".1f"))
    # The largest row asks for the most: its lines mend the others too.
    for shortage in rows[-1].shortages:
        click.echo(fitted(str(shortage), width))
    sys.exit(EXIT_GOOD if all(row.fits for row in rows) else EXIT_INCOMPLETE)


@cli.command(
    cls=Command,
    section=RESULTS,
    examples=("hydra fit runs/first", "hydra fit runs/first --clients 10000,100000 --plot fit.html"),
)
@click.argument("run", type=PATH)
@grouped(
    WORKLOAD,
    click.option(
        "--clients", type=COUNTS, default=[], help="Client counts to predict (default: 2, 5, 10 times the largest)."
    ),
)
@grouped(
    OUTPUT,
    click.option("--plot", "page", type=PATH, metavar="FILE.html", help="Draw the points, the law and its interval."),
    json_flag,
)
def fit(run: Path, clients: list[int], page: Path | None, as_json: bool) -> None:
    """Fit the scalability law and linear budgets to the run in RUN, and predict other client counts.

    Needs six client counts. Every prediction has the 95 % interval of a new measurement.
    """
    from hydra.planning.fit import fit_run

    fit_run(run, clients, page, as_json)


@cli.command(
    cls=Command,
    section=RESULTS,
    examples=(
        "hydra plan --clients 100000 --rate 10",
        "hydra plan --clients 100000 --rate 10 --cores 16 --memory 64GB --network 10Gbit",
        "hydra plan --clients 5000 --rate 100 --from runs/first",
    ),
)
@click.argument("scenario", required=False)
@grouped(
    WORKLOAD,
    click.option("--clients", type=click.IntRange(min=1), required=True, help="How many subscribers."),
    click.option("--rate", type=Finite(min=0, min_open=True), required=True, help="Messages/s to each of them."),
    click.option(
        "--from", "runs", type=PATH, multiple=True, metavar="RUN", help="Take costs from this run; several times."
    ),
)
@grouped(
    CLIENTS,
    click.option(
        "--implementation",
        "--client",
        "implementation",
        cls=Concerning,
        key="client",
        type=WORD,
        help="Client implementation.",
    ),
)
@grouped(
    CLUSTER,
    click.option("--cores", type=Finite(min=0, min_open=True), help="Of an agent (default: this machine's)."),
    click.option("--memory", type=MEMORY, help="Of an agent, such as 64GB (default: this machine's)."),
    click.option("--network", type=BANDWIDTH, help="Of an agent, such as 10Gbit (default: this machine's)."),
)
@config_flag
@set_flag
@json_flag
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
    sys.exit(show_plan(asked, USUAL, as_json))


cli.add_command(install_completion)
cli.add_command(schema)


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
                drop(stream)


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
        where = command_of(e)
        if not sys.argv[1:] or e.format_message().startswith("Usage:"):  # a command alone, which asks for its help
            click.echo(e.format_message(), err=True)
            sys.exit(e.exit_code)
        leave(f"{where}: {explained(e, where)} (see {where} --help)", e.exit_code)
    except HydraError as e:
        leave(f"hydra: {e}", e.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone; nothing can be said to them any more.
        drop(sys.stdout)
        sys.exit(EXIT_FAILED)
    except OSError as e:
        if e.errno == errno.EIO and hung_up():
            sys.exit(EXIT_INTERRUPTED)
        if e.errno is None or e.errno not in (REMEDIES if e.filename else FULL):
            raise
        what = f"{e.filename}: {e.strerror}"
        if not e.filename:
            drop(sys.stdout)
            what = f"cannot write: {e.strerror}"
        leave(f"hydra: {what}; {REMEDIES[e.errno]}", EXIT_USAGE)


if __name__ == "__main__":
    main()
