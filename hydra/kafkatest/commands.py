"""``hydra broker``: a Kafka of our own that lives on between runs. ``hydra kafka-clean``: what runs left on others."""

from __future__ import annotations

from pathlib import Path

import click

from hydra.config import load_scenario
from hydra.errors import BrokerError, UsageError
from hydra.kafkatest import daemon, properties
from hydra.kafkatest.folders import state_folder
from hydra.kafkatest.leftovers import clean
from hydra.kafkatest.records import FOLDER, Records
from hydra.kafkatest.settings import spec_of
from hydra.kafkatest.topics import Topics


@click.group()
def broker() -> None:
    """Start, stop and look at a Kafka broker that outlives a run."""


@broker.command()
def up() -> None:
    """Start the broker and print its address."""
    started = daemon.up()
    click.echo(f"broker up at {started.bootstrap} (pid {started.pid}); use it with --bootstrap {started.bootstrap}")


@broker.command()
def down() -> None:
    """Stop the broker and remove its data."""
    click.echo("broker down" if daemon.down() else "no broker was running")


@broker.command()
def status() -> None:
    """Say whether the broker runs; exit code 1 if it does not."""
    found = daemon.status()
    if found is None:
        raise BrokerError("no broker is running", "start one with hydra broker up")
    click.echo(f"broker up at {found.bootstrap} (pid {found.pid})")


@click.command("kafka-clean")
@click.option("--bootstrap", required=True, metavar="HOST:PORT", help="The cluster.")
@click.option("--kafka-prop", "properties_", multiple=True, metavar="KEY=VALUE", help="As in the run.")
@click.option("--kafka-prop-file", "file", type=click.Path(path_type=Path), help="A file of them: for passwords.")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
def kafka_clean(bootstrap: str, properties_: tuple[str, ...], file: Path | None, runs: tuple[Path, ...]) -> None:
    """Remove the topics that killed runs left on a cluster.

    Only a topic goes whose run is known to be dead: recorded by this user on this machine, or in one of the run
    directories RUNS. The others are listed, each with the reason why it stays.
    """
    if not bootstrap:
        raise UsageError("--bootstrap is empty", "name your cluster: host:port")
    # As a run would take them.
    given = (properties.parse_file(file) if file else {}) | properties.parse(properties_)
    spec = spec_of(load_scenario("kafka-fixed", {"kafka.bootstrap": bootstrap, "kafka.properties": given}))
    topics = Topics(spec.bootstrap, spec.properties, "")
    topics.reach()
    found = clean(topics, Records(state_folder() / FOLDER, *(run / FOLDER for run in runs)))
    click.echo("\n".join(map(str, found)) or f"no topic of Hydra's is at {bootstrap}")
