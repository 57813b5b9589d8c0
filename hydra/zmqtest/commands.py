"""``hydra zmqrate`` and ``hydra zmqfixed``."""

from __future__ import annotations

from typing import Any

import click

from hydra.options import (
    COUNTS,
    NUMBER,
    SEARCH,
    WORKLOAD,
    DerivedOption,
    duration_flag,
    flags,
    grouped,
    rate_flag,
    scenario_command,
    search_flags,
    setting_flag,
    system_flags,
)

_zmq_flags = flags(
    setting_flag("settings.burst", "--burst", "--msg-batch"),
    system_flags("zmq", "rcvhwm", "subscriptions", "nodrop", "sndhwm", "publisher", "io_threads", "sndbuf", "rcvbuf"),
    grouped(WORKLOAD, setting_flag("publishers")),
)


@scenario_command(
    "zmqrate",
    "zmqrate",
    grouped(
        SEARCH,
        setting_flag("sweep.duration_s", "--step-seconds", type=NUMBER, help="Length of each step in seconds."),
        search_flags,
        setting_flag("sweep.search.loss_target"),
        click.option(
            "--sndhwm",
            "sndhwms",
            cls=DerivedOption,
            key="sweep.search.sndhwms",
            type=COUNTS,
            help="The publisher's high-water marks in messages, each with a search of its own; 0 is unbounded.",
        ),
        click.option(
            "--no-flaky", is_flag=True, help="Leave out the searches with slow and with reconnecting clients."
        ),
    ),
    _zmq_flags,  # after the search's --sndhwm
    examples=(
        "hydra zmqrate --clients 30,120 --step-seconds 2 --out runs/z",
        "hydra zmqrate --clients 30 --step-seconds 2 --loss-target 0.1 --no-flaky",
        "hydra zmqrate --clients 30 --compare implementation=pyzmq,native --repeat 5",
    ),
)
def zmqrate(sndhwms: list[int] | None, *, no_flaky: bool, **_: Any) -> dict[str, object]:
    """Find the highest rates of raw ZMQ PUB/SUB."""
    marks = sndhwms or []
    if len(marks) == 1:
        more: dict[str, object] = {"settings.sndhwm": marks[0]}
    elif marks:
        # The columns of the original's table of C++ clients, and one more.
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
    rate_flag,
    duration_flag,
    examples=(
        "hydra zmqfixed --clients 10,20 --rate 1000 --duration 2",
        "hydra zmqfixed --clients 30 --rate 1000 --duration 2 --compare burst=1,100",
        "hydra zmqfixed --implementation native --clients 1920,7680 --rate 10 --out runs/n",
    ),
)
def zmqfixed(**_: Any) -> None:
    """Measure raw ZMQ PUB/SUB at a fixed rate."""
