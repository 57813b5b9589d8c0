"""``hydra zmqrate`` and ``hydra zmqfixed``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hydra.options import (
    CLIENTS,
    COUNTS,
    NUMBER,
    PERCENT,
    SEARCH,
    WORKLOAD,
    Concerning,
    duration_flag,
    flags,
    grouped,
    implementation_flag,
    keyed,
    native_flags,
    rate_flag,
    scenario_command,
    search_flags,
)

_F = TypeVar("_F", bound=Callable[..., Any])


def _implementation_flag(command: _F) -> _F:
    from hydra.zmqtest.footprints import IMPLEMENTATIONS

    return implementation_flag(list(IMPLEMENTATIONS))(command)


_zmq_flags = flags(
    _implementation_flag,
    keyed(
        "--burst",
        "--msg-batch",
        key="settings.burst",
        type=int,
        help="Messages sent back to back when the publisher is behind.",
    ),
    keyed(
        "--rcvhwm",
        key="settings.rcvhwm",
        type=int,
        help="A subscriber's high-water mark in messages; 0 is unbounded.",
    ),
    grouped(
        WORKLOAD,
        keyed("--publishers", key="publishers", type=int, metavar="N", help="How many publish, each at the rate."),
    ),
    keyed(
        "--subscriptions",
        key="settings.subscriptions",
        type=click.Choice(["all", "one"]),
        help="To whom each subscriber listens: all publishers, or one of them, in turn.",
    ),
    keyed(
        "--nodrop",
        key="settings.nodrop",
        is_flag=True,
        default=None,
        help="Wait instead of dropping (XPUB_NODROP).",
    ),
    native_flags,
    grouped(
        CLIENTS,
        keyed(
            "--publisher",
            key="native.publisher",
            type=click.Choice(["native", "pyzmq"]),
            help="native, zmtp: the implementation of the publishers.",
        ),
        keyed(
            "--io-threads",
            key="native.io_threads",
            type=int,
            help="native, zmtp: libzmq's threads for input and output.",
        ),
        keyed(
            "--sndbuf", key="native.sndbuf", type=int, metavar="BYTES", help="native, zmtp: the kernel's send buffer."
        ),
        keyed(
            "--rcvbuf",
            key="native.rcvbuf",
            type=int,
            metavar="BYTES",
            help="native, zmtp: the kernel's receive buffer.",
        ),
        keyed(
            "--transport",
            key="native.transport",
            type=click.Choice(["tcp", "ipc"]),
            help="native, zmtp: of the data plane.",
        ),
        keyed("--secure", key="native.secure", is_flag=True, default=None, help="native: CURVE on the data plane."),
    ),
)


@scenario_command(
    "zmqrate",
    "zmqrate",
    _zmq_flags,
    grouped(
        SEARCH,
        keyed(
            "--step-seconds",
            "duration",
            key="sweep.duration_s",
            type=NUMBER,
            metavar="SECONDS",
            help="Length of a step.",
        ),
        search_flags,
        keyed(
            "--loss-target",
            key="sweep.search.loss_target",
            type=PERCENT,
            metavar="PERCENT",
            help="Loss in percent below which a rate passes.",
        ),
        click.option(
            "--sndhwm",
            "sndhwms",
            cls=Concerning,
            key="sweep.search.sndhwms",
            type=COUNTS,
            help="High-water marks to search at; 0 is unbounded.",
        ),
        click.option("--no-flaky", is_flag=True, help="Leave out the slow and the reconnecting clients."),
    ),
    examples=(
        "hydra zmqrate --clients 30,120 --step-seconds 2 --out runs/z",
        "hydra zmqrate --clients 30 --step-seconds 2 --loss-target 0.1 --no-flaky",
        "hydra zmqrate --clients 30 --compare-implementations pyzmq,native --repeat 5",
    ),
)
def zmqrate(sndhwms: list[int] | None, *, no_flaky: bool, **_: Any) -> dict[str, object]:
    """The highest rates that raw ZMQ PUB/SUB carries, by client count."""
    marks = sndhwms or []
    if len(marks) == 1:
        more: dict[str, object] = {"settings.sndhwm": marks[0]}
    elif marks:
        # The original's table of its C++ clients, and one column more.
        more = {"sweep.search.sndhwms": marks, "sweep.search.series": ["max_rate", "loss", "nodrop"]}
    else:
        more = {}
    if no_flaky:
        more["sweep.search.series"] = ["max_rate", "loss", *(["nodrop"] if len(marks) > 1 else [])]
    return more


@scenario_command(
    "zmqfixed",
    "zmqfixed",
    _zmq_flags,
    keyed(
        "--sndhwm",
        key="settings.sndhwm",
        type=int,
        help="The publisher's high-water mark in messages; 0 is unbounded.",
    ),
    rate_flag,
    duration_flag,
    examples=(
        "hydra zmqfixed --clients 10,20 --rate 1000 --duration 2",
        "hydra zmqfixed --implementation native --clients 1920,7680 --rate 10 --out runs/n",
    ),
)
def zmqfixed(**_: Any) -> None:
    """Raw ZMQ PUB/SUB at a fixed rate, by client count."""
