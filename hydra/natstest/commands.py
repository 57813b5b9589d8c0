"""``hydra nats-rate`` and ``hydra nats-fixed``."""

from __future__ import annotations

from typing import Any, Final, get_args

import click

from hydra.natstest.footprints import IMPLEMENTATIONS
from hydra.natstest.settings import AckPolicy, Consumer, Mode, Storage
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

servers_flag: Final = keyed(
    "--servers",
    key="nats.servers",
    type=WORD,
    metavar="HOST:PORT,…",
    help="Servers of your own (default: one comes along).",
)


def _chosen(flag: str, key: str, words: Any, text: str) -> Any:
    return keyed(flag, key=key, type=click.Choice(get_args(words)), help=text)


_nats_flags: Final = flags(
    servers_flag,
    _chosen("--mode", "settings.mode", Mode, "core delivers to whoever listens; jetstream keeps a stream."),
    _chosen("--storage", "settings.storage", Storage, "jetstream: where the stream is kept."),
    _chosen("--consumer", "settings.consumer", Consumer, "jetstream: how subscribers get the stream's messages."),
    _chosen("--ack-policy", "settings.ack_policy", AckPolicy, "jetstream: whether subscribers acknowledge messages."),
    keyed(
        "--publish-acks/--no-publish-acks",
        key="settings.publish_acks",
        default=None,
        help="jetstream: whether the stream acknowledges messages to publishers.",
    ),
    keyed("--replicas", key="nats.replicas", type=int, help="jetstream: replicas of a stream."),
    implementation_flag(list(IMPLEMENTATIONS)),
    duration_flag,
    native_flags,
)


@scenario_command("nats-rate", "nats-rate", _nats_flags, search_flags)
def nats_rate(**_: Any) -> None:
    """The highest rate that NATS carries without loss, by client count."""


@scenario_command("nats-fixed", "nats-fixed", _nats_flags, rate_flag)
def nats_fixed(**_: Any) -> None:
    """NATS at a fixed rate, by client count."""
