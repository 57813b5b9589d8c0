"""Tx and Rx of a ZMQ run that loses nothing are what the test's subscriber counts at its publisher."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hydra.store.database import RunStore
from tests.integration.command import background
from tests.suite.waiting import wait_until
from tests.truth.conftest import require
from tests.truth.scale import cases
from tests.truth.topic_rows import TOPICS, assert_counted_alike
from tests.truth.zmq_witness import SubWitness, data_endpoint

pytestmark = pytest.mark.tier("all")

# Nothing is dropped, neither for the run's subscribers nor for ours: queues have no bound, or the publisher waits.
UNBOUNDED = ("--set", "settings.sndhwm=0", "--set", "settings.rcvhwm=0")
WAITING = ("--nodrop",)


@pytest.mark.parametrize(
    ("rate", "size"), cases([("2000", 100)], [("20000", 24), ("5000", 1000), ("333.3", 24), ("max", 1000)])
)
def test_tx_and_rx_are_what_an_independent_subscriber_counts(
    tmp_path: Path, zmq_implementation: str, rate: str, size: int
) -> None:
    run = tmp_path / "run"
    arguments = (
        "zmqfixed", "--client", zmq_implementation, "--clients", "2,3", "--rate", rate, "--duration", 0.5,
        "--message-size", size, *(WAITING if rate == "max" else UNBOUNDED), "--set", "warmup_s=0.3", "--out", run,
    )  # fmt: skip
    with (
        background(*arguments, log=tmp_path / "log") as command,
        closing(SubWitness(data_endpoint(command))) as witness,
    ):
        assert command.wait() == 0, command.output()
        wait_until(witness.quiet, "the last message")
    seen = witness.messages
    with RunStore.open(run) as store:
        results = store.results()
        clients = {r.epoch: store.clients(r.epoch) for r in results}
    assert [r.plan.clients for r in results] == [2, 3]
    for result in results:
        tx = result.figures["total_tx"]
        # The witness was there before the step, and saw each sequence once.
        assert witness.sequences[result.epoch] == set(range(seen[result.epoch]))
        assert tx == seen[result.epoch]
        assert (result.figures["total_rx"], result.figures["client_loss_pct"]) == (tx, 0)
        got = {c["client"]: c["messages"] for c in clients[result.epoch] if c["role"] == "subscriber"}
        assert set(got.values()) == {seen[result.epoch]}
        assert len(got) == result.plan.clients


@pytest.mark.parametrize("zmq_implementation", [pytest.param("pyzmq", marks=pytest.mark.tier("test")), "native"])
def test_the_hottest_topic_has_as_many_messages_as_its_subscribers_got(tmp_path: Path, zmq_implementation: str) -> None:
    require(zmq_implementation)
    run = tmp_path / "run"
    arguments = ("zmqfixed", "--client", zmq_implementation, *TOPICS, *UNBOUNDED, "--set", "warmup_s=0.3", "--out", run)
    with (
        background(*arguments, log=tmp_path / "log") as command,
        closing(SubWitness(data_endpoint(command), bytes(4))) as witness,
    ):
        assert command.wait() == 0, command.output()
        wait_until(witness.quiet, "the last message")
    assert_counted_alike(run, witness.messages)
