"""The flags that commands share, and how they become overrides of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from hydra.columns.names import LOSS
from hydra.config.scenario import CLIENTS, parse_set
from hydra.kafkatest.properties import parse, parse_file

_F = TypeVar("_F", bound=Callable[..., Any])


class Counts(click.ParamType[list[int]]):
    """Whole numbers with commas between them: ``30,60,120``."""

    name = "N,N,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers as a list; fails with one line where it is none."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            numbers = []
        if not numbers or any(n < 0 for n in numbers):
            self.fail(f"{value!r} is not a list of whole numbers like 30,60,120", param, ctx)
        return numbers


class Word(click.ParamType[str]):
    """Text that is not empty."""

    name = "TEXT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text; fails with one line where there is none."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return value


class FilePath(click.Path):
    """A path that is not empty: that would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails with one line where it is empty."""
        return super().convert(WORD.convert(str(value), param, ctx), param, ctx)


class RateType(click.ParamType[float | str]):
    """Messages per second, or ``max``."""

    name = "RATE|max"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The rate; fails with one line where it is none."""
        if value == "max" or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither messages per second nor max", param, ctx)


COUNTS = Counts()
RATE = RateType()
WORD = Word()
PATH = FilePath(path_type=Path)


def _flags(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    def decorate(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


master_flag = click.option(
    "--master", type=WORD, default="local", show_default=True, help="local, or the address of a Mesos master."
)

run_flags = _flags(
    click.option("--out", type=PATH, help="Run directory to make (default: runs/NAME-TIME)."),
    click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml)."),
    master_flag,
    click.option("--advertise", type=WORD, metavar="ADDRESS", help="This machine's address as Mesos agents reach it."),
    click.option(
        "--artifact", type=WORD, metavar="URL", help="A copy of the agents' archive that you serve (hydra artifact)."
    ),
    click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Replace any key of the scenario."),
    click.option("--resume", type=PATH, metavar="DIR", help="Go on with the run in DIR."),
    click.option("--repeat", type=int, metavar="N", help="Measure each row N times: mean and 95 % interval."),
    click.option(
        "--fail-if",
        "fail_if",
        multiple=True,
        metavar="EXPR",
        help=f"Exit with 3 if this is true of a row, such as '{LOSS} > 0.5'; any column of numbers can be compared.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON instead of the table."),
    click.option("--quiet", is_flag=True, help="Print warnings and the table only."),
)
"""Flags of every command that runs a scenario."""

sweep_flags = _flags(
    click.option("--clients", type=COUNTS, help="Subscriber counts."),
    click.option("--message-size", type=int, metavar="BYTES", help="Bytes of a message, its 24-byte header included."),
)
"""Flags of every command with a scenario of its own."""

kafka_flags = _flags(
    click.option("--bootstrap", type=WORD, metavar="HOST:PORT", help="Your own cluster (default: brokers come along)."),
    click.option("--kafka-prop", "kafka_props", multiple=True, metavar="KEY=VALUE", help="Any client property."),
    click.option("--kafka-prop-file", type=PATH, help="A file of them, KEY=VALUE a line: for passwords."),
    click.option("--partitions", type=int, help="Partitions of the run's topic."),
    click.option("--replication-factor", type=int, help="Replicas of the run's topic."),
    click.option("--client", type=click.Choice(CLIENTS["kafka"]), help="Client implementation."),
    click.option("--duration", type=float, metavar="SECONDS", help="Length of a step."),
)
"""Flags of the Kafka commands."""

zmq_flags = _flags(
    click.option("--client", type=click.Choice(CLIENTS["zmq"]), help="Client implementation."),
    click.option("--msg-batch", type=int, help="Messages sent back to back when the publisher is behind."),
    click.option("--rcvhwm", type=int, help="A subscriber's high-water mark in messages; 0 is unbounded."),
    click.option("--nodrop", is_flag=True, default=None, help="Wait instead of dropping (XPUB_NODROP)."),
)
"""Flags of the ZMQ commands."""

search_flags = _flags(
    click.option("--start-rate", type=float, metavar="RATE", help="Where the search for a rate begins."),
    click.option(
        "--search-width",
        type=float,
        metavar="RATIO",
        help="A search ends when the upper limit of its 95 % interval is at most this times the lower (default: 1.25).",
    ),
    click.option("--search-steps", type=int, metavar="N", help="Steps of a search at most (default: 60)."),
)
"""Flags of the commands that search for rates."""

packing_flag = click.option(
    "--clients-per-process", type=int, metavar="K", help="native: subscribers packed into one process."
)

native_flags = _flags(
    packing_flag,
    click.option("--pacing", type=click.Choice(["smooth", "bursty"]), help="native: bursty sends by whole seconds."),
)
"""Flags of what only the native clients can do, in any system."""

native_zmq_flags = _flags(
    click.option("--io-threads", type=int, help="native: libzmq's threads for input and output."),
    click.option("--sndbuf", type=int, metavar="BYTES", help="native: the kernel's send buffer."),
    click.option("--rcvbuf", type=int, metavar="BYTES", help="native: the kernel's receive buffer."),
    click.option("--transport", type=click.Choice(["tcp", "ipc"]), help="native: of the data plane."),
    click.option("--secure", is_flag=True, default=None, help="native: CURVE on the data plane."),
)
"""Flags of the native clients' ZMQ sockets."""

_NATIVE = ("clients_per_process", "pacing", "io_threads", "sndbuf", "rcvbuf", "transport", "secure")
_KEYS: Mapping[str, str] = {
    "clients": "sweep.clients",
    "duration": "sweep.duration_s",
    "message_size": "settings.message_size",
    "rate": "settings.rate",
    "linger_ms": "settings.linger_ms",
    "sndhwm": "settings.sndhwm",
    "rcvhwm": "settings.rcvhwm",
    "nodrop": "settings.nodrop",
    "bootstrap": "kafka.bootstrap",
    "partitions": "kafka.partitions",
    "replication_factor": "kafka.replication_factor",
    "client": "client",
    "start_rate": "sweep.search.start_rate",
    "search_width": "sweep.search.width",
    "search_steps": "sweep.search.steps",
    "repeat": "sweep.repeat",
    **{name: f"native.{name}" for name in _NATIVE},
}


def overrides(flags: Mapping[str, Any], sets: tuple[str, ...]) -> dict[str, object]:
    """Dotted keys and values from flags that were given, then from ``--set``, which wins.

    Raises:
        UsageError: a ``--set`` or ``--kafka-prop`` is no KEY=VALUE, or sets what a user may not.
    """
    result: dict[str, object] = {_KEYS[f]: v for f, v in flags.items() if f in _KEYS and v is not None}
    batches = flags.get("msg_batch")
    if isinstance(batches, list):
        result["sweep.vary"] = {"msg_batch": batches}
    elif batches is not None:
        result["settings.msg_batch"] = batches
    properties: dict[str, str] = {}
    if flags.get("kafka_prop_file"):
        properties |= parse_file(flags["kafka_prop_file"])
    properties |= parse(flags.get("kafka_props", ()))
    if properties:
        result["kafka.properties"] = properties
    result.update(parse_set(text) for text in sets)
    return result
