"""``hydra zmq-rate``, ``hydra zmq-fixed`` and ``hydra zmq-connections``."""

from __future__ import annotations

from typing import Any

import click

from hydra.options.flag_types import COUNTS
from hydra.options.help import SEARCH, flags, grouped
from hydra.options.late_commands import DerivedOption, old_name
from hydra.options.scenario_commands import scenario_command
from hydra.options.setting_flags import setting_flag, system_flags
from hydra.options.shared_flags import connections_flags, fixed_flags, held_flag, search_flags

_zmq_flags = flags(
    setting_flag("settings.burst"),
    system_flags("zmq", "rcvhwm", "subscriptions", "nodrop", "sndhwm", "publisher", "io_threads", "sndbuf", "rcvbuf"),
)


@scenario_command(
    "zmq-rate",
    "zmqrate",
    held_flag,
    grouped(
        SEARCH,
        search_flags,
        click.option(
            "--sndhwm",
            "sndhwms",
            cls=DerivedOption,
            key="sweep.search.sndhwms",
            type=COUNTS,
            help="The publisher's high-water marks in messages, each with a search of its own; 0 is unbounded.",
        ),
        click.option(
            "--no-flaky",
            is_flag=True,
            help="With --published: leave out the searches with slow and with reconnecting clients.",
        ),
    ),
    _zmq_flags,  # after the search's --sndhwm
    examples=(
        "hydra zmq-rate --subscribers 30,120 --out runs/z",
        "hydra zmq-rate --subscribers 10 --duration 2 --loss-target 0.1",
        "hydra zmq-rate --published --subscribers 30",
        "hydra zmq-rate --subscribers 30 --ladder 40 --compare implementation=pyzmq,native --repeat 5",
    ),
)
def zmq_rate(sndhwms: list[int] | None, *, no_flaky: bool, published: bool | None, **_: Any) -> dict[str, object]:
    """Find the highest rate that raw ZMQ PUB/SUB held, by subscriber count."""
    marks = sndhwms or []
    several = len(marks) > 1
    replaced: dict[str, object] = {}
    if several:
        replaced["sweep.search.sndhwms"] = marks
    elif marks:
        replaced["settings.sndhwm"] = marks[0]
    if published and (several or no_flaky):
        # With several marks this is the original's table of its C++ clients, and one column more.
        replaced["sweep.search.series"] = ["max_rate", "loss", *(["nodrop"] if several else [])]
    return replaced


@scenario_command(
    "zmq-fixed",
    "zmqfixed",
    _zmq_flags,
    fixed_flags,
    examples=(
        "hydra zmq-fixed --subscribers 10,20 --rate 1000 --duration 2",
        "hydra zmq-fixed --subscribers 30 --rate 1000 --duration 2 --compare burst=1,100",
        "hydra zmq-fixed --implementation native --subscribers 1920,7680 --rate 10",
    ),
)
def zmq_fixed(**_: Any) -> None:
    """Measure raw ZMQ PUB/SUB at a fixed rate."""


@scenario_command(
    "zmq-connections",
    "zmq-connections",
    _zmq_flags,
    connections_flags,
    examples=("hydra zmq-connections --subscribers 100 --connect-rate 50,max",),
)
def zmq_connections(**_: Any) -> None:
    """Measure how fast subscribers reach a publisher."""


zmqrate, zmqfixed = old_name(zmq_rate, "zmqrate"), old_name(zmq_fixed, "zmqfixed")
