"""``hydra zmqrate`` and ``hydra zmqfixed``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hydra.options import (
    COUNTS,
    PERCENT,
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
    keyed("--publishers", key="publishers", type=int, metavar="N", help="How many publish, each at the rate."),
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
    keyed("--sndbuf", key="native.sndbuf", type=int, metavar="BYTES", help="native, zmtp: the kernel's send buffer."),
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
)


@scenario_command(
    "zmqrate",
    "zmqrate",
    _zmq_flags,
    click.option("--sndhwm", "sndhwms", type=COUNTS, help="High-water marks to search at; 0 is unbounded."),
    keyed(
        "--step-seconds",
        "duration",
        key="sweep.duration_s",
        type=float,
        metavar="SECONDS",
        help="Length of a step (default: 60).",
    ),
    search_flags,
    keyed(
        "--loss-target",
        key="sweep.search.loss_target",
        type=PERCENT,
        metavar="PERCENT",
        help="Loss below which a rate passes (default: 0.5).",
    ),
    click.option("--no-flaky", is_flag=True, help="Leave out the slow and the reconnecting clients."),
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
)
def zmqfixed(**_: Any) -> None:
    """Raw ZMQ PUB/SUB at a fixed rate, by client count."""
