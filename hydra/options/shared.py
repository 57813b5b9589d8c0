"""The flags that commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, get_args

import click

from hydra.options.command import keyed
from hydra.options.help_sections import (
    CLIENTS,
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
from hydra.options.types import COUNTS, NUMBER, PATH, RATE, WORD, Duration, Finite, Listening, OtlpUrl

_F = TypeVar("_F", bound=Callable[..., Any])

KEY_VALUE: Final = "KEY=VALUE"
"""The metavar of flags behind whose key a secret may stand."""
SET: Final = "--set"

# --- of a run ---------------------------------------------------------------------------------------------------------

config_flag = grouped(CLUSTER, click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml)."))

_MASTER: Final = ("--master", "--engine")

master_flag = grouped(CLUSTER, click.option(*_MASTER, type=WORD, default="local", show_default=True))
"""Its help is what the engines say (``hydra.options.plugin_commands.add_flags``)."""
cluster_flag = grouped(
    CLUSTER, click.option(*_MASTER, type=WORD, required=True, help="The cluster, as a run's --master names it.")
)
"""The same of commands that are for what runs have left on a cluster."""

set_flag = grouped(
    RUN, click.option(SET, "sets", multiple=True, metavar=KEY_VALUE, help="Replace any key of the scenario.")
)

json_flag = grouped(OUTPUT, click.option("--json", "as_json", is_flag=True, help="Print JSON."))


def _fail_if_flag(command: _F) -> _F:
    from hydra.measure.column_names import LOSS

    about = f"Exit with 3 if this is true of a row, such as '{LOSS} > 0.5'; any column of numbers can be compared."
    return click.option("--fail-if", "fail_if", multiple=True, metavar="EXPR", help=about)(command)


run_flags = flags(
    grouped(RUN, click.option("--out", type=PATH, help="Run directory to make (default: runs/NAME-TIME).")),
    config_flag,
    master_flag,
    set_flag,
    grouped(
        RUN,
        click.option("--resume", type=PATH, metavar="DIR", help="Go on with the run in DIR."),
        keyed(
            "--repeat",
            key="sweep.repeat",
            type=int,
            metavar="N",
            help="Measure each row N times: mean and 95 % interval.",
        ),
    ),
    grouped(
        OUTPUT,
        _fail_if_flag,
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="Print rows and warnings as JSON instead of the table (see hydra schema).",
        ),
        click.option("--quiet", is_flag=True, help="Print warnings and the table only."),
        click.option("--plain", is_flag=True, help="Print plain lines instead of the live view of a terminal."),
        click.option(
            "--prometheus", type=Listening(), help="Serve figures for Prometheus there (:PORT: this machine only)."
        ),
        click.option("--otlp", type=OtlpUrl(), help="Send figures to the OpenTelemetry receiver at URL (OTLP, HTTP)."),
    ),
)
"""Flags of every command that runs a scenario; ``plugin_commands.add_flags`` adds those of engines."""

comparing_flags = grouped(
    COMPARISON,
    click.option(
        "--compare-implementations",
        "compared",
        type=WORD,
        metavar="A,B,…",
        help="Measure each of these implementations in turn, and compare them with the first: see hydra compare.",
    ),
    click.option(
        "--interleave/--no-interleave",
        default=None,
        help="Whether their repeats take turns (default), or one is measured after the other.",
    ),
)
"""Flags of every command that runs a scenario, and no experiment."""

preset_flag = grouped(
    RUN,
    keyed(
        "--preset",
        key="preset",
        type=WORD,
        metavar="GOAL",
        help="The settings that are recommended for a design goal; other flags go before it.",
    ),
)

# --- of published experiments -----------------------------------------------------------------------------------------

experiment_flags = grouped(
    EXPERIMENT,
    click.option(
        "--scale",
        type=Finite(min=0, max=1000, min_open=True),
        metavar="X",
        help="Of the published numbers of records and lengths (default: the experiment's own); 1 is the original.",
    ),
)
"""Flags of every command that runs experiments."""

name_argument = click.argument("experiment", required=False, metavar="[NAME]", default="")
list_flag = grouped(
    EXPERIMENT,
    click.option("--list", "listed", flag_value="experiments", help="List the experiments, and run none."),
)
presets_flag = grouped(
    EXPERIMENT,
    click.option("--presets", "listed", flag_value="presets", help="Show what each preset sets, and why."),
)

# --- of the workload --------------------------------------------------------------------------------------------------


def _payload_flag(command: _F) -> _F:
    from hydra.model import Payload

    about = "What follows the header: zeros, random bytes, JSON records, or the lines of a file."
    kind = click.Choice(get_args(Payload))
    return keyed("--payload", key="settings.payload", type=kind, help=about)(command)


sweep_flags = grouped(
    WORKLOAD,
    keyed("--clients", key="sweep.clients", type=COUNTS, help="Subscriber counts."),
    keyed(
        "--message-size",
        key="settings.message_size",
        type=int,
        metavar="BYTES",
        help="Bytes of a message, its 24-byte header included.",
    ),
    _payload_flag,
    keyed(
        "--payload-ratio",
        key="settings.payload_ratio",
        type=NUMBER,
        metavar="RATIO",
        help="json: how many times smaller a compressed batch is.",
    ),
    keyed("--payload-file", key="settings.payload_file", type=WORD, help="lines: the file, on the publishers' hosts."),
)
"""Flags of every command with a scenario of its own."""

rate_flag = grouped(
    WORKLOAD, keyed("--rate", key="settings.rate", type=RATE, metavar="RATE|max", help="Messages per second, or max.")
)
duration_flag = grouped(
    WORKLOAD,
    keyed(
        "--duration",
        key="sweep.duration_s",
        type=Duration("s"),
        metavar="SECONDS",
        help="Length of a step; also with a unit, such as 90s or 10min.",
    ),
)


def _load_flag(command: _F) -> _F:
    from hydra.model import LoadShape

    kind = click.Choice(get_args(LoadShape))
    return keyed("--load", key="load.shape", type=kind, help="How the rate changes; [load] has the details.")(command)


slo_flags = flags(
    grouped(
        WORKLOAD,
        keyed(
            "--rate",
            key="settings.rate",
            type=RATE,
            metavar="RATE|max",
            help="Messages per second of each publisher, at most.",
        ),
        keyed("--clients", key="sweep.clients", type=COUNTS, help="How many subscribers."),
        keyed("--publishers", key="publishers", type=int, metavar="N", help="How many publish, each at the rate."),
        keyed("--duration", key="sweep.duration_s", type=Duration("s"), help="How long, such as 90s, 10min or 1h."),
        _load_flag,
    ),
    grouped(
        OBJECTIVES,
        *(
            keyed(
                f"--{name}",
                key=f"slo.{name}_ms",
                type=Duration("ms"),
                help=f"{what} of the latency at most, like 20ms.",
            )
            for name, what in (
                ("p50", "The median"),
                ("p90", "The 90th percentile"),
                ("p99", "The 99th percentile"),
                ("p999", "The 99.9th percentile"),
                ("max", "The highest"),
            )
        ),
        keyed("--loss", key="slo.loss_pct", type=Finite(min=0), metavar="PERCENT", help="Lost messages at most."),
        keyed(
            "--recovery",
            key="slo.recovery_s",
            type=Duration("s"),
            help="How soon after each event everything is to be good again.",
        ),
        keyed(
            "--stall",
            key="slo.stall_s",
            type=Duration("s"),
            help="The longest stall to reckon with, though none was seen: shorter ones take less time to rule out.",
        ),
    ),
)
"""Flags of the command that asks whether a workload holds."""

search_flags = grouped(
    SEARCH,
    keyed(
        "--start-rate",
        key="sweep.search.start_rate",
        type=NUMBER,
        metavar="RATE",
        help="Where the search for a rate begins.",
    ),
    keyed(
        "--search-width",
        key="sweep.search.width",
        type=NUMBER,
        metavar="RATIO",
        help="A search ends when the upper limit of its 95 % interval is at most this times the lower.",
    ),
    keyed(
        "--search-steps",
        key="sweep.search.steps",
        type=int,
        metavar="N",
        help="Steps of a search at most.",
    ),
)
"""Flags of the commands that search for rates."""

# --- of clients -------------------------------------------------------------------------------------------------------


class _Several(click.Choice[str]):
    """One or more of the names, with commas in between."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return ",".join(super(_Several, self).convert(name, param, ctx) for name in str(value).split(","))


def implementations_flag(names: Sequence[str]) -> Callable[[_F], _F]:
    """``--implementation`` of an experiment: one of the names or several."""
    about = "Client implementation; several, with commas, one after the other in one table."
    return _implementation(_Several(list(names)), about)


def implementation_flag(names: Sequence[str] | None = None) -> Callable[[_F], _F]:
    """``--implementation``: one of the names, or any where the system is not known before."""
    return _implementation(click.Choice(list(names)) if names else WORD, "Client implementation.")


def _implementation(kind: click.ParamType[str], about: str) -> Callable[[_F], _F]:
    return grouped(CLIENTS, keyed("--implementation", "--client", "client", key="client", type=kind, help=about))


packing_flag = grouped(
    CLIENTS,
    keyed(
        "--clients-per-process",
        key="native.clients_per_process",
        type=int,
        metavar="K",
        help="native: subscribers packed into one process.",
    ),
)

native_flags = flags(
    packing_flag,
    grouped(
        CLIENTS,
        keyed(
            "--pacing",
            key="native.pacing",
            type=click.Choice(["smooth", "bursty"]),
            help="native: bursty sends by whole seconds.",
        ),
    ),
)
"""Flags of what only the native clients can do, in any system."""
