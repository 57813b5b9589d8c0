"""All figures of a step from the raw reports, by column name. Pure.

With a cohort, the columns are those of the other subscribers; ``aggregate_pps`` and the counts that concern the
system as a whole (late, undrained, duplicates, reordered, stale, extra) are over everyone, and the cohort's own loss
stands apart. A figure that cannot be known is None, never an invented number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from hydra.measure import latency, loss, rates
from hydra.measure.resources import HostSample, HostSummary, summarise
from hydra.measure.verdict import Evidence, verdict
from hydra.model import Figure, Histogram, PublisherReport, StepPlan, SubscriberReport, System

HELD_SHARE: Final = 0.99
"""A publisher held its rate if it sent at least this part of what was due."""
FALLING_BEHIND_ERRORS: Final = 3.0
FALLING_BEHIND_SHARE: Final = 0.005
"""A lag grows if its slope is beyond 3 standard errors and above this part of the rate."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that is known of a measured step.

    Attributes:
        system: which system was measured.
        plan: what was asked for.
        publishers: ids of the publishers that were asked.
        subscribers: ids of the subscribers that were asked.
        publisher_reports, subscriber_reports: by id; an id without one is dead or silent.
        dead: subscribers whose process ended in the step.
        silent: subscribers that did not answer.
        cohort: subscribers of the step's cohort.
        agents: the agent that each client was on when the step began.
        window_ns: the step's start and stop on its clock, the early stop if there was one.
        loss_target: the fraction of loss up to which a rate passes.
        steady: whether passing also asks that no subscriber is falling behind.
        hosts: samples by host name.
        subscriber_hosts: hosts with subscribers; empty means all.
        link_bytes_s: speed of the slowest link between the hosts, if known (bytes/s).
    """

    system: System
    plan: StepPlan
    publishers: Set[int]
    subscribers: Set[int]
    publisher_reports: Mapping[int, PublisherReport]
    subscriber_reports: Mapping[int, SubscriberReport]
    window_ns: tuple[int, int]
    dead: Set[int] = frozenset()
    silent: Set[int] = frozenset()
    cohort: Set[int] = frozenset()
    agents: Mapping[int, str] = field(default_factory=dict)
    loss_target: float = 0.0
    steady: bool = False
    hosts: Mapping[str, Sequence[HostSample]] = field(default_factory=dict)
    subscriber_hosts: Set[str] = frozenset()
    link_bytes_s: float | None = None

    @property
    def window_s(self) -> float:
        """Length of the window in seconds."""
        return (self.window_ns[1] - self.window_ns[0]) / rates.SECOND_NS


@dataclass(frozen=True, slots=True)
class Merged:
    """Histograms merged over clients: what is stored of a step, and what the percentile columns are made of.

    ``latency`` is of the subscribers outside the cohort, ``cohort_latency`` of those inside; ``lag`` is of the
    publishers (send time − due time).
    """

    latency: Histogram
    cohort_latency: Histogram
    lag: Histogram


def merged(o: Observation) -> Merged:
    """The step's histograms."""
    reports = o.subscriber_reports.items()
    return Merged(
        latency=latency.merge(r.latency for c, r in reports if c in o.subscribers and c not in o.cohort),
        cohort_latency=latency.merge(r.latency for c, r in reports if c in o.cohort),
        lag=latency.merge(p.lag for p in o.publisher_reports.values()),
    )


def figures(o: Observation, histograms: Merged | None = None) -> dict[str, Figure]:
    """All columns of the step: the published ones first, then the others.

    Args:
        o: the step.
        histograms: what :func:`merged` gave for it, if it was asked already.
    """
    histograms = histograms or merged(o)
    others = sorted(o.subscribers - o.cohort)
    mine = [o.subscriber_reports[c] for c in others if c in o.subscriber_reports]
    publishers = list(o.publisher_reports.values())
    # Without every publisher's account nobody knows what was to be expected.
    known = bool(publishers) and o.publishers <= set(o.publisher_reports)
    sent = sum(p.acknowledged for p in publishers) if known else None
    each = loss.expected_messages(publishers) if known else 0
    account = loss.loss_of(others, o.subscriber_reports, each, o.window_s)
    failed = loss.failed_clients(others, o.subscriber_reports, o.dead, o.silent, each)
    rx = rates.rx_rates_pps(mine)
    behind = _falling_behind(mine, each / o.window_s)
    passed = account.passes(o.loss_target)
    if passed and o.steady and behind:
        passed = False
    columns: dict[str, Figure] = {
        "clients": o.plan.clients,
        "msg_batch": o.plan.settings.msg_batch,
        "avg_tx_rate_pps": rates.tx_rate_pps(publishers) if known else None,
        "avg_rx_rate_pps": fmean(rx) if rx and each else None,
        "client_loss_pct": account.loss_pct,
        "failed_clients": failed.total,
        "total_tx": sent,
        "total_rx": account.received / len(others) if each and others else None,
        "aggregate_pps": rates.aggregate_pps(_everyone(o), o.window_ns) if each else None,
        "loss_at_stop_pct": account.loss_at_stop_pct,
        "rx_clients": len(rx),
        "failed_lossy": failed.lossy,
        "failed_dead": failed.dead,
        "failed_silent": failed.silent,
    }
    columns |= latency.figures(histograms.latency, latency.prefix_for(o.plan.settings.rate))
    columns |= _fairness([_received_by(o, c) for c in others] if each else [])
    columns |= _publishing(o, publishers, known, histograms.lag)
    columns |= _counts(o)
    columns |= _cohort(o, each)
    columns |= {"falling_behind": behind, "passed": passed, "loss_target_pct": 100 * o.loss_target}
    return columns | _hosts_and_verdict(o, columns)


def _everyone(o: Observation) -> list[SubscriberReport]:
    return [r for c, r in o.subscriber_reports.items() if c in o.subscribers]


def _received_by(o: Observation, client: int) -> int:
    report = o.subscriber_reports.get(client)
    return rates.received(report) if report else 0


def _falling_behind(reports: Sequence[SubscriberReport], rate_pps: float) -> int:
    """Subscribers whose lag grew beyond the noise."""
    return sum(
        1
        for r in reports
        if r.lag_slope is not None
        and r.lag_slope > FALLING_BEHIND_ERRORS * (r.lag_slope_error or 0.0)
        and r.lag_slope > FALLING_BEHIND_SHARE * rate_pps
    )


def _fairness(received: Sequence[int]) -> dict[str, Figure]:
    return {
        "fairness_jain": rates.jain(received) if received else None,
        "rx_p1": rates.nearest_rank(received, 1) if received else None,
        "rx_p50": rates.nearest_rank(received, 50) if received else None,
        "rx_p99": rates.nearest_rank(received, 99) if received else None,
    }


def _publishing(
    o: Observation, publishers: Sequence[PublisherReport], known: bool, lag: Histogram
) -> dict[str, Figure]:
    """How the publishers fared with what they were asked for."""
    rate = o.plan.settings.rate
    held: bool | None = None
    if rate != "max" and known:
        # Against the length that was asked for: a step that was stopped early did not hold its rate.
        due = rate * o.plan.duration_s
        held = all(p.sent >= HELD_SHARE * due - 1 and not p.stopped_early for p in publishers)
    cores = [(p.usage.cpu_user_s + p.usage.cpu_system_s) / o.window_s for p in publishers]
    early = "; ".join(sorted({p.stopped_early for p in publishers if p.stopped_early}))
    return {
        "requested_rate": rate,
        "rate_held": held,
        "tx_lag_p99_us": latency.percentiles_us(lag, [99.0])[0],
        "blocked_s": max((p.blocked_ns for p in publishers), default=0) / rates.SECOND_NS,
        "batch_bytes": max((p.batch_bytes for p in publishers), default=0) or None,
        "sent": sum(p.sent for p in publishers),
        "tx_failed": sum(p.failed for p in publishers),
        "publisher_cores": max(cores, default=None),
        "stopped_early": early or None,
    }


def _counts(o: Observation) -> dict[str, Figure]:
    """Counts over all subscribers, the cohort included."""
    reports = _everyone(o)
    ledgers = [ledger for r in reports for ledger in r.ledgers]
    return {
        "late": sum(ledger.received - ledger.in_window for ledger in ledgers),
        "undrained": sum(r.undrained for r in reports),
        "duplicates": sum(ledger.duplicates for ledger in ledgers),
        "reordered": sum(ledger.reordered for ledger in ledgers),
        "stale": sum(r.stale for r in reports),
        "extra": sum(ledger.extra for ledger in ledgers),
        "subscriber_cpu_s": sum(r.usage.cpu_user_s + r.usage.cpu_system_s for r in reports),
        "subscriber_rss_max_bytes": max((r.usage.max_rss_bytes for r in reports), default=None),
    }


def _cohort(o: Observation, expected_each: int) -> dict[str, Figure]:
    """The cohort's own account; no columns where there is none."""
    if o.plan.cohort.kind == "none":
        return {}
    reports = [o.subscriber_reports[c] for c in sorted(o.cohort) if c in o.subscriber_reports]
    account = loss.loss_of(o.cohort, o.subscriber_reports, expected_each, o.window_s)
    absent_ns = sum(end - start for r in reports for start, end in r.absent)
    return {
        "cohort": o.plan.cohort.kind,
        "cohort_clients": len(o.cohort),
        "cohort_rate": o.plan.cohort.rate,
        "cohort_loss_pct": account.loss_pct,
        "reconnects": sum(r.reconnects for r in reports),
        "absent_s": absent_ns / rates.SECOND_NS,
        "cohort_felt": any(r.felt for r in reports) if reports and o.plan.cohort.kind == "slow" else None,
    }


def _hosts_and_verdict(o: Observation, columns: Mapping[str, Figure]) -> dict[str, Figure]:
    """What the hosts did, and what limited the point."""
    summaries = {host: s for host, samples in o.hosts.items() if (s := summarise(samples, o.window_ns)) is not None}
    with_subscribers = [s for host, s in summaries.items() if not o.subscriber_hosts or host in o.subscriber_hosts]
    busiest = max((s.cpu_mean_pct for s in with_subscribers), default=None)
    cores = columns["publisher_cores"]
    held = columns["rate_held"]
    blocked_s = columns["blocked_s"]
    evidence = Evidence(
        system=o.system,
        held=held if isinstance(held, bool) else None,
        behind=columns["passed"] is False,
        blocked_share=float(blocked_s or 0.0) / o.window_s,
        publisher_cores=float(cores or 0.0),
        subscriber_host_pct=busiest,
        network_share=_network_share(summaries.values(), o.link_bytes_s),
    )
    return {
        "host_cpu_mean_pct": max((s.cpu_mean_pct for s in summaries.values()), default=None),
        "host_cpu_busiest_core_pct": max((s.cpu_busiest_core_pct for s in summaries.values()), default=None),
        "host_memory_available_min_bytes": min(
            (s.memory_available_min_bytes for s in summaries.values()), default=None
        ),
        "verdict": verdict(evidence) if columns["passed"] is not None else None,
    }


def _network_share(summaries: Iterable[HostSummary], link_bytes_s: float | None) -> float | None:
    if link_bytes_s is None:
        return None
    return max((max(s.net_sent_bytes_s, s.net_received_bytes_s) for s in summaries), default=0.0) / link_bytes_s
