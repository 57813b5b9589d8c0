"""Tx and Rx of a Kafka run are what the broker's log grew by, and what the test's consumer reads in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from hydra.events.run_events import StepStored
from hydra.kafkatest.broker import LocalBroker
from hydra.store.database import DATABASE, RunStore
from tests.integration.command import background, events
from tests.suite.waiting import LONG_S, SOON_S, wait_until
from tests.truth.conftest import require
from tests.truth.kafka_witness import LogWitness
from tests.truth.scale import cases

pytestmark = pytest.mark.tier("all")

IMPLEMENTATIONS = ("kafka-python", "confluent-kafka", "native")
EACH_ONCE = [("kafka-python", "1", "4000"), ("confluent-kafka", "0", "4000"), ("native", "all", "4000")]
EVERY_WAY = [way for way in product(IMPLEMENTATIONS, ("0", "1", "all"), ("4000", "max")) if way not in EACH_ONCE]


def stored_ns(run: Path) -> int:
    """When the first step was stored: nothing else is sent before (Unix time)."""
    with closing(sqlite3.connect(run / DATABASE, timeout=SOON_S)) as db:
        ((stored,),) = db.execute("SELECT time_ns FROM events WHERE kind = 'stored' ORDER BY id LIMIT 1")
    return int(stored)


@pytest.mark.parametrize(("implementation", "acks", "rate"), cases(EACH_ONCE, EVERY_WAY))
def test_tx_is_the_growth_of_the_log_and_rx_is_what_an_independent_consumer_reads(
    tmp_path: Path, broker: LocalBroker, implementation: str, acks: str, rate: str
) -> None:
    require(implementation)
    run = tmp_path / "run"
    # Without a warm-up, only the step's own probes stand before its messages. The second step is there to keep the
    # topic until it is read, while the run is made to stand still.
    arguments = (
        "kafka-fixed", "--client", implementation, "--clients", 2, "--repeat", 2, "--rate", rate, "--duration", 0.5,
        "--message-size", 100, "--partitions", 3, "--set", f'settings.acks="{acks}"', "--set", "warmup_s=0",
        "--bootstrap", broker.bootstrap, "--out", run,
    )  # fmt: skip
    with closing(LogWitness(broker.bootstrap)) as witness, background(*arguments, log=tmp_path / "log") as command:
        wait_until(lambda: events(run, StepStored), "the first row", LONG_S)
        command.process.suspend()
        wait_until(lambda: witness.looked_after(stored_ns(run)), "a look at the log")
        read = witness.read()
        grown = witness.grown(stored_ns(run), read)
        command.process.resume()
        assert command.wait() == 0, command.output()
    with RunStore.open(run) as store:
        result = store.results()[0]
        rows = store.clients(result.epoch)

    # The two witnesses agree with each other, and none of the messages is there twice.
    assert grown == read.records[result.epoch] == len(read.sequences[result.epoch]) > 0
    figures = result.figures
    assert (figures["total_tx"], figures["total_rx"], figures["log_growth"]) == (grown, grown, grown)
    assert (figures["client_loss_pct"], figures["failed_clients"], figures["undrained"]) == (0, 0, 0)
    (publisher,) = (row for row in rows if row["role"] == "publisher")
    assert (publisher["messages"], publisher["in_window"]) == (grown, grown)
    assert [row["messages"] for row in rows if row["role"] == "subscriber"] == [grown, grown]
