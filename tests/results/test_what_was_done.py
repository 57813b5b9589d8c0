"""Rows state what was done in place of what was asked for: the batch reached, the pacing, the share of a group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.kafkatest.settings import KafkaSettings
from hydra.model import NativeSpec, Rate, Scenario, Settings, SettingValue, TableKind, with_values
from hydra.report import tables
from hydra.report.row_warnings import warnings_of
from hydra.report.send_warnings import BatchNotFilled
from hydra.sweep import Row
from hydra.sweep.grid import GridSweep
from tests.measure.observations import observed
from tests.suite.figures import figures

GOOD: Row = {
    "clients": 30, "msg_batch": 100, "avg_tx_rate_pps": 5780.5911, "avg_rx_rate_pps": 3486.2949,
    "client_loss_pct": 0.0, "failed_clients": 0, "total_tx": 57806, "total_rx": 57806.0, "aggregate_pps": 104588.8,
    "rx_clients": 30, "requested_rate": "max", "passed": True, "loss_target_pct": 0.5, "status": "ok", "reason": "",
}  # fmt: skip


def grid(table: TableKind = "batch") -> Scenario:
    sweep = GridSweep(clients=(30,), duration_s=10.0)
    return Scenario("kafka-batch", "kafka", "c", table, sweep, Settings(rate=6000.0))


def batched(rate: Rate, *, reached: float = 216.0, sent: int = 50_000, **more: SettingValue) -> list[str]:
    """The warnings about batches of a row in which 1,000 messages a batch were asked for."""
    sweep = GridSweep(clients=(30,), duration_s=10.0, vary={"msg_batch": (1000,)})
    settings = with_values(Settings(rate=rate, system=KafkaSettings(msg_batch=1000)), more)
    scenario = Scenario("kafka-batch", "kafka", "c", "batch", sweep, settings)
    row: Row = {
        **GOOD, "requested_rate": rate, "msg_batch": 1000, "records_per_batch": reached, "sent": sent,
        "batch_bytes": 1000 * 24 + 70_000,
    }  # fmt: skip
    return [str(each) for each in warnings_of(row, scenario, [row]) if isinstance(each, BatchNotFilled)]


@pytest.mark.parametrize(
    ("warnings", "is_warned"),
    [
        (batched("max"), True),
        (batched("max", reached=610.0), True),
        (batched("max", reached=950.0), False),
        # 6,000/s give 1,000 messages in 167 ms.
        (batched(6000.0), False),
        (batched(6000.0, linger_ms=100.0), False),
        (batched(6000.0, linger_ms=200.0), True),
        (batched(6000.0, linger_ms=200.0, partitions=3), False),
        # No batch can have more messages than there were.
        (batched("max", reached=200.0, sent=200), False),
    ],
)
def test_a_batch_that_should_have_been_full_has_a_warning(warnings: list[str], is_warned: bool) -> None:
    assert bool(warnings) is is_warned
    assert all("msg_batch asks for 1,000" in text for text in warnings)


def test_the_batch_reached_stands_beside_the_one_asked_for() -> None:
    text = tables.RunTables(grid(), [{**GOOD, "records_per_batch": 21.44}]).markdown
    assert "100 (reached 21.4)" in text
    assert "reached" not in tables.RunTables(grid(), [GOOD]).markdown


def test_bursty_pacing_is_in_the_row_and_below_the_table() -> None:
    assert figures(replace(observed(), pacing="bursty"))["pacing"] == "bursty"
    assert "pacing" not in figures(observed())
    bursty = replace(grid("fixed"), native=NativeSpec(pacing="bursty"))
    text = tables.RunTables(bursty, [GOOD]).markdown
    assert "Pacing: bursty; publishers send all messages of a second at its start." in text
    assert "Pacing" not in tables.RunTables(grid("fixed"), [GOOD]).markdown


def test_the_figures_of_a_member_of_a_group_are_named_as_its_share() -> None:
    text = tables.RunTables(grid("fixed"), [{**GOOD, "group": "g"}]).markdown
    assert "A consumer group shares the messages: Rx rate and Rx total are the mean share of a member" in text
    assert "consumer group" not in tables.RunTables(grid("fixed"), [GOOD]).markdown
