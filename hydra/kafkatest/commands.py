"""The commands that measure Kafka, ``hydra kafka broker``, and ``hydra kafka-clean``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from hydra.errors import ServerError, UsageError
from hydra.options.flag_types import PATH
from hydra.options.help import SYSTEM, WORKLOAD, flags, grouped
from hydra.options.late_commands import Command, CommandGroup, keyed, old_name
from hydra.options.scenario_commands import experiment_command, scenario_command
from hydra.options.setting_flags import setting_flag, system_flags
from hydra.options.shared_flags import (
    KEY_VALUE,
    connections_flags,
    duration_flag,
    fixed_flags,
    held_flag,
    rate_flag,
    search_flags,
)

_F = TypeVar("_F", bound=Callable[..., Any])

BROKERS: Final = "Kafka's brokers"
"""The section of the commands for brokers in the list of commands."""


def _bootstrap_flag(command: _F) -> _F:
    """Adds ``--servers``, which help shows before the flags of properties."""
    from hydra.kafkatest.settings import TABLE, KafkaSpec

    return setting_flag(f"{TABLE}.bootstrap", of=KafkaSpec)(command)


def _parsed(given: tuple[str, ...] | Path) -> dict[str, str]:
    from hydra.kafkatest import properties

    return properties.parse_file(given) if isinstance(given, Path) else properties.parse(given)


_property_flags = flags(
    keyed(
        "--kafka-prop",
        key="kafka.properties",
        multiple=True,
        metavar=KEY_VALUE,
        parse=_parsed,
        help="Kafka client property; can be repeated.",
    ),
    keyed(
        "--kafka-prop-file",
        key="kafka.properties",
        type=PATH,
        parse=_parsed,
        help="File with client properties, one KEY=VALUE per line (keeps passwords off the command line).",
    ),
)


_key_flags = grouped(WORKLOAD, setting_flag("settings.keys"), setting_flag("settings.key_skew"))
_kafka_flags = flags(_bootstrap_flag, _property_flags, system_flags("kafka"), _key_flags)
_experiment_flags = flags(_bootstrap_flag, _property_flags, system_flags("kafka", experiment=True))


@scenario_command(
    "kafka-batch",
    "kafka-batch",
    _bootstrap_flag,
    _property_flags,
    system_flags("kafka", varied={"msg_batch": "Messages per batch to try."}),
    _key_flags,
    duration_flag,
    rate_flag,
    examples=(
        "hydra kafka-batch --subscribers 30,60 --msg-batch 100,1000 --duration 3 --out runs/k",
        "hydra kafka-batch --subscribers 10 --servers 10.0.0.5:9092 --kafka-prop-file ./client.properties",
    ),
)
def kafka_batch(**_: Any) -> None:
    """Measure Kafka by subscriber count and producer batch."""


@scenario_command(
    "kafka-fixed",
    "kafka-fixed",
    _kafka_flags,
    fixed_flags,
    examples=(
        "hydra kafka-fixed --subscribers 10,30 --rate 1000 --duration 2",
        "hydra kafka-fixed --subscribers 10 --servers 10.0.0.5:9092 --json",
    ),
)
def kafka_fixed(**_: Any) -> None:
    """Measure Kafka at a fixed rate."""


@scenario_command(
    "kafka-connections",
    "kafka-connections",
    _kafka_flags,
    connections_flags,
    examples=("hydra kafka-connections --subscribers 100 --connect-rate 50,max",),
)
def kafka_connections(**_: Any) -> None:
    """Measure how fast Kafka lets consumers in."""


@scenario_command(
    "kafka-rate",
    "kafka-rate",
    _kafka_flags,
    held_flag,
    search_flags,
    examples=("hydra kafka-rate --subscribers 10,30 --within 30s",),
)
def kafka_rate(**_: Any) -> None:
    """Find the highest rate that Kafka held, by subscriber count."""


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
def kafka_perf(**_: Any) -> None:
    """Repeat a published experiment.

    The tables show its figures next to the published ones. --list shows the experiments, --presets the presets. Each
    experiment has its own default scale; --scale 1 is the original.
    """


@experiment_command(
    "kafka-plan",
    "kafka",
    _experiment_flags,
    one="partition-formula",
    examples=("hydra kafka-plan --target-rate 50000",),
)
def kafka_plan(**_: Any) -> None:
    """Measure how many partitions a target rate needs.

    The command ends with a run of that number of partitions. P is the rate from one producer to one partition, C the
    rate from one partition to one consumer: a rate of T needs max(T/P, T/C) partitions.
    """


@click.command(cls=CommandGroup, section=BROKERS, examples=("hydra kafka broker up", "hydra kafka broker down"))
def kafka() -> None:
    """Start, stop and inspect a Kafka broker on this machine."""


@kafka.group(
    "broker",
    cls=CommandGroup,
    examples=(
        "hydra kafka broker up",
        "hydra kafka-fixed --subscribers 10 --servers 127.0.0.1:9092",
        "hydra kafka broker down",
    ),
)
def _broker() -> None:
    """Start, stop and inspect a broker that outlives runs."""


@_broker.command(cls=Command, examples=("hydra kafka broker up",))
def up() -> None:
    """Start the broker and print its address."""
    from hydra.kafkatest import daemon

    started = daemon.up()
    click.echo(
        f"broker up at {started.bootstrap} (pid {started.pid}); use this broker with --servers {started.bootstrap}"
    )


@_broker.command(cls=Command, examples=("hydra kafka broker down",))
def down() -> None:
    """Stop the broker and remove its data."""
    from hydra.kafkatest import daemon

    click.echo("broker down" if daemon.down() else "no broker was running")


@_broker.command(cls=Command, examples=("hydra kafka broker status",))
def status() -> None:
    """Show whether the broker is running; the exit code is 1 if it is not."""
    from hydra.kafkatest import daemon

    found = daemon.status()
    if found is None:
        raise ServerError("no broker is running", "start one with hydra kafka broker up")
    click.echo(f"broker up at {found.bootstrap} (pid {found.pid})")


broker = old_name(_broker, "broker")


@click.command(
    "kafka-clean",
    cls=Command,
    section=BROKERS,
    examples=("hydra kafka-clean --servers 10.0.0.5:9092", "hydra kafka-clean --servers 10.0.0.5:9092 runs/killed"),
)
@grouped(
    SYSTEM,
    click.option(
        "--servers",
        "--bootstrap",
        "bootstrap",
        required=True,
        metavar="HOST:PORT",
        help="Address of the Kafka cluster.",
    ),
    click.option(
        "--kafka-prop",
        "properties_",
        multiple=True,
        metavar=KEY_VALUE,
        help="Kafka client property, as given to the run; can be repeated.",
    ),
    click.option(
        "--kafka-prop-file",
        "file",
        type=click.Path(path_type=Path),
        help="File with client properties, one KEY=VALUE per line.",
    ),
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
def kafka_clean(bootstrap: str, properties_: tuple[str, ...], file: Path | None, runs: tuple[Path, ...]) -> None:
    """Remove topics that killed runs left on a cluster.

    A topic is removed only if its run is known to be dead: this user's records on this machine, or one of the run
    directories RUNS, show it. Other topics of Hydra are listed, each with the reason why it stays.
    """
    if not bootstrap:
        raise UsageError("--servers is empty", "name your cluster: host:port")
    from hydra.config.scenario import load_scenario
    from hydra.kafkatest.settings import spec_of

    # The same checks as for a run.
    given = {
        "kafka.bootstrap": bootstrap,
        "kafka.properties": {**(_parsed(file) if file else {}), **_parsed(properties_)},
    }
    spec = spec_of(load_scenario("kafka-fixed", given))

    # Imported late, as it loads the libraries of Kafka's clients.
    from hydra.config.user_folders import state_folder
    from hydra.kafkatest.topic_registry import FOLDER, TopicRegistry, clean
    from hydra.kafkatest.topics import Topics

    topics = Topics(spec.bootstrap, spec.properties, "")
    topics.reach()
    found = clean(topics, TopicRegistry(state_folder() / FOLDER, *(run / FOLDER for run in runs)))
    click.echo("\n".join(map(str, found)) or f"{bootstrap} has no topic of Hydra")
