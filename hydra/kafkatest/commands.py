"""``hydra broker``: a Kafka of our own that lives on between runs."""

from __future__ import annotations

import click

from hydra.errors import BrokerError
from hydra.kafkatest import detached


@click.group()
def broker() -> None:
    """Start, stop and look at a Kafka broker that outlives a run."""


@broker.command()
def up() -> None:
    """Start the broker and print its address."""
    started = detached.up()
    click.echo(f"broker up at {started.bootstrap} (pid {started.pid}); use it with --bootstrap {started.bootstrap}")


@broker.command()
def down() -> None:
    """Stop the broker and remove its data."""
    click.echo("broker down" if detached.down() else "no broker was running")


@broker.command()
def status() -> None:
    """Say whether the broker runs; exit code 1 if it does not."""
    found = detached.status()
    if found is None:
        raise BrokerError("no broker is running", "start one with hydra broker up")
    click.echo(f"broker up at {found.bootstrap} (pid {found.pid})")
