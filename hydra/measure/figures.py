"""All figures of a step from the raw reports, by column name. Pure.

In a step with a cohort, the columns are those of the other subscribers. Only ``aggregate_pps`` and the counts of the
whole system (the outcomes of messages, and the sums of reported counts) are over all subscribers, and the loss of the
cohort has its own columns. A figure that cannot be known is None, never an invented number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from hydra.measure import hot_topics, latency, loss, loss_interval, loss_pattern, observation, rates, steadiness, stops
from hydra.measure.acceptance import Acceptance, acceptance, subscribers_lost
from hydra.measure.acceptance import columns as acceptance_columns
from hydra.measure.bottleneck import bottleneck
from hydra.measure.column import ReportColumn
from hydra.measure.column_names import (
    ACCOUNT,
    BLOCKED,
    BURSTS,
    DIED_BY,
    GROUP,
    LATENCY_BOUND,
    LOG_GROWTH,
    LONE_LOSER,
    LONE_LOSS,
    LOSS,
    LOSS_CI_HIGH,
    LOSS_CI_LOW,
    LOSS_EVIDENCE,
    LOSS_HIGH,
    LOSS_LOW,
    LOSS_UNLISTED,
    NEGATIVE,
    PACING,
    PASSED,
    PAYLOAD,
    RATE_HELD,
    RATE_SENT,
    REST_BURSTS,
    RX_P1,
    SHORTFALL,
    START_LOST,
    STEADY,
    STOPPED,
    UNSTEADY,
)
from hydra.measure.connections import connection_figures, reports_of
from hydra.measure.headerless_steps import only_counts
from hydra.measure.lag import BacklogGrowth, growth
from hydra.measure.latency import latency_bound_ns
from hydra.measure.loss import StepSubscribers, asked_of
from hydra.measure.loss_interval import ConfidenceInterval
from hydra.measure.loss_pattern import asked_s
from hydra.measure.message_accounting import MessageAccounts, accounts_of
from hydra.measure.message_accounting import account as log_account
from hydra.measure.observation import SMOOTH, Observation
from hydra.measure.step_columns import ADDED_UP
from hydra.model import (
    Figure,
    Histogram,
    PublisherReport,
)
from hydra.wire.arrays import Flags, Floats, Ints, sorted_ids, total
from hydra.wire.data_message import payload
from hydra.wire.histogram import merge
from hydra.wire.report_validation import MAX_ABSENT
from hydra.wire.subscriber_table import OF_LEDGERS, SubscriberTable
from hydra.wire.traffic import traffic_of


@dataclass(frozen=True, slots=True)
class MergedHistograms:
    """The histograms of a step merged over clients, from which the percentile columns are computed.

    ``latency`` is that of the subscribers outside the cohort, ``cohort_latency`` that of the cohort. ``lag`` is send
    time − due time of the publishers, ``ack`` the time from a send to its acknowledgement.
    """

    latency: Histogram
    cohort_latency: Histogram
    lag: Histogram
    ack: Histogram = field(default_factory=Histogram)


def merge_histograms(o: Observation) -> MergedHistograms:
    """The step's histograms."""
    return MergedHistograms(
        latency=o.subscriber_reports.latency,
        cohort_latency=o.subscriber_reports.cohort_latency,
        lag=merge(p.lag for p in o.publisher_reports.values()),
        ack=merge(p.ack_latency for p in o.publisher_reports.values()),
    )


def figures(o: Observation, histograms: MergedHistograms | None = None) -> dict[str, Figure]:
    """All columns of the step: the published ones first, then the others.

    Args:
        o: the step.
        histograms: the result of :func:`merge_histograms`, if it is known already.
    """
    histograms = histograms or merge_histograms(o)
    asked = asked_of(o.subscribers, o.subscriber_reports, o.cohort, o.dead, o.silent)
    accounts = _accounts(o, asked)
    others = asked.others
    mine = asked.reports_of(others)
    publishers = list(o.publisher_reports.values())
    known = accounts is not None
    taken = acceptance(publishers, o.plan.settings.rate, asked_s(o.plan), o.loss_target) if known else None
    stopped = stops.found_in(o)
    account = accounts.of(others) if accounts else loss.MessageOutcome()
    # If the number of received messages is not known exactly, the figures made of it are empty.
    exact = account if accounts and accounts.exact else None
    counted = exact if account.expected else None
    failed = loss.failed_clients(asked, others, accounts.most if accounts else None)
    sending = _sending(o, publishers)
    rx = rates.known(rates.rx_span_rates_pps(mine)).tolist() if counted and not _too_few(o) else []
    rx_span = fmean(rx) if rx else None
    growing = growth(mine.lag_bins_us, o.plan.duration_s)
    received = accounts.received(others) if accounts and counted else np.zeros(0, np.int64)
    columns: dict[str, Figure] = {
        "clients": o.plan.clients,
        o.columns.batch.name: o.batch,
        "avg_tx_rate_pps": sending.rate_pps if known else None,
        "avg_rx_rate_pps": _rx_rate(o, asked, accounts, rx_span) if accounts and counted else None,
        "client_loss_pct": exact.loss_pct if exact else None,
        "failed_clients": failed.total,
        "total_tx": sum(p.acknowledged for p in publishers) if known else None,
        "total_rx": total(received) / len(received) if len(received) else None,
        "aggregate_pps": _aggregate(o, asked, accounts) if accounts and counted else None,
        "tx_mb_s": sending.mb_s if known else None,
        "rx_mb_s": _rx_mb_s(o, asked) if counted else None,
        "tx_span_rate_pps": rates.tx_span_rate_pps(publishers) if known and not _too_few(o) else None,
        "rx_span_rate_pps": rx_span,
        "loss_at_stop_pct": exact.loss_at_stop_pct if exact and not o.stored else None,
        "late_pct": exact.pct(exact.late) if exact and not o.stored else None,
        "undrained_pct": account.pct(account.undrained),
        "unknown_pct": account.pct(account.unknown),
        "rx_clients": len(rx),
        "failed_lossy": failed.lossy,
        "failed_dead": failed.dead,
        "failed_silent": failed.silent,
    }
    if accounts and not accounts.exact:
        columns[LOSS_LOW] = account.loss_pct
        columns[LOSS_HIGH] = accounts.of(others, "least").loss_pct
        columns[LOSS_UNLISTED] = accounts.unlisted
    if failed.dead and o.deaths:
        columns[DIED_BY] = _deaths(o, asked.ids[others & asked.dead])
    columns |= _loss_interval(o, asked, accounts, mine, columns[LOSS])
    columns |= _log(o, asked, accounts)
    columns |= latency.figures(histograms.latency, latency.prefix_for(o.plan.settings.rate))
    columns |= _clocks(o, asked, histograms.latency)
    columns |= _fairness(received)
    columns |= _publishing(o, publishers, taken, histograms)
    columns |= _counts(o, asked, accounts)
    columns |= hot_topics.figures(asked, accounts, o.plan.settings.topics)
    columns |= _cohort(o, asked, accounts)
    # The disconnections of a cohort are planned, or follow from its slowness.
    if o.connecting is not None or not o.cohort:
        told = reports_of(o.subscriber_reports.systems())
        columns |= connection_figures(o.connecting, told, len(asked.ids))
    if o.pacing != SMOOTH:
        columns[PACING] = o.pacing
    if o.group:
        columns[GROUP] = o.group
    if words := payload(o.plan.settings):
        columns[PAYLOAD] = words
    columns |= {
        "falling_behind": None if growing.share is None else growing.falling_behind,
        "backlog_growth_pct": None if growing.share is None else 100 * growing.share,
        PASSED: _passed(o, accounts, others, growing, stopped, taken.unaccepted_share if taken else 0.0),
        "loss_target_pct": 100 * o.loss_target,
    }
    columns |= _shortfall(o, asked, accounts, growing, taken, stopped)
    columns |= _steadiness(o, stopped)
    columns |= observation.columns(o.servers)
    received_in_time = _passed(o, accounts, others & asked.reported, growing, stopped, reporting=True)
    columns |= bottleneck(o, columns, received_in_time, taken)
    if not o.counted:
        return columns
    senders = o.publisher_reports.values()
    return only_counts(columns, o.plan.settings, senders, asked.reports, o.log_growth, shared=bool(o.group))


def _steadiness(o: Observation, found: stops.Found | None) -> dict[str, Figure]:
    """Whether the seconds of the window are alike, how they differ, and in how many of them nothing arrived."""
    interval_s = max(round(o.window_s / len(o.received)), 1) if o.received else 1
    differences = steadiness.unsteady(o.received, interval_s, found or stops.Found())
    return {
        STEADY: None if differences is None else not differences,
        STOPPED: found.stopped_s if found else None,
        UNSTEADY: steadiness.encode_unsteadiness(differences) if differences else None,
    }


def _deaths(o: Observation, dead: Ints) -> str:
    """How these subscribers ended: ``SIGKILL``, ``2 × SIGKILL, 1 × exit code 3``."""
    counts = {how: int(np.isin(dead, sorted_ids(ids)).sum()) for how, ids in o.deaths.items()}
    found = {how: count for how, count in counts.items() if count}
    return ", ".join(f"{count} × {how}" if len(found) > 1 else how for how, count in found.items())


def _accounts(o: Observation, asked: StepSubscribers) -> MessageAccounts | None:
    """The accounts of all subscribers; None if a publisher's report lacks, since the expected messages are unknown."""
    if not o.publisher_reports or not all(p in o.publisher_reports for p in o.publishers):
        return None
    # Messages that are only counted cannot be assigned to members of a consumer group.
    group = bool(o.group) and not o.counted
    one, traffic = o.one_publisher, traffic_of(o.plan.settings)
    reports, words = o.publisher_reports, o.last_words
    return accounts_of(asked, reports, o.window_s, words, group=group, one_publisher=one, traffic=traffic)


def _passed(
    o: Observation,
    accounts: MessageAccounts | None,
    clients: Flags,
    growing: BacklogGrowth,
    stopped: stops.Found | None,
    unaccepted: float = 0.0,
    *,
    reporting: bool = False,
) -> bool | None:
    """Whether the rate passes for these subscribers (``reporting``: all of them reported); None: not known.

    ``unaccepted`` is the share of the messages sent that the system did not accept; they count as lost. With a stop the
    system did not carry the rate all the time.
    """
    if accounts is None:
        return None
    if stopped and stopped.stops:
        return False
    of = accounts.of_reporting if reporting else accounts.of
    at_best = of(clients).passes(o.loss_target, unaccepted)
    if at_best and o.steady and growing.falling_behind:
        return False
    if at_best and not accounts.exact and not of(clients, "least").passes(o.loss_target, unaccepted):
        return None
    return at_best


def _shortfall(
    o: Observation,
    asked: StepSubscribers,
    accounts: MessageAccounts | None,
    growing: BacklogGrowth,
    taken: Acceptance | None,
    stopped: stops.Found | None,
) -> dict[str, Figure]:
    """The shortfall of the rate and its bursts; None at rate ``max`` and without an account."""
    rate = o.plan.settings.rate
    others = asked.others
    mine = asked.reports_of(others)
    account = accounts.of(others) if accounts else loss.MessageOutcome()
    if (
        rate == "max"
        or o.plan.load
        or o.stored
        or accounts is None
        or taken is None
        or not account.expected
        or not len(mine)
        or accounts.truncated
    ):
        return {SHORTFALL: None, BURSTS: None, START_LOST: None}
    # The share of the rate that cannot be sustained: a growing or undrained backlog, messages that a publisher never
    # sent, and messages that a server never accepted. If no lag is known, it is all that was not received in time.
    behind = (account.undrained + account.unknown) / account.expected
    if growing.share is None:
        behind = 1 - (account.in_time + account.lost) / account.expected
    # The planned length counts, since a step that stopped early lacks the messages of the rest.
    length_s = asked_s(o.plan)
    unsustained = min(max(growing.share or 0.0, behind, taken.unsent_share) + taken.unaccepted_of_due, 1.0)
    share = _own_share(o, mine)
    course = loss_pattern.loss_profile(accounts.evidence(mine), rate, length_s, share)
    bursts = loss_pattern.bursts(course, length_s, unsustained)
    # What was due in a stop was not carried; the part of it that was lost is in the bursts already.
    if stopped and (more_s := stopped.stopped_s - sum(bursts)) > 0:
        bursts.append(more_s)
    columns: dict[str, Figure] = {
        SHORTFALL: 100 * sum(bursts) / length_s,
        BURSTS: loss_pattern.encode_bursts(bursts),
        START_LOST: 1000 * loss_pattern.start_lost_s(course, length_s),
    }
    # A single member of a consumer group has no losses.
    lone = None if o.group else loss_pattern.lone_loser(asked.ids, others, accounts.most)
    if lone is not None:
        rest = loss_pattern.loss_profile(mine.take(mine.ids != lone.client), rate, length_s, share)
        columns |= {
            LONE_LOSER: lone.client,
            LONE_LOSS: 100 * lone.loss,
            REST_BURSTS: loss_pattern.encode_bursts(loss_pattern.bursts(rest, length_s, unsustained)),
        }
    return columns


def _own_share(o: Observation, reports: SubscriberTable) -> float:
    """The mean share of a publisher's messages that a subscriber expects: below 1 if it has a part of the topics."""
    if o.plan.settings.chosen_topics == o.plan.settings.topics:
        return 1.0
    acknowledged = {p: report.acknowledged for p, report in o.publisher_reports.items()}
    due = sum(acknowledged.get(publisher, 0) for publisher in reports.publisher.tolist())
    return total(reports.received + reports.missing) / due if due else 1.0


def _loss_interval(
    o: Observation, asked: StepSubscribers, accounts: MessageAccounts | None, mine: SubscriberTable, lost_pct: Figure
) -> dict[str, Figure]:
    """The 95 % confidence interval of the loss of the subscribers outside the cohort, and its evidence."""
    found: loss_interval.LossEvidence | None = None
    limits: ConfidenceInterval | None = None
    # The losses of a dead subscriber are not random, and losses in reading from a log have no time.
    told = accounts and accounts.exact and not accounts.truncated and bool(asked.reported[asked.others].all())
    if accounts and told and not o.stored and isinstance(lost_pct, float):
        sent = max((p.sent for p in o.publisher_reports.values()), default=0)
        found = loss_interval.of_reports(accounts.evidence(mine), o.plan, sent)
        if not found.total and lost_pct:
            found = None
        limits = loss_interval.around(lost_pct, [found]) if found else None
    return {
        LOSS_CI_LOW: limits.low if limits else None,
        LOSS_CI_HIGH: limits.high if limits else None,
        LOSS_EVIDENCE: loss_interval.encode_evidence(found) if found else None,
    }


def _spans(o: Observation) -> bool:
    """Whether rates are those from the first message to the last: of a number of messages at rate ``max``."""
    return o.plan.settings.rate == "max" and o.plan.settings.messages is not None


def _too_few(o: Observation) -> bool:
    """Whether the step has no rate: at rate ``max``, a few messages take as long as a single delay."""
    return _spans(o) and any(p.acknowledged < rates.LEAST_MESSAGES for p in o.publisher_reports.values())


class _Sending(NamedTuple):
    """The mean messages/s of a publisher, and the megabytes/s of all publishers; None: not known."""

    rate_pps: float | None
    mb_s: float | None


def _sending(o: Observation, publishers: Sequence[PublisherReport]) -> _Sending:
    if _too_few(o):
        return _Sending(None, None)
    if not o.counted and not _spans(o):
        return _Sending(rates.tx_rate_pps(publishers, o.rated_ns), rates.tx_mb_s(publishers, o.rated_ns))
    # The window of a tool contains the start of its program; its reports are over its own time.
    requested = o.plan.settings.rate
    if requested == "max":
        own = rates.own_tx_rates_pps(publishers, 0 if o.counted else 1)
    else:
        own = [rates.tool_tx_rate_pps(p, requested, o.window_ns) for p in publishers]
    return _Sending(fmean(own), rates.tx_mb_s_at(publishers, own)) if own else _Sending(None, None)


def _receiving_s(o: Observation, asked: StepSubscribers) -> float | None:
    """The seconds by which all receive rates are divided: the window, or the time of reading stored messages."""
    if _too_few(o):
        return None
    if o.reading_ns is None:
        start_ns, stop_ns = o.rated_ns
        return (stop_ns - start_ns) / rates.SECOND_NS
    read_ns = _largest(asked.reports.last_ns) - o.reading_ns
    return read_ns / rates.SECOND_NS if read_ns > 0 else None


def _aggregate(o: Observation, asked: StepSubscribers, accounts: MessageAccounts) -> float | None:
    """Messages/s that all subscribers received together."""
    if _spans(o) and not o.stored:
        told = bool(asked.reported.all()) and not _too_few(o)
        every = rates.own_rx_rates_pps(asked.reports, shared=bool(o.group)) if told else None
        return None if every is None else float(every.sum())
    seconds = _receiving_s(o, asked)
    of_all = accounts.of()
    return (of_all.received if o.stored else of_all.in_window) / seconds if seconds else None


def _rx_rate(o: Observation, asked: StepSubscribers, accounts: MessageAccounts, rx_span: float | None) -> float | None:
    """The mean messages/s that a subscriber outside the cohort received.

    ``rx_span`` is the rate from the first batch to the last; tools without one have no other.
    """
    if o.counted:
        own = None if rx_span is None else rates.known(_tool_rx_rates(o, asked.reports_of(asked.others)))
        return float(own.mean()) if own is not None and len(own) else None
    if _spans(o) and not o.stored:
        told = bool(asked.reported[asked.others].all()) and not _too_few(o)
        own = rates.own_rx_rates_pps(asked.reports_of(asked.others), shared=bool(o.group)) if told else None
        return None if own is None else float(own.mean())
    seconds = _receiving_s(o, asked)
    received = (accounts.most.received if o.stored else accounts.most.in_window)[asked.others]
    return total(received) / len(received) / seconds if seconds and len(received) else None


def _tool_rx_rates(o: Observation, reports: SubscriberTable) -> Floats:
    """Of every tool the messages/s that it read in its own time, since the window contains the start of its program.

    NaN: unknown.
    """
    requested = o.plan.settings.rate
    if requested == "max" or o.stored:
        return rates.rx_span_rates_pps(reports)
    return rates.tool_rx_rates_pps(reports, list(o.publisher_reports.values()), requested)


def _rx_mb_s(o: Observation, asked: StepSubscribers) -> float | None:
    """Megabytes/s that all subscribers received together."""
    reports = asked.reports
    if o.counted:
        return None if _too_few(o) else rates.tool_rx_mb_s(reports, _tool_rx_rates(o, reports))
    if _spans(o) and not o.stored:
        own = None if _too_few(o) else rates.own_rx_rates_pps(reports, shared=bool(o.group))
        return None if own is None else rates.rx_mb_s(reports, own, 1.0)
    seconds = _receiving_s(o, asked)
    counts = reports.received if o.stored else reports.in_window
    return rates.rx_mb_s(reports, reports.of_clients(counts), seconds) if seconds else None


def _largest(values: Ints) -> int:
    """The largest value; 0 if there are none."""
    return int(values.max()) if len(values) else 0


def _log(o: Observation, asked: StepSubscribers, accounts: MessageAccounts | None) -> dict[str, Figure]:
    """The growth of the servers' log, and its agreement with the clients' counts; no columns without a log."""
    if o.log_growth is None:
        return {}
    publishers = o.publisher_reports.values()
    everyone = accounts.of() if accounts else loss.MessageOutcome()
    told = accounts.ledgers(asked.reports) if accounts else asked.reports
    return {
        LOG_GROWTH: o.log_growth,
        # The acknowledged messages of a publisher without a report are unknown.
        ACCOUNT: log_account(
            o.log_growth,
            sum(p.acknowledged for p in publishers),
            sum(p.sent for p in publishers) if o.log_acknowledges else None,
            missing=everyone.expected - everyone.received,
            duplicates=_largest(told.of_clients(told.duplicates)),
            extra=_largest(told.of_clients(told.extra)),
            shared=bool(o.group),
        )
        if accounts
        else None,
    }


def _clocks(o: Observation, asked: StepSubscribers, latencies: Histogram) -> dict[str, Figure]:
    """The bound of the error of these latencies, and how many are below zero; None if there are no latencies."""
    if not latencies.counts:
        return {LATENCY_BOUND: None, NEGATIVE: None}
    receivers = asked.ids[asked.others & asked.reported].tolist()
    bound_ns = latency_bound_ns({o.agents.get(c) for c in o.publishers}, {o.agents.get(c) for c in receivers}, o.clocks)
    return {
        LATENCY_BOUND: None if bound_ns is None else bound_ns / 1000,
        NEGATIVE: latency.count_below_zero(latencies),
    }


def _fairness(received: Ints) -> dict[str, Figure]:
    some = len(received) > 0
    return {
        "fairness_jain": rates.jain(received) if some else None,
        RX_P1: rates.nearest_rank(received, 1) if some else None,
        "rx_p50": rates.nearest_rank(received, 50) if some else None,
        "rx_p99": rates.nearest_rank(received, 99) if some else None,
    }


def _publishing(
    o: Observation, publishers: Sequence[PublisherReport], taken: Acceptance | None, histograms: MergedHistograms
) -> dict[str, Figure]:
    """The columns of the publishers: the requested rate, whether it was held, and their lag, waits and CPU."""
    losing = subscribers_lost(o.subscriber_reports.systems())
    of_acceptance = acceptance_columns(
        taken, o.window_s, explained=o.explained, cohort=o.plan.cohort.kind != "none", losing=losing
    )
    held = {name: of_acceptance.pop(name) for name in (RATE_HELD, RATE_SENT)}
    cores = [(p.usage.cpu_user_s + p.usage.cpu_system_s) / o.window_s for p in publishers]
    early = "; ".join(sorted({p.stopped_early for p in publishers if p.stopped_early}))
    return {
        "requested_rate": o.plan.settings.rate,
        **held,
        **latency.lag_figures(histograms.lag),
        **(latency.ack_figures(histograms.ack) if histograms.ack.counts else {}),
        BLOCKED: max((p.blocked_ns for p in publishers), default=0) / rates.SECOND_NS,
        **{column.name: _reported(o, column) for column in o.columns.reported},
        "sent": sum(p.sent for p in publishers),
        "tx_failed": sum(p.failed for p in publishers),
        **of_acceptance,
        "publisher_cores": max(cores, default=None),
        "stopped_early": early or None,
    }


def _reported(o: Observation, column: ReportColumn) -> Figure:
    """The figure of a system's column from the reports of its clients."""
    reports = (p.system for p in o.publisher_reports.values())
    systems = reports if column.role == "publisher" else o.subscriber_reports.systems()
    said: list[Any] = [value for told in systems if (value := (told or {}).get(column.key)) is not None]
    if not said:
        return None
    if column.fold == "mean":
        return float(sum(said)) / len(said)
    folded: Figure = sum(said) if column.fold == "sum" else max(said)
    return None if column.fold == "common" and min(said) != folded else folded


def _counts(o: Observation, asked: StepSubscribers, accounts: MessageAccounts | None) -> dict[str, Figure]:
    """Counts over all subscribers, the cohort included."""
    reports = asked.reports
    ledgers = accounts.ledgers(reports) if accounts else reports
    everyone = accounts.of() if accounts and len(asked.ids) else None
    exact = everyone if accounts and accounts.exact else None
    return {
        "in_window": exact.in_window if exact and not o.stored else None,
        "late": exact.late if exact and not o.stored else None,
        "undrained": everyone.undrained if everyone else None,
        "lost": exact.lost if exact else None,
        "unknown": everyone.unknown if everyone else None,
        **{n: total(getattr(ledgers if n in OF_LEDGERS else reports, n)) for n in (c.name for c in ADDED_UP)},
        "subscriber_cpu_s": float((reports.cpu_user_s + reports.cpu_system_s).sum()),
        "subscriber_rss_max_bytes": _largest(reports.max_rss_bytes) if len(reports) else None,
    }


def _cohort(o: Observation, asked: StepSubscribers, accounts: MessageAccounts | None) -> dict[str, Figure]:
    """The columns of the cohort; none without a cohort."""
    if o.plan.cohort.kind == "none":
        return {}
    reports = asked.reports_of(asked.cohort)
    # The losses of a consumer group belong to no single member.
    account = accounts.of(asked.cohort) if accounts and accounts.exact and not o.group else loss.MessageOutcome()
    # The last intervals of a full list may be joined over times in which the subscriber was connected.
    full = bool((reports.absent_counts >= MAX_ABSENT).any())
    absent_ns = total(reports.absent[1::2] - reports.absent[0::2])
    return {
        "cohort": o.plan.cohort.kind,
        "cohort_clients": len(o.cohort),
        "cohort_rate": o.plan.cohort.rate,
        "cohort_loss_pct": account.loss_pct,
        "cohort_undrained_pct": account.pct(account.undrained),
        "cohort_unknown_pct": account.pct(account.unknown),
        "reconnects": total(reports.reconnects),
        "absent_s": None if full else absent_ns / rates.SECOND_NS,
        "cohort_felt": bool(reports.felt.any()) if len(reports) and o.plan.cohort.kind == "slow" else None,
    }
