"""``hydra nats-rate`` and ``hydra nats-fixed``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, get_args

import click

from hydra.options import (
    WORD,
    duration_flag,
    flags,
    implementation_flag,
    keyed,
    native_flags,
    rate_flag,
    scenario_command,
    search_flags,
)

_F = TypeVar("_F", bound=Callable[..., Any])

servers_flag: Final = keyed(
    "--servers",
    key="nats.servers",
    type=WORD,
    metavar="HOST:PORT,…",
    help="Servers of your own (default: one comes along).",
)


def _chosen_flags(command: _F) -> _F:
    """Those that take one of some words."""
    from hydra.natstest.settings import AckPolicy, Consumer, Mode, Storage

    def chosen(flag: str, words: Any, text: str) -> Callable[[_F], _F]:
        key = f"settings.{flag.strip('-').replace('-', '_')}"
        return keyed(flag, key=key, type=click.Choice(get_args(words)), help=text)

    return flags(
        chosen("--mode", Mode, "core delivers to whoever listens; jetstream keeps a stream."),
        chosen("--storage", Storage, "jetstream: where the stream is kept."),
        chosen("--consumer", Consumer, "jetstream: how subscribers get the stream's messages."),
        chosen("--ack-policy", AckPolicy, "jetstream: whether subscribers acknowledge messages."),
    )(command)


def _implementation_flag(command: _F) -> _F:
    from hydra.natstest.footprints import IMPLEMENTATIONS

    return implementation_flag(list(IMPLEMENTATIONS))(command)


_nats_flags: Final = flags(
    servers_flag,
    _chosen_flags,
    keyed(
        "--publish-acks/--no-publish-acks",
        key="settings.publish_acks",
        default=None,
        help="jetstream: whether the stream acknowledges messages to publishers.",
    ),
    keyed("--replicas", key="nats.replicas", type=int, help="jetstream: replicas of a stream."),
    _implementation_flag,
    duration_flag,
    native_flags,
)


@scenario_command(
    "nats-rate",
    "nats-rate",
    _nats_flags,
    search_flags,
    examples=(
        "hydra nats-rate --clients 10,30 --duration 2",
        "hydra nats-rate --clients 10 --mode jetstream --storage memory --servers 10.0.0.5:4222",
    ),
)
def nats_rate(**_: Any) -> None:
    """The highest rate that NATS carries without loss, by client count."""


@scenario_command(
    "nats-fixed",
    "nats-fixed",
    _nats_flags,
    rate_flag,
    examples=("hydra nats-fixed --clients 10,30 --rate 1000 --duration 2 --out runs/nats",),
)
def nats_fixed(**_: Any) -> None:
    """NATS at a fixed rate, by client count."""
