from __future__ import annotations

from hydra.client.relayed_replies import BATCHED_WITHIN_NS, ReportBatch, ReportBatches
from hydra.model import Histogram, LedgerCounts, ProcessUsage, SubscriberReport
from hydra.wire import subscriber_table
from hydra.wire.report_batch import BATCH_BYTES, report_bytes


def report(received: int = 1, ranges: int = 0, latency_us: int | None = None) -> SubscriberReport:
    missing = [(10 * n, 10 * n) for n in range(ranges)]
    ledger = LedgerCounts(publisher=7, received=received, in_window=0, missing=ranges, missing_ranges=missing)
    latency = Histogram() if latency_us is None else Histogram([latency_us, 1], latency_us, latency_us)
    return SubscriberReport([ledger], *(1, 1, 1, 2, 0, 0), latency=latency, usage=ProcessUsage())


def rows(made: ReportBatch) -> subscriber_table.SubscriberTable:
    return subscriber_table.decode(made.head.ids, made.head.columns, made.payload)


def test_reports_wait_for_each_other_and_are_one_batch_by_id() -> None:
    batching = ReportBatches()
    for client in (3, 1, 2):
        assert batching.add(9, client, report(client), frozenset(), 100 * client) == []
    assert batching.next_ns() == 300 + BATCHED_WITHIN_NS
    (made,) = batching.flush(9, frozenset())
    assert (made.head.ids, made.head.epoch) == ([1, 2, 3], 9)
    assert rows(made).received.tolist() == [1, 2, 3]
    assert batching.next_ns() is None
    assert batching.flush(9, frozenset()) == []


def test_a_cohort_is_summed_apart() -> None:
    batching = ReportBatches()
    for client in (1, 2, 3):
        batching.add(1, client, report(latency_us=client), {2}, 0)
    (made,) = batching.flush(1, {2})
    assert rows(made).latency.counts == [1, 1, 3, 1]
    assert rows(made).cohort_latency.counts == [2, 1]


def test_a_batch_is_full_before_the_next_report_would_make_it_too_long() -> None:
    batching = ReportBatches()
    long = report(ranges=256)
    most = BATCH_BYTES // report_bytes(long)
    sent = [made for client in range(most + 2) for made in batching.add(1, client, long, frozenset(), 0)]
    (made,) = sent
    assert made.head.ids == list(range(most))
    assert len(made.payload) <= BATCH_BYTES
    (rest,) = batching.flush(1, frozenset())
    assert rest.head.ids == [most, most + 1]


def test_a_report_that_is_too_long_by_itself_goes_alone() -> None:
    batching = ReportBatches()
    short, long = report(), report()
    long.ledgers.extend(report(ranges=256).ledgers * (BATCH_BYTES // 4000))
    assert report_bytes(long) > BATCH_BYTES
    assert batching.add(1, 1, short, frozenset(), 0) == []
    assert [made.head.ids for made in batching.add(1, 2, long, frozenset(), 0)] == [[1], [2]]


def test_the_first_report_counts_and_its_batch_stays_as_it_is() -> None:
    batching = ReportBatches()
    batching.add(1, 1, report(), frozenset(), 0)
    batching.add(1, 2, report(), frozenset(), 0)
    assert batching.add(1, 2, report(), frozenset(), 0) == []
    (made,) = batching.flush(1, frozenset())
    assert batching.add(1, 2, report(received=5), frozenset(), 0) == []
    assert batching.of([1, 2, 3]) == [made]
    assert batching.of([3]) == []
    batching.clear()
    assert batching.of([1]) == []
