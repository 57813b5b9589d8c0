"""Commands that tell of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE
from hydra.options import (
    CLIENTS,
    COUNTS,
    WORKLOAD,
    Command,
    Counts,
    config_flag,
    flags,
    grouped,
    implementation_flag,
    json_flag,
    keyed,
    overrides,
    packing_flag,
    preset_flag,
    set_flag,
)
from hydra.options.help import MACHINE
from hydra.run.alike import OfScenario, replaced_by
from hydra.shell.arguments import USUAL, scenario_argument


@click.command(
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


@click.command(
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
