"""The commands that measure Kafka, ``hydra broker``, and ``hydra kafka-clean``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from hydra.errors import ServerError, UsageError
from hydra.options import (
    COUNTS,
    KEY_VALUE,
    NUMBER,
    PATH,
    SYSTEM,
    WORD,
    Command,
    Concerning,
    Group,
    duration_flag,
    experiment_command,
    flags,
    grouped,
    implementation_flag,
    implementations_flag,
    keyed,
    native_flags,
    preset_flag,
    rate_flag,
    scenario_command,
    search_flags,
)

_F = TypeVar("_F", bound=Callable[..., Any])

BROKERS: Final = "Kafka's brokers"
"""The section of the commands that look after them, in a list."""

bootstrap_flag = keyed(
    "--bootstrap",
    key="kafka.bootstrap",
    type=WORD,
    metavar="HOST:PORT",
    help="Your own cluster (default: brokers come along).",
)

_cluster_flags = flags(
    bootstrap_flag,
    click.option("--kafka-prop", "kafka_props", multiple=True, metavar=KEY_VALUE, help="Any client property."),
    click.option("--kafka-prop-file", type=PATH, help="A file of them, KEY=VALUE a line: for passwords."),
    keyed("--partitions", key="kafka.partitions", type=int, help="Partitions of the run's topic."),
    keyed("--replication-factor", key="kafka.replication_factor", type=int, help="Replicas of the run's topic."),
    preset_flag,
)


def _implementation_flag(command: _F) -> _F:
    from hydra.kafkatest.footprints import IMPLEMENTATIONS

    return implementation_flag(list(IMPLEMENTATIONS))(command)


def _implementations_flag(command: _F) -> _F:
    from hydra.kafkatest.footprints import IMPLEMENTATIONS

    return implementations_flag(list(IMPLEMENTATIONS))(command)


_experiment_flags = flags(_cluster_flags, _implementations_flag)
_sweep_flags = flags(_cluster_flags, _implementation_flag, duration_flag, native_flags)


_linger_flag = keyed(
    "--linger-ms",
    key="settings.linger_ms",
    type=NUMBER,
    metavar="MS",
    help="How long the producer waits for a batch to fill.",
)
_batch_flags = flags(keyed("--msg-batch", key="settings.msg_batch", type=int, help="Messages per batch."), _linger_flag)


@scenario_command(
    "kafka-batch",
    "kafka-batch",
    _sweep_flags,
    rate_flag,
    click.option(
        "--msg-batch",
        "batches",
        cls=Concerning,
        key="sweep.vary",
        type=COUNTS,
        help="Messages per batch to try.",
    ),
    _linger_flag,
    examples=(
        "hydra kafka-batch --clients 30,60 --msg-batch 100,1000 --duration 3 --out runs/k",
        "hydra kafka-batch --clients 10 --bootstrap 10.0.0.5:9092 --kafka-prop-file ./client.properties",
    ),
)
def kafka_batch(batches: list[int] | None, **values: Any) -> dict[str, object]:
    """Kafka's throughput by client count and producer batch."""
    return {**_properties(**values), **({"sweep.vary": {"msg_batch": batches}} if batches is not None else {})}


@scenario_command(
    "kafka-fixed",
    "kafka-fixed",
    _sweep_flags,
    rate_flag,
    _batch_flags,
    examples=(
        "hydra kafka-fixed --clients 10,30 --rate 1000 --duration 2",
        "hydra kafka-fixed --clients 10 --bootstrap 10.0.0.5:9092 --json",
    ),
)
def kafka_fixed(**values: Any) -> dict[str, object]:
    """Kafka at a fixed rate, by client count."""
    return _properties(**values)


@scenario_command(
    "kafka-rate",
    "kafka-rate",
    _sweep_flags,
    search_flags,
    _batch_flags,
    examples=("hydra kafka-rate --clients 10,30 --duration 2 --search-steps 20",),
)
def kafka_rate(**values: Any) -> dict[str, object]:
    """The highest rate that Kafka carries without any drop, by client count."""
    return _properties(**values)


@experiment_command(
    "kafka-perf",
    "kafka",
    _experiment_flags,
    examples=(
        "hydra kafka-perf --list",
        "hydra kafka-perf single-consumer --out runs/consumer",
        "hydra kafka-perf single-consumer --scale 1 --implementation kafka-python,native",
    ),
)
def kafka_perf(**values: Any) -> dict[str, object]:
    """Repeat a published experiment: its figures beside the published ones.

    --list tells the experiments, --presets what the presets set. Each runs at a scale of its own unless --scale says
    otherwise; --scale 1 is the original.
    """
    return _properties(**values)


@experiment_command(
    "kafka-plan",
    "kafka",
    _experiment_flags,
    one="partition-formula",  # experiments.plan.NAME
    examples=("hydra kafka-plan --target-rate 50000",),
)
def kafka_plan(**values: Any) -> dict[str, object]:
    """How many partitions a target rate needs, measured; then a run of as many.

    P is what one producer gives to one partition, C what one partition gives to one consumer: a rate of T needs
    max(T/P, T/C) partitions.
    """
    return _properties(**values)


def _properties(kafka_props: tuple[str, ...], kafka_prop_file: Path | None, **_: Any) -> dict[str, object]:
    given = _given(kafka_props, kafka_prop_file)
    return {"kafka.properties": given} if given else {}


def _given(pairs: tuple[str, ...], file: Path | None) -> dict[str, str]:
    from hydra.kafkatest import properties

    return (properties.parse_file(file) if file else {}) | properties.parse(pairs)


@click.command(
    cls=Group,
    section=BROKERS,
    examples=("hydra broker up", "hydra kafka-fixed --clients 10 --bootstrap 127.0.0.1:9092", "hydra broker down"),
)
def broker() -> None:
    """Start, stop and look at a Kafka broker that outlives a run."""


@broker.command(cls=Command, examples=("hydra broker up",))
def up() -> None:
    """Start the broker and print its address."""
    from hydra.kafkatest import daemon

    started = daemon.up()
    click.echo(f"broker up at {started.bootstrap} (pid {started.pid}); use it with --bootstrap {started.bootstrap}")


@broker.command(cls=Command, examples=("hydra broker down",))
def down() -> None:
    """Stop the broker and remove its data."""
    from hydra.kafkatest import daemon

    click.echo("broker down" if daemon.down() else "no broker was running")


@broker.command(cls=Command, examples=("hydra broker status",))
def status() -> None:
    """Say whether the broker runs; exit code 1 if it does not."""
    from hydra.kafkatest import daemon

    found = daemon.status()
    if found is None:
        raise ServerError("no broker is running", "start one with hydra broker up")
    click.echo(f"broker up at {found.bootstrap} (pid {found.pid})")


@click.command(
    "kafka-clean",
    cls=Command,
    section=BROKERS,
    examples=("hydra kafka-clean --bootstrap 10.0.0.5:9092", "hydra kafka-clean --bootstrap 10.0.0.5:9092 runs/killed"),
)
@grouped(
    SYSTEM,
    click.option("--bootstrap", required=True, metavar="HOST:PORT", help="The cluster."),
    click.option("--kafka-prop", "properties_", multiple=True, metavar=KEY_VALUE, help="As in the run."),
    click.option("--kafka-prop-file", "file", type=click.Path(path_type=Path), help="A file of them: for passwords."),
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
def kafka_clean(bootstrap: str, properties_: tuple[str, ...], file: Path | None, runs: tuple[Path, ...]) -> None:
    """Remove the topics that killed runs left on a cluster.

    Only a topic goes whose run is known to be dead: recorded by this user on this machine, or in one of the run
    directories RUNS. The others are listed, each with the reason why it stays.
    """
    if not bootstrap:
        raise UsageError("--bootstrap is empty", "name your cluster: host:port")
    from hydra.config.scenario import load_scenario
    from hydra.kafkatest.settings import spec_of

    # As a run would take them.
    given = {"kafka.bootstrap": bootstrap, "kafka.properties": _given(properties_, file)}
    spec = spec_of(load_scenario("kafka-fixed", given))

    # Not before it is needed: it takes the libraries of Kafka's clients.
    from hydra.kafkatest.folders import state_folder
    from hydra.kafkatest.leftovers import clean
    from hydra.kafkatest.topic_registry import FOLDER, Records
    from hydra.kafkatest.topics import Topics

    topics = Topics(spec.bootstrap, spec.properties, "")
    topics.reach()
    found = clean(topics, Records(state_folder() / FOLDER, *(run / FOLDER for run in runs)))
    click.echo("\n".join(map(str, found)) or f"no topic of Hydra's is at {bootstrap}")
