"""The published columns of a step, which come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra.measure.column import MESSAGES, PER_SECOND, SUBSCRIBERS, Column, SystemColumns
from hydra.measure.step_part import Number, StepPart, columns_of, figure

CLIENTS: Final = "clients"
AVG_TX: Final = "avg_tx_rate_pps"
AVG_RX: Final = "avg_rx_rate_pps"
LOSS: Final = "client_loss_pct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals(StepPart):
    """The published figures."""

    clients: Number | None = figure(
        SUBSCRIBERS,
        "subscribers of the step",
        "Subscribers",
        repeats="common",
        axis="subscribers",
        published="Client #",
        of=lambda s: s.o.plan.clients,
    )
    avg_tx_rate_pps: Number | None = figure(
        PER_SECOND,
        "mean over publishers of Tx (messages sent) / *T* (length of the window; at a constant rate to the end of the "
        "last message's interval, because n messages take n / rate). If a server acknowledged messages after the "
        "window, the mean is that of Tx / (last acknowledgement − start)",
        "Tx rate",
        published="Avrg Tx Rate",
        of=lambda s: s.traffic.tx_pps,
    )
    avg_rx_rate_pps: Number | None = figure(
        PER_SECOND,
        "mean over subscribers of (received in the window) / *T* (see `avg_tx_rate_pps`); if no subscriber is slow or "
        "reconnects, this is `aggregate_pps` / `clients`. A dead or silent subscriber counts with its last progress "
        "message. A member of a consumer group receives its share of the messages. If subscribers read a step from "
        "the log, the rate of each is received / (time of the latest batch of any subscriber − "
        "time of the command to read). For messages without headers the column contains "
        "`rx_span_rate_pps`",
        "Rx rate",
        better="higher",
        published="Avrg Rx Rate",
        of=lambda s: s.traffic.rx_pps,
    )
    client_loss_pct: Number | None = figure(
        "%",
        "messages lost in % of the messages expected (*E*), summed over the subscribers, the dead and silent ones "
        "included. Messages that still wait in a server (undrained) or may still arrive (unknown) are not counted as "
        "lost, but a rate with too many such messages does not pass",
        "Loss",
        digits="six",
        axis="client loss, %",
        better="lower",
        published="Client Loss[%]",
        of=lambda s: s.exact.loss_pct if s.exact else None,
        header=True,
    )
    failed_clients: Number | None = figure(
        SUBSCRIBERS,
        "`failed_lossy` + `failed_dead` + `failed_silent`. Each subscriber is counted once: dead, otherwise silent, "
        "otherwise lossy",
        "Failed subscribers",
        better="lower",
        published="Failed Clients",
        of=lambda s: s.failed.total,
    )
    total_tx: Number | None = figure(
        MESSAGES,
        "sum over the publishers of Tx: messages that servers acknowledged, or that the library accepted if servers do "
        "not acknowledge",
        "Tx total",
        published="Total pckts Tx",
        of=lambda s: sum(p.acknowledged for p in s.publishers) if s.accounts else None,
    )
    total_rx: Number | None = figure(
        MESSAGES,
        "mean over subscribers of the messages received, also those received after the window (in the drain). A dead "
        "or silent subscriber counts with its last progress message",
        "Rx total",
        digits="none",
        published="Total pckts Rx",
        of=lambda s: s.mean_received,
    )


def published(system: SystemColumns) -> tuple[Column, ...]:
    """The published columns of a system's steps."""
    clients, *others = columns_of(Totals)
    return (clients, system.batch, *others)


PUBLISHED: Final = published(SystemColumns())
