from __future__ import annotations

from collections.abc import Container

from hydra.client.relayed_replies import BATCHED_WITHIN_NS, ReportBatch, ReportBatches
from hydra.model import Histogram, LedgerCounts, ProcessUsage, SubscriberReport
from hydra.wire import subscriber_table
from hydra.wire.report_batch import BATCH_BYTES, BatchPart, encode


def report(received: int = 1, ranges: int = 0, latency_us: int | None = None) -> SubscriberReport:
    missing = [(10 * n, 10 * n) for n in range(ranges)]
    ledger = LedgerCounts(publisher=7, received=received, in_window=0, missing=ranges, missing_ranges=missing)
    latency = Histogram() if latency_us is None else Histogram([latency_us, 1], latency_us, latency_us)
    return SubscriberReport([ledger], *(1, 1, 1, 2, 0, 0), latency=latency, usage=ProcessUsage())


def part(*ids: int, body: SubscriberReport | None = None, cohort: Container[int] = ()) -> BatchPart:
    """The reports of these clients, each of another number of messages unless they are all this one."""
    return BatchPart(ids, *encode([(client, body or report(client)) for client in ids], cohort))


def rows(made: ReportBatch) -> subscriber_table.SubscriberTable:
    return subscriber_table.decode(made.head.ids, made.head.columns, made.payload)


def test_reports_wait_for_each_other_and_are_one_batch_by_id() -> None:
    batching = ReportBatches()
    for client in (3, 1, 2):
        assert batching.add(9, part(client), 100 * client) == []
    assert batching.next_ns() == 300 + BATCHED_WITHIN_NS
    (made,) = batching.flush(9)
    assert (made.head.ids, made.head.epoch) == ([1, 2, 3], 9)
    assert rows(made).received.tolist() == [1, 2, 3]
    assert batching.next_ns() is None
    assert batching.flush(9) == []


def test_a_cohort_is_summed_apart() -> None:
    batching = ReportBatches()
    for client in (1, 2, 3):
        batching.add(1, part(client, body=report(latency_us=client), cohort={2}), 0)
    (made,) = batching.flush(1)
    assert rows(made).latency.counts == [1, 1, 3, 1]
    assert rows(made).cohort_latency.counts == [2, 1]


def test_a_batch_is_full_before_the_next_report_would_make_it_too_long() -> None:
    batching = ReportBatches()
    long = report(ranges=256)
    most = BATCH_BYTES // part(1, body=long).size
    sent = [made for client in range(most + 2) for made in batching.add(1, part(client, body=long), 0)]
    (made,) = sent
    assert made.head.ids == list(range(most))
    assert len(made.payload) <= BATCH_BYTES
    (rest,) = batching.flush(1)
    assert rest.head.ids == [most, most + 1]


def test_a_report_that_is_too_long_by_itself_goes_alone() -> None:
    batching = ReportBatches()
    long = report()
    long.ledgers.extend(report(ranges=256).ledgers * (BATCH_BYTES // 4000))
    assert part(2, body=long).size > BATCH_BYTES
    assert batching.add(1, part(1), 0) == []
    assert [made.head.ids for made in batching.add(1, part(2, body=long), 0)] == [[1], [2]]


def test_a_batch_stays_as_it_is() -> None:
    batching = ReportBatches()
    batching.add(1, part(1), 0)
    batching.add(1, part(2, 5), 0)
    assert [batching.holds(client) for client in (1, 2, 3)] == [True, True, False]
    assert batching.of([1]) == []
    (made,) = batching.flush(1)
    assert batching.of([1, 2, 3]) == [made]
    assert batching.of([3]) == []
    batching.clear()
    assert batching.of([1]) == []
    assert not batching.holds(1)
