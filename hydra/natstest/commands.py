"""``hydra nats-rate``, ``hydra nats-fixed`` and ``hydra nats-connections``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from hydra.options.flag_types import WORD
from hydra.options.help import flags
from hydra.options.late_commands import SeveralKeysOption
from hydra.options.scenario_commands import scenario_command
from hydra.options.setting_flags import system_flags
from hydra.options.shared_flags import connections_flags, fixed_flags, held_flag, search_flags


def _context(name: str) -> Mapping[str, object]:
    from hydra.natstest.context import values_of

    return values_of(name)


_nats_flags = flags(
    system_flags("nats", "servers", "mode", "storage", "consumer", "ack_policy", "publish_acks"),
    click.option(
        "--nats-context",
        cls=SeveralKeysOption,
        read=_context,
        type=WORD,
        metavar="NAME",
        help="Context that the command nats has stored: servers, login and files; other flags have precedence.",
    ),
)


@scenario_command(
    "nats-rate",
    "nats-rate",
    _nats_flags,
    held_flag,
    search_flags,
    examples=(
        "hydra nats-rate --subscribers 10,30 --duration 2",
        "hydra nats-rate --subscribers 10 --mode jetstream --storage memory --servers 10.0.0.5:4222",
    ),
)
def nats_rate(**_: Any) -> None:
    """Find the highest rate that NATS held, by subscriber count."""


@scenario_command(
    "nats-fixed",
    "nats-fixed",
    _nats_flags,
    fixed_flags,
    examples=("hydra nats-fixed --subscribers 10,30 --rate 1000 --duration 2 --out runs/nats",),
)
def nats_fixed(**_: Any) -> None:
    """Measure NATS at a fixed rate."""


@scenario_command(
    "nats-connections",
    "nats-connections",
    _nats_flags,
    connections_flags,
    examples=("hydra nats-connections --subscribers 100,1000 --connect-rate 100,max",),
)
def nats_connections(**_: Any) -> None:
    """Measure how fast NATS lets clients in."""
