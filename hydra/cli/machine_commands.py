"""Commands that measure or check this machine."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource

from hydra.cli.measurement_commands import USUAL, scenario_argument
from hydra.options.help import MACHINE, WORKLOAD, flags, grouped
from hydra.options.late_commands import overrides
from hydra.options.scenario_commands import ScenarioCommand, values_of
from hydra.options.setting_flags import implementation_flag, packing_flag, preset_flag, setting_flag
from hydra.options.shared_flags import config_flag, json_flag, master_flag, pin_flags, set_flag


@click.command(
    cls=ScenarioCommand,
    flags=flags(
        scenario_argument(default=USUAL),
        config_flag,
        master_flag,
        grouped(
            WORKLOAD,
            setting_flag("sweep.clients", help="Subscriber counts to check (default: the scenario's)."),
        ),
        implementation_flag(),
        packing_flag,
        pin_flags,
        preset_flag,
        set_flag,
        json_flag,
    ),
    section=MACHINE,
    examples=(
        "hydra check",
        "hydra check ./mine.toml --implementation native --subscribers 1920,7680",
        "hydra check zmqrate --master 10.0.0.5:5050 --json",
    ),
)
@click.pass_context
def check(context: click.Context, /, scenario: str, as_json: bool, **_: Any) -> None:
    """Check whether a scenario fits a machine or cluster.

    The command shows what the scenario needs of this machine, and a command that removes each shortage; then the facts
    of this machine that change figures, and what other processes use of its CPU now. With --master, hydra check shows
    which roles each agent of the cluster could run, and whether every row can be placed on the agents; with --hosts,
    also what on each host changes figures. SCENARIO is zmqrate unless you name one; hydra check SCENARIO --help shows
    the flags of its system, too. The exit code is 3 if a row does not fit.
    """
    from hydra.cli.check_command import check_scenario

    named = context.get_parameter_source("scenario") is not ParameterSource.DEFAULT
    replaced, flags_ = overrides(), values_of(context)
    sys.exit(check_scenario(scenario, replaced, flags_, named=named, as_json=as_json))
