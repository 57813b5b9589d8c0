"""The flags that commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from hydra.options.flag_types import PATH, RATES, WORD, Duration, FiniteFloatRange, ListenAddress, OtlpUrl
from hydra.options.help import (
    CLUSTER,
    COMPARISON,
    EXPERIMENT,
    OBJECTIVES,
    OUTPUT,
    RUN,
    SEARCH,
    WORKLOAD,
    flags,
    grouped,
)
from hydra.options.late_commands import keyed
from hydra.options.setting_flags import setting_flag

_F = TypeVar("_F", bound=Callable[..., Any])

_WITHIN: Final = "Time from when a subscriber is due to connect until it counts as not let in, such as 5s."

KEY_VALUE: Final = "KEY=VALUE"
"""The metavar of flags whose value may be a secret."""
SET: Final = "--set"
TYPED: Final = "HYDRA_TYPED"
"""The environment variable that passes the typed arguments, as JSON, to a command that runs elsewhere."""

# --- of a run ---------------------------------------------------------------------------------------------------------

_CONFIG: Final = (
    "Cluster file (default: conf/hydra.toml, in the source tree or, of an installed Hydra, in its package hydra)."
)
config_flag = grouped(CLUSTER, click.option("--config", type=PATH, help=_CONFIG))

_MASTER: Final = ("--master", "--engine")

master_flag = grouped(CLUSTER, click.option(*_MASTER, type=WORD, show_default="local"))
"""The flag ``--master`` of runs; its help lists the engines (``hydra.options.plugin_commands.add_flags``)."""
_OF_A_RUN: Final = "Cluster, as named by --master of a run."
cluster_flag = grouped(CLUSTER, click.option(*_MASTER, type=WORD, help=_OF_A_RUN))
"""The same flag for commands that list or delete what runs have left on a cluster."""
own_cluster_flag = grouped(CLUSTER, click.option(*_MASTER, type=WORD, required=True, help=_OF_A_RUN))
"""The same flag for an engine's own commands."""

agents_flags: Final = (
    click.Option(["--advertise"], type=WORD, metavar="ADDRESS", help="Address at which agents reach this machine."),
    click.Option(
        ["--artifact"],
        type=WORD,
        metavar="URL",
        help="URL of an archive of programs for agents that you serve (hydra artifact).",
    ),
)
"""Flags of engines whose agents fetch the programs from this machine."""

set_flag = grouped(
    RUN,
    click.option(SET, "sets", multiple=True, metavar=KEY_VALUE, help="Replace a key of the scenario; can be repeated."),
)

json_flag = grouped(OUTPUT, click.option("--json", "as_json", is_flag=True, help="Print JSON."))


def _fail_if_flag(command: _F) -> _F:
    from hydra.measure.traffic_columns import LOSS

    about = f"Exit with 3 if this holds for a row, such as '{LOSS} > 0.5', with any numeric column; can be repeated."
    return click.option("--fail-if", "fail_if", multiple=True, metavar="EXPR", help=about)(command)


run_flags = flags(
    grouped(RUN, click.option("--out", type=PATH, help="Run directory to make (default: runs/NAME-TIME).")),
    config_flag,
    master_flag,
    set_flag,
    grouped(
        RUN,
        click.option("--resume", type=PATH, metavar="DIR", help="Continue the run in DIR."),
        setting_flag("sweep.repeat"),
        click.option("--yes", is_flag=True, help="Do not ask before a run of more than an hour."),
    ),
    grouped(
        OUTPUT,
        _fail_if_flag,
        click.option("--strict", is_flag=True, help="Exit with 3 if a row is not clean (marked with ⚠)."),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="Print rows and warnings as JSON instead of the table (see hydra schema).",
        ),
        click.option("--quiet", is_flag=True, help="Print only warnings and the table."),
        click.option("--plain", is_flag=True, help="Print plain lines instead of the live view."),
        click.option(
            "--prometheus",
            type=ListenAddress(),
            help="Serve metrics for Prometheus at this address (:PORT can be reached from this machine only).",
        ),
        click.option(
            "--otlp", type=OtlpUrl(), help="Send metrics to the OpenTelemetry receiver at URL (OTLP over HTTP)."
        ),
    ),
)
"""Flags of every command that runs a scenario; ``plugin_commands.add_flags`` adds those of engines."""

_SHOWN: Final = ("yes", "fail_if", "strict", "as_json", "quiet", "plain", "prometheus", "otlp", "interleave")


def shown(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The values, by name, of the flags that select neither the scenario nor the cluster: output and order."""
    return {name: flags[name] for name in _SHOWN if name in flags}


interleave_flag = grouped(
    COMPARISON,
    click.option(
        "--interleave/--no-interleave",
        default=None,
        help="Interleave the repeats of the compared runs (default), or measure one run after the other.",
    ),
)

comparing_flags = flags(
    grouped(
        COMPARISON,
        click.option(
            "--compare",
            "compared",
            type=WORD,
            metavar="SETTING=A,B,…",
            help="Measure with each of these values, interleaved, and compare each run with the first one: see hydra "
            "compare. A,B,… without a setting are implementations.",
        ),
    ),
    interleave_flag,
)
"""Flags of every command that runs a scenario, but not of those that run experiments."""

# --- of published experiments -----------------------------------------------------------------------------------------

experiment_flags = grouped(
    EXPERIMENT,
    click.option(
        "--scale",
        type=FiniteFloatRange(min=0, max=1000, min_open=True),
        metavar="X",
        help="Factor of the published record counts and durations (default: the experiment's); 1 is the original.",
    ),
)
"""Flags of every command that runs experiments."""

name_argument = click.argument("experiment", required=False, metavar="[NAME]", default="")
list_flag = grouped(
    EXPERIMENT,
    click.option("--list", "listed", flag_value="experiments", help="List the experiments and run none."),
)
presets_flag = grouped(
    EXPERIMENT,
    click.option("--presets", "listed", flag_value="presets", help="Show what each preset sets and why."),
)

# --- of the workload --------------------------------------------------------------------------------------------------


published_flag = grouped(WORKLOAD, setting_flag("published"))
"""A flag of every scenario with the values of a published sweep."""


def _pin_flag(role: str) -> Callable[[_F], _F]:
    about = f"CPUs of the {role}s' processes, such as 0-3,8; `apart`: cores that no other role uses."
    return setting_flag(f"{role}.pin", f"--{role}-pin", help=about, metavar="CPUS")


pin_flags = grouped(CLUSTER, *map(_pin_flag, ("publisher", "server", "subscriber")))
"""Flags of every command that runs or checks a scenario."""

sweep_flags = flags(
    grouped(
        WORKLOAD,
        setting_flag("sweep.clients"),
        setting_flag("publishers"),
        *(setting_flag(f"settings.{name}") for name in ("message_size", "message_sizes")),
        *(setting_flag(f"settings.{name}") for name in ("payload", "payload_ratio", "payload_file")),
        *(setting_flag(f"settings.{name}") for name in ("topics", "topic_skew", "topics_per_client", "wildcard")),
    ),
    pin_flags,
)
"""Flags of every command that is for one scenario."""

rate_flag = grouped(WORKLOAD, setting_flag("settings.rate"))
duration_flag = grouped(WORKLOAD, setting_flag("sweep.duration_s"))
fixed_flags = flags(duration_flag, rate_flag, grouped(WORKLOAD, setting_flag("settings.connect_rate")))
"""The flags of commands that measure at a given rate, before which subscribers may connect at a given rate."""
connections_flags = grouped(
    WORKLOAD,
    keyed(
        "--connect-rate",
        key="sweep.vary.connect_rate",
        type=RATES,
        help="Connect rates to try, in clients a second, or max.",
    ),
    setting_flag("settings.connect_within_s", "--connect-within", type=Duration("s"), help=_WITHIN),
)
"""The flags of commands that measure connecting."""

slo_flags = flags(
    grouped(
        WORKLOAD,
        setting_flag("settings.rate", help="Messages/s of each publisher; with --load the highest rate."),
        setting_flag("sweep.clients", help="Number of subscribers."),
        setting_flag("publishers"),
        setting_flag("sweep.duration_s", help="Length of the step, such as 90s, 10min or 1h."),
        setting_flag("load.shape"),
    ),
    grouped(
        OBJECTIVES,
        *(setting_flag(f"slo.{name}_ms") for name in ("p50", "p90", "p99", "p999", "max")),
        *(setting_flag(f"slo.{name}") for name in ("loss_pct", "recovery_s", "stall_s")),
    ),
    pin_flags,
)
"""Flags of ``hydra slo``."""


def kind_flags(key: str) -> Callable[[_F], _F]:
    """The flags of a kind of sweep, by its key."""

    def decorate(command: _F) -> _F:
        from hydra.sweep import kind_with

        kind = kind_with([key])
        return grouped(SEARCH if kind.spec.decided else WORKLOAD, *map(setting_flag, kind.flags))(command)

    return decorate


search_flags = kind_flags("held")
"""Flags of the commands that find rates."""
_CONFIRM: Final = "How long a rate has to be held, such as 60s."
held_flag = grouped(WORKLOAD, setting_flag("sweep.duration_s", "--duration", "--confirm", help=_CONFIRM))
"""The flag of these commands for the length of a step."""
