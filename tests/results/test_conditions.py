"""Conditions of --fail-if."""

from __future__ import annotations

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import UsageError
from hydra.measure.column import Column
from hydra.report.fail_conditions import columns, conditions_met, parse
from hydra.sweep import Row

COLUMNS = {
    each.name: each
    for each in (
        *(Column("clients", heading="Clients"), Column("avg_tx_rate_pps", heading="Tx rate")),
        *(Column("avg_rx_rate_pps", heading="Rx rate"), Column("client_loss_pct", "%", heading="Loss")),
        *(Column("client_loss_pct_ci95"), Column("latency_p99_us", heading="p99"), Column("lost"), Column("passed")),
    )
}


@pytest.mark.parametrize(
    ("text", "row", "holds"),
    [
        ("client_loss_pct > 0.5", {"client_loss_pct": 0.6}, True),
        ("client_loss_pct > 0.5", {"client_loss_pct": 0.5}, False),
        ("client_loss_pct>=0.5", {"client_loss_pct": 0.5}, True),
        ("client_loss_pct != 0", {"client_loss_pct": 0.0}, False),
        ("clients == 30", {"clients": 30}, True),
        ("clients < 1e3", {"clients": 30}, True),
        ("passed == 0", {"passed": False}, True),
        ("client_loss_pct > 0.5", {"client_loss_pct": None}, False),
        ("client_loss_pct > 0.5", {}, False),
        ("client_loss_pct <= -1", {"client_loss_pct": -2}, True),
    ],
)
def test_a_condition_compares_a_column_with_a_number(text: str, row: Row, holds: bool) -> None:
    assert bool(conditions_met([parse(text, COLUMNS)], [row])) is holds


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", "no comparison"),
        ("client_loss_pct", "no comparison"),
        ("client_loss_pct > x", "no comparison"),
        ("client_loss_pct > 1.2.3", "no comparison"),
        ("__import__('os') > 1", "no comparison"),
        ("client_loss_pct > 1 or 1 == 1", "no comparison"),
        ("client_loss_pc > 1", "did you mean client_loss_pct"),
        ("loss > 1", r"did you mean client_loss_pct\?"),
        ("Loss (%) > 1", "like 'client_loss_pct > 0.5', with the column client_loss_pct"),
        ("Latency p99 > 20ms", "with the column latency_p99_us"),
        ("p99 > 20", r"did you mean latency_p99_us\?"),
        ("rate < 20", r"did you mean avg_tx_rate_pps or avg_rx_rate_pps\?"),
        ("zzz > 1", "some known columns: clients"),
    ],
)
def test_what_is_no_condition_is_refused_with_what_to_try(text: str, output: str) -> None:
    with pytest.raises(UsageError, match=output):
        parse(text, COLUMNS)


@pytest.mark.parametrize(
    ("scenario", "column"),
    [
        ("kafka-batch", "latency_p99_us"),
        ("kafka-batch", "msg_batch"),
        ("kafka-batch", "batch_bytes"),
        ("zmqfixed", "burst"),
        ("kafka-batch", "client_loss_pct_ci95"),
        ("kafka-batch", "client_loss_high_pct"),
        ("kafka-batch", "avg_rx_rate_pps_n"),
        ("kafka-batch", "latency_p99_us_high"),
        ("zmqrate", "max_rate_with_drop_pps"),
        ("zmqrate", "loss_low_pps"),
        ("zmqrate", "slow_high_pps"),
        ("zmqrate", "max_rate_steps"),
        ("zmqrate", "failed_steps"),
        ("zmqrate", "step_s"),
        ("kafka-rate", "max_rate_below_0_5pct_drop_pps"),
    ],
)
def test_every_column_that_can_come_out_is_known_beforehand(scenario: str, column: str) -> None:
    assert column in columns(load_scenario(scenario, {"published": True}))


@pytest.mark.parametrize(
    ("scenario", "column"),
    [
        ("kafka-batch", "verdict"),  # a text, no number
        ("kafka-batch", "burst"),  # what Kafka has in its place is msg_batch
        ("zmqfixed", "msg_batch"),  # Kafka's
        ("zmqfixed", "batch_bytes"),  # another system's
        ("kafka-batch", "latency_p99_us_ci95"),  # a percentile has a range
        ("kafka-batch", "avg_rx_rate_pps_low"),  # a mean has an interval
        ("kafka-batch", "latency_from_send_p99_us"),  # at a rate, latency counts from the due time
        ("zmqrate", "fairness_jain"),  # of a step, not of a search
    ],
)
def test_what_could_never_hold_is_refused(scenario: str, column: str) -> None:
    with pytest.raises(UsageError, match="no number called"):
        parse(f"{column} > 0", columns(load_scenario(scenario)))
