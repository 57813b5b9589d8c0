"""The metrics of a snapshot: names, units and labels by the conventions of Prometheus. Pure.

A family is the name of a metric with its values by their labels. No metric has one value for each client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from hydra.measure.latency_columns import DUE, PERCENTILES, SENT
from hydra.measure.resources import cpu_between
from hydra.model import number
from hydra.monitor.run_snapshot import Distribution, RunSnapshot, SnapshotStep

Kind = Literal["counter", "gauge", "histogram"]
Labels = Mapping[str, str]

SINCE: Final[Mapping[str, str]] = {DUE: "due", SENT: "send"}
"""The label for the start of a latency (when the message was due or sent), by the beginning of its column's name."""


@dataclass(slots=True)
class MetricFamily:
    """The name of a metric with all of its values.

    Attributes:
        name: the name, with its unit at the end; that of a counter gets the suffix ``_total`` when it is exposed.
        unit: the unit by UCUM, as OpenTelemetry uses it: "s", "1" for a ratio, "{message}".
        help: the definition, one sentence.
        samples: labels and values; empty for a histogram.
        distributions: labels and the counts of the buckets; empty except for a histogram.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)
    distributions: list[tuple[Labels, Distribution]] = field(default_factory=list)


def families(snapshots: Sequence[RunSnapshot]) -> list[MetricFamily]:
    """All metrics of all runs, except those without a value."""
    found = {family.name: family for family in _known()}
    for snapshot in snapshots:
        of_run = {"run": snapshot.run, "system": snapshot.system}
        for name, labels, value in _values(snapshot):
            if isinstance(value, Distribution):
                found[name].distributions.append(({**of_run, **labels}, value))
            else:
                found[name].samples.append(({**of_run, **labels}, value))
    return [family for family in found.values() if family.samples or family.distributions]


def _known() -> Iterator[MetricFamily]:
    """Every family, without values, in the order of docs/metrics.md."""
    so_far = "of a step that is running, the mean so far"
    yield MetricFamily(
        "hydra_sent_messages", "counter", "{message}", "Messages that the publishers' libraries accepted."
    )
    yield MetricFamily("hydra_received_messages", "counter", "{message}", "Messages that all subscribers received.")
    yield MetricFamily(
        "hydra_lost_messages", "counter", "{message}", "Messages that subscribers lost in measured steps."
    )
    yield MetricFamily("hydra_steps", "counter", "{step}", "Steps that have ended, by status.")
    yield MetricFamily(
        "hydra_latency_seconds", "histogram", "s", "Latency of received messages, since they were due or sent."
    )
    yield MetricFamily(
        "hydra_step_info", "gauge", "1", "1 for the running step and each of the last that ended, by status."
    )
    yield MetricFamily("hydra_requested_rate_messages_per_second", "gauge", "{message}/s",
                 "Rate that was asked of each publisher; none at rate max.")  # fmt: skip
    yield MetricFamily("hydra_step_sent_rate_messages_per_second", "gauge", "{message}/s",
                 f"Mean rate of a publisher in a step; {so_far}.")  # fmt: skip
    yield MetricFamily("hydra_step_received_rate_messages_per_second", "gauge", "{message}/s",
                 f"Mean rate of a subscriber in a step; {so_far}.")  # fmt: skip
    yield MetricFamily("hydra_step_aggregate_rate_messages_per_second", "gauge", "{message}/s",
                 "Rate of all subscribers together in a measured step.")  # fmt: skip
    yield MetricFamily(
        "hydra_step_loss_ratio", "gauge", "1", "Part of the expected messages that was lost in a measured step."
    )
    yield MetricFamily("hydra_step_latency_seconds", "gauge", "s", "Percentiles of a measured step's latency.")
    yield MetricFamily("hydra_step_elapsed_seconds", "gauge", "s", "Since the window of the running step began.")
    yield MetricFamily("hydra_step_done_ratio", "gauge", "1", "Part of the running step that is done.")
    yield MetricFamily(
        "hydra_clients", "gauge", "{client}", "Clients of the running step: needed, connected, and heard from."
    )
    yield MetricFamily(
        "hydra_agent_cpu_ratio", "gauge", "1", "Part of the CPU time of an agent's host that was in use."
    )
    yield MetricFamily(
        "hydra_agent_memory_available_bytes", "gauge", "By", "Memory of an agent's host that is available."
    )


_Named = tuple[str, Labels, float | Distribution]


def _values(snapshot: RunSnapshot) -> Iterator[_Named]:
    totals = snapshot.totals
    yield "hydra_sent_messages", {}, totals.sent
    yield "hydra_received_messages", {}, totals.received
    if totals.lost is not None:
        yield "hydra_lost_messages", {}, totals.lost
    for status, count in totals.steps.items():
        yield "hydra_steps", {"status": status}, count
    for since, latency in totals.latency.items():
        yield "hydra_latency_seconds", {"since": SINCE[since]}, latency
    for step in snapshot.ended:
        yield from _of_step(step)
    if snapshot.running is not None:
        yield from _of_step(snapshot.running)
        yield from _of_progress(snapshot, snapshot.running)


def _of_step(step: SnapshotStep) -> Iterator[_Named]:
    labels = _labels(step)
    yield "hydra_step_info", {**labels, "status": step.status}, 1.0
    figures = step.figures
    requested = number(figures.shares.requested_rate or step.plan.settings.rate)
    if requested is not None:
        yield "hydra_requested_rate_messages_per_second", labels, requested
    for name, value, factor in (
        ("hydra_step_sent_rate_messages_per_second", figures.totals.avg_tx_rate_pps, 1.0),
        ("hydra_step_received_rate_messages_per_second", figures.totals.avg_rx_rate_pps, 1.0),
        ("hydra_step_aggregate_rate_messages_per_second", figures.rates.aggregate_pps, 1.0),
        ("hydra_step_loss_ratio", figures.totals.client_loss_pct, 0.01),
    ):
        if value is not None:
            yield name, labels, value * factor
    for prefix, since in SINCE.items():
        for name, percent in PERCENTILES.items():
            value = number(figures.get(f"{prefix}_{name}_us"))
            if value is not None:
                quantile = {"quantile": f"{percent / 100:g}", "since": since}
                yield "hydra_step_latency_seconds", {**labels, **quantile}, value / 1e6


def _of_progress(snapshot: RunSnapshot, step: SnapshotStep) -> Iterator[_Named]:
    progress = snapshot.progress
    if progress is None:
        return
    labels = _labels(step)
    yield "hydra_step_elapsed_seconds", labels, progress.elapsed_s
    yield "hydra_step_done_ratio", labels, progress.share
    if progress.sent_pps is not None:
        yield "hydra_step_sent_rate_messages_per_second", labels, progress.sent_pps
    if progress.received_pps is not None:
        yield "hydra_step_received_rate_messages_per_second", labels, progress.received_pps
    for role, present in progress.clients.items():
        for state, count in present._asdict().items():
            yield "hydra_clients", {"role": role, "state": state}, count
    for host, (before, last) in progress.hosts.items():
        agent = {"agent": host}
        yield "hydra_agent_memory_available_bytes", agent, last.counters.memory_available
        used_pct = cpu_between(before, last)
        if used_pct is not None:
            yield "hydra_agent_cpu_ratio", agent, used_pct / 100


def _labels(step: SnapshotStep) -> Labels:
    return {"step": str(step.number), "clients": str(step.plan.clients)}
