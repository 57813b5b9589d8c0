"""Commands that show what was measured: reports, comparisons, lists, models."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

import click
from click.core import ParameterSource

from hydra.errors import EXIT_GOOD, UsageError
from hydra.options.flag_types import COUNTS, PATH, WORD
from hydra.options.help import COMPARISON, OUTPUT, RESULTS, WORKLOAD, grouped
from hydra.options.late_commands import Command, late_command, overrides
from hydra.options.shared_flags import interleave_flag, json_flag, run_flags


@click.command(
    cls=Command,
    section=RESULTS,
    examples=("hydra report runs/first --open", "hydra report runs/before runs/after --images auto"),
)
@click.argument("runs", metavar="RUN [OTHER]…", type=PATH, nargs=-1, required=True)
@grouped(
    OUTPUT,
    click.option("--open", "opened", is_flag=True, help="Also open the page in a browser."),
    click.option(
        "--plotly",
        type=click.Choice(["inline", "shared"]),
        default="inline",
        show_default=True,
        help="Place of plotly.js (4.7 MB): in the page, or in one file next to the run's folder that all pages share.",
    ),
    click.option(
        "--images",
        type=WORD,
        metavar="FOLDER|auto",
        help="Also write every plot as PNG and SVG into FOLDER (auto: `images` next to the page). This needs Chromium.",
    ),
)
def report(runs: tuple[Path, ...], opened: bool, plotly: str, images: str | None) -> None:
    """Write the report of a run, or one that compares runs.

    report.ipynb and report.html are written into the run directory RUN, or into the folder of an experiment. With more
    than one run, hydra report writes one page that compares the runs, next to the folder of the first run.
    """
    from hydra.jupyter.command import write_report

    paths = write_report(*runs, shared=plotly == "shared", images=images or "")
    click.echo("\n".join(map(str, paths)))
    if opened:
        click.launch(str(next(path for path in paths if path.suffix == ".html")))


@late_command(
    "compare",
    click.argument("runs", metavar="[A B…]", type=PATH, nargs=-1),
    grouped(
        COMPARISON,
        click.option(
            "--run",
            "commands",
            multiple=True,
            type=WORD,
            metavar="'COMMAND'",
            help="Measure this command, a scenario with its flags; give it twice or more.",
        ),
    ),
    interleave_flag,
    grouped(
        OUTPUT,
        click.option(
            "--figure",
            type=WORD,
            metavar="NAME",
            help="Primary metric for the verdict: a column (default: see docs/compare.md).",
        ),
        click.option("--all", "whole", is_flag=True, help="Also print the metrics that do not differ."),
        click.option("--html", type=PATH, metavar="FILE", help="Write a page with the plots of all runs into FILE."),
    ),
    run_flags,
    section=RESULTS,
    examples=(
        "hydra compare runs/before runs/after",
        "hydra compare runs/before runs/after --fail-if 'avg_rx_rate_pps < 0.95 * base'",
        "hydra compare --run 'zmqrate --subscribers 30' --run 'zmqrate --subscribers 30 --sndhwm 100000' --repeat 5",
    ),
)
@click.pass_context
def compare(
    context: click.Context,
    /,
    runs: tuple[Path, ...],
    commands: tuple[str, ...],
    figure: str | None,
    html: Path | None,
    **flags: Any,
) -> None:
    """Compare runs with the first one, row by row.

    The runs are directories, or are measured first: --run names a command for each run, and Hydra interleaves their
    repeats. A folder of compared runs stands for all runs in it.
    """
    measured = bool(commands) or flags["resume"] is not None
    _refuse_other_way(context, measured=measured)
    if measured:
        from hydra.cli.compared_sides import sides_of_commands
        from hydra.cli.interleaved_runs import run_interleaved
        from hydra.store.run_folders import resumed_folder

        root = context.find_root().command
        sides = sides_of_commands(commands, root) if commands and isinstance(root, click.Group) else {}
        run_interleaved(sides, overrides(), {**flags, "commands": commands}, resumed_folder(flags))

    from hydra.cli.error_exit import failed_if
    from hydra.report.comparison_report import compare_runs, document, json_text
    from hydra.report.table import fitted, terminal_width
    from hydra.store.run_folders import refuse_unwritable

    if html is not None:
        refuse_unwritable(html, "--html")
    compared, lines = compare_runs(runs, figure or "", flags["fail_if"])
    if html is not None:
        from hydra.jupyter.command import write_comparison

        click.echo(str(write_comparison(compared, html)), err=True)
    text = document(compared, whole=flags["whole"])
    click.echo(json_text(compared) if flags["as_json"] else fitted(text, terminal_width()), nl=False)
    sys.exit(failed_if(lines, EXIT_GOOD))


_OF_FOLDERS: Final = ("runs", "figure", "html", "whole")
"""Parameters of a comparison of runs that are there."""
_OF_BOTH: Final = ("fail_if", "as_json")


def _refuse_other_way(context: click.Context, *, measured: bool) -> None:
    """Rejects flags of measuring for runs that are there, and the reverse.

    Raises:
        UsageError: such a flag is given.
    """
    for param in context.command.get_params(context):
        name = str(param.name)
        if name in _OF_BOTH or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if not measured and name not in _OF_FOLDERS:
            raise UsageError(f"{param.opts[0]} is for runs that are measured", "name commands with --run")
        if measured and name in _OF_FOLDERS:
            what = "run directories are" if name == "runs" else f"{param.opts[0]} is"
            raise UsageError(f"{what} for runs that are there", "compare the folder afterwards: hydra compare DIR")


_REASON: Final = 200
"""The maximum number of characters of the reason that a list of runs shows."""


@click.command(cls=Command, section=RESULTS, examples=("hydra runs", "hydra runs /data/runs --json"))
@click.argument("folder", type=PATH, default=Path("runs"))
@json_flag
def runs(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER, newest first.

    FOLDER is runs unless you name one. The list shows how each run ended, and the lines below show why. A run with ⚠
    has a row that is not clean (the system did not carry what was requested), or it did not keep its objectives (column
    slo). On a host of a run with *, other processes used CPU, no CPU was free, or the machine changed.
    """
    from hydra.store.run_folders import refuse_no_folder

    refuse_no_folder(folder)

    import json
    from dataclasses import replace

    from hydra.report.figure_texts import OF_RUNS, marks_line
    from hydra.report.run_catalog import SETUP, catalog, elsewhere, mark_of
    from hydra.report.run_setup import setup_line, setup_object
    from hydra.report.table import fitted, tabled, terminal_width

    entries = catalog(folder)
    marks = [mark_of(entry["clean"], entry["disturbed"], entry["slo"]) for entry in entries]
    short = [
        {
            **{"began (UTC)" if key == "began" else key: value for key, value in entry.items()},
            "began (UTC)": entry["began"][:16].replace("T", " "),
            "ended": f"{mark} {entry['ended']}".strip(),
        }
        for entry, mark in zip(entries, marks, strict=True)
    ]
    if as_json:
        click.echo(json.dumps([{**entry, SETUP: setup_object(entry[SETUP])} for entry in entries], indent=2))
        return
    if entries:
        runs_ = [
            key
            for key in short[0]
            if key not in ("clean", "disturbed", "why", SETUP) and any(entry[key] for entry in short)
        ]
        click.echo(tabled([{key: entry[key] for key in runs_} for entry in short], terminal_width()))
    measured = [replace(setup_line(entry[SETUP]), before=f"- {entry['run']}: ") for entry in entries]
    # A line shows only the beginning of a reason; JSON has all of it.
    reasons = [
        f"- {entry['run']}: {shorten(entry['why'], _REASON, placeholder=' …')}" for entry in entries if entry["why"]
    ]
    if line := marks_line(marks, OF_RUNS):
        click.echo("\n" + fitted(line, terminal_width()))
    if lines := [fitted([each], terminal_width()).rstrip("\n") for each in measured if each]:
        click.echo("\n" + "\n".join(lines))
    if reasons:
        click.echo("\n" + fitted("\n".join(reasons), terminal_width()))
    for line in elsewhere(folder, any(entries)):
        click.echo(line)


@click.command(
    cls=Command,
    section=RESULTS,
    examples=("hydra serve", "hydra serve runs --port 8000 --open"),
)
@click.argument("folder", type=PATH, default=Path("runs"))
@grouped(
    OUTPUT,
    click.option(
        "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on (default: any free port)."
    ),
    click.option(
        "--host",
        type=WORD,
        default="127.0.0.1",
        show_default=True,
        help="Loopback address to listen on; others are rejected.",
    ),
    click.option("--open", "opened", is_flag=True, help="Also open the page in a browser."),
)
def serve(folder: Path, port: int, host: str, opened: bool) -> None:
    """Show the runs in FOLDER in a browser.

    FOLDER is runs unless you name one. The pages are reports and comparisons, for browsers on this machine. Reports are
    made when you open them, and kept in the user's cache; FOLDER is not changed. Ctrl-C ends hydra serve.
    """
    from hydra.serve.serve_command import serve_runs

    serve_runs(folder, host, port, opened=opened)


@click.command(
    cls=Command,
    section=RESULTS,
    examples=("hydra fit runs/first", "hydra fit runs/first --subscribers 10000,100000 --plot fit.html"),
)
@click.argument("run", type=PATH)
@grouped(
    WORKLOAD,
    click.option(
        "--subscribers",
        "--clients",
        "counts",
        type=COUNTS,
        default=[],
        help="Subscriber counts to predict (default: 2, 5, 10 times the largest).",
    ),
)
@grouped(
    OUTPUT,
    click.option(
        "--plot",
        "page",
        type=PATH,
        metavar="FILE.html",
        help="Write a plot of the points, the law and its interval into FILE.html.",
    ),
    json_flag,
)
def fit(run: Path, counts: list[int], page: Path | None, as_json: bool) -> None:
    """Predict other subscriber counts from a run.

    The command fits the scalability law and linear budgets to the run in RUN. RUN needs at least six subscriber counts.
    Each prediction has the 95 % interval of a new measurement. For each subscriber count the command names the host
    resource that ends first.
    """
    from hydra.cli.fit_command import fit_run

    fit_run(run, counts, page, as_json)
