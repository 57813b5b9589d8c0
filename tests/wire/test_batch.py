"""A relay's batch: the golden files' bytes, back as the same reports; and what no relay can send is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from hydra.model import LAG_BINS, Histogram, LedgerCounts, ProcessUsage, SubscriberReport
from hydra.wire import report_batch
from hydra.wire.buckets import BUCKETS
from hydra.wire.histogram import merge
from hydra.wire.report_validation import MAX_ABSENT, MAX_MISSING_RANGES
from hydra.wire.subscriber_table import EMPTY, SubscriberTable, concatenate, decode, table_of
from tests.golden_vectors.common import GOLDEN

FILES = [pytest.param(json.loads(f.read_text()), id=f.stem) for f in sorted((GOLDEN / "batch").glob("*.json"))]


def reports_of(case: Any) -> dict[int, SubscriberReport]:
    return dict(zip(case["ids"], msgspec.convert(case["reports"], list[SubscriberReport]), strict=True))


def as_table(report: SubscriberReport) -> SubscriberReport:
    """A report as its table has it: without its histograms, and no lags where none is known."""
    known = report.lag_bins_us if set(report.lag_bins_us) - {None} else []
    hot = report.hot and replace(report.hot, latency=Histogram())
    return replace(report, latency=Histogram(), lag_bins_us=known, hot=hot)


@pytest.mark.parametrize("case", FILES)
def test_golden_bytes(case: Any) -> None:
    columns, payload = report_batch.encode(list(reports_of(case).items()), case["cohort"])
    assert [list(c) for c in columns] == case["columns"]
    assert payload.hex() == case["payload"]


@pytest.mark.parametrize("case", FILES)
def test_a_table_tells_what_was_reported(case: Any) -> None:
    reports = reports_of(case)
    table = decode(case["ids"], case["columns"], bytes.fromhex(case["payload"]))
    assert {client: table.report(client) for client in reports} == {c: as_table(r) for c, r in reports.items()}
    assert table.latency == merge(r.latency for c, r in reports.items() if c not in case["cohort"])
    assert table.cohort_latency == merge(r.latency for c, r in reports.items() if c in case["cohort"])
    assert table == table_of(reports, set(case["cohort"]))
    assert table.hot_latency == merge(r.hot.latency for c, r in reports.items() if r.hot and c not in case["cohort"])


@pytest.mark.parametrize("case", FILES)
def test_what_a_report_takes_is_known_before(case: Any) -> None:
    columns = dict(case["columns"])
    sums = sum(8 * columns[f"{name}_{what}"] for name in ("latency", "cohort_latency") for what in ("bounds", "counts"))
    of_all = sum(part.size for part in parts_of(case, len(case["ids"])))
    padding = 2 * 8
    assert len(case["payload"]) / 2 - sums - padding <= of_all


def parts_of(case: Any, count: int) -> list[report_batch.BatchPart]:
    """The batches of ``count`` processes, which have the clients in turn."""
    reports = list(reports_of(case).items())
    parts = [reports[at::count] for at in range(count)]
    encoded = [([client for client, _ in part], *report_batch.encode(part, case["cohort"])) for part in parts if part]
    return [report_batch.BatchPart(*each) for each in encoded]


@pytest.mark.parametrize("count", [1, 2, 3, 100])
@pytest.mark.parametrize("case", FILES)
def test_joined_parts_are_the_golden_bytes(case: Any, count: int) -> None:
    ids, columns, payload = report_batch.join(parts_of(case, count)[::-1])
    assert (ids, [list(c) for c in columns], payload.hex()) == (case["ids"], case["columns"], case["payload"])


# --- tables ----------------------------------------------------------------------------------------------------------


def random_reports(seed: int, ids: Iterable[int]) -> dict[int, SubscriberReport]:
    dice = random.Random(seed)
    (case,) = (f.values[0] for f in FILES if f.id == f"random-{seed % 3}")
    bodies = list(reports_of(case).values())
    return {client: dice.choice(bodies) for client in ids}


def split(reports: Mapping[int, SubscriberReport], of: Callable[[int], int]) -> list[SubscriberTable]:
    return [table_of({c: r for c, r in reports.items() if of(c) == part}) for part in range(max(map(of, reports)) + 1)]


@pytest.mark.parametrize(
    "of", [lambda c: c // 10, lambda c: c % 3, lambda c: 9 - c // 10, lambda c: 0, lambda c: c // 10 * 2]
)
@pytest.mark.parametrize("seed", range(3))
def test_tables_become_one_in_the_order_of_the_ids(seed: int, of: Callable[[int], int]) -> None:
    reports = random_reports(seed, range(100))
    assert concatenate(split(reports, of)) == table_of(reports)


def test_lags_that_one_table_has_and_the_other_lacks() -> None:
    one = random_reports(0, [1])[1]
    lags: list[int | None] = [5, *[None] * (LAG_BINS - 1)]
    reports = {1: replace(one, lag_bins_us=[]), 2: replace(one, lag_bins_us=lags)}
    assert concatenate([table_of({c: r}) for c, r in reports.items()]) == table_of(reports)


def test_a_client_in_two_tables_is_an_error() -> None:
    table = table_of(random_reports(0, [4, 7]))
    with pytest.raises(ValueError, match="several tables"):
        concatenate([table, table_of(random_reports(1, [5, 7]))])


@pytest.mark.parametrize("chosen", [[], [0], [3, 4, 5], [1, 9, 17], list(range(20))])
def test_rows_are_taken_by_number_and_by_mask(chosen: list[int]) -> None:
    reports = random_reports(1, range(40, 60))
    table = table_of(reports)
    taken = table.take(np.array(chosen, np.int64))
    assert taken.ids.tolist() == [40 + n for n in chosen]
    assert [taken.report(40 + n) for n in chosen] == [as_table(reports[40 + n]) for n in chosen]
    assert table.take(np.isin(np.arange(20), chosen)) == taken
    assert taken.latency == table.latency


@pytest.mark.parametrize("most", [1, 7, 20, 99])
def test_parts_are_the_rows_one_after_the_other(most: int) -> None:
    table = table_of(random_reports(1, range(40, 60)))
    parts = list(table.parts(most))
    assert [len(part) for part in parts] == [min(most, 20 - first) for first in range(0, 20, most)]
    assert parts == [table.take(np.arange(first, min(first + most, 20))) for first in range(0, 20, most)]
    assert list(EMPTY.parts(most)) == []


def test_sums_over_the_ledgers_of_each_client() -> None:
    reports = random_reports(2, range(30))
    table = table_of(reports)
    assert table.of_clients(table.received).tolist() == [sum(x.received for x in r.ledgers) for r in reports.values()]


def test_nobody() -> None:
    assert table_of({}) == EMPTY == concatenate([]) == concatenate([EMPTY])
    assert (len(EMPTY), EMPTY.latency, EMPTY.take(np.zeros(0, bool))) == (0, Histogram(), EMPTY)
    with pytest.raises(KeyError):
        EMPTY.report(0)


# --- what is refused -------------------------------------------------------------------------------------------------

LEDGER = LedgerCounts(0, 5, 5, 3, [(0, 1), (4, 4)])
MEMBER = LedgerCounts(1, 2, 2, 0, received_bits="Aw==")
REPORT = SubscriberReport(
    *([LEDGER, MEMBER], 1, 1, 1, 2, 72, 0, Histogram([5, 1, 9, 2], 5, 9), ProcessUsage(0.5, 0.5, 1), 0, [(1, 2)]),
    lag_bins_us=[1] * LAG_BINS,
    system={"a": 1},
)
TWO = {3: REPORT, 4: replace(REPORT, ledgers=[LEDGER])}


def columns_of(reports: Mapping[int, SubscriberReport] = TWO) -> dict[str, Any]:
    """What a batch holds, by the names of its columns."""
    table = table_of(reports, cohort={4})
    return {name: getattr(table, name).copy() for name, _ in report_batch.COLUMNS}


def packed(columns: Mapping[str, Any]) -> tuple[list[tuple[str, int]], bytes]:
    payload = b""
    for values in columns.values():
        payload += values.tobytes()
        payload += bytes(-len(payload) % 8)
    return [(name, len(values)) for name, values in columns.items()], payload


def test_it_is_taken_as_it_is() -> None:
    assert decode([3, 4], *packed(columns_of())) == table_of(TWO, cohort={4})


NAMED = [
    *(
        ("batches", 0, -1),
        ("first_ns", 1, -5),
        ("felt", 0, 2),
        ("drain", 0, 4),
        ("drain", 0, -1),
        ("cpu_user_s", 0, -0.5),
    ),
    *(("cpu_system_s", 1, float("nan")), ("cpu_system_s", 1, float("inf")), ("latency_count", 0, -1)),
    *(("latency_p50_us", 0, -3_600_000_001), ("lag_bins_us", 7, -1), ("absent_counts", 0, -1), ("absent", 0, -1)),
    *(("ledger_counts", 0, 2**62), ("publisher", 0, 2**32), ("received", 1, -2), ("truncated", 0, 2)),
    ("received", 0, 2**63 - 1),  # more than 64 bits with the client's other ledger
    *(("range_counts", 0, -1), ("ranges", 0, -1), ("system", 0, ord("[")), ("latency_bounds", 0, -3_600_000_001)),
    *(("latency_counts", 2, BUCKETS), ("latency_counts", 0, -BUCKETS - 1), ("cohort_latency_counts", 1, 0)),
]
"""An error names the column."""


@pytest.mark.parametrize(
    ("name", "at", "value", "reason"),
    [
        *((name, at, value, name) for name, at, value in NAMED),
        ("absent_counts", 0, 2, "absent"),
        ("absent", 0, 3, "ends before it begins"),
        ("ledger_counts", 0, 1, "items"),
        ("range_counts", 0, 3, "ranges"),
        *(("ranges", 1, 4, "do not rise"), ("ranges", 2, 5, "do not rise"), ("latency_counts", 0, 10, "do not rise")),
        ("bits_bytes", 1, 2, "bits"),
        ("bits", 0, 0, "bits end in zeros"),
        ("bits", 0, 7, "another number"),
        ("system_bytes", 0, 6, "system"),
    ],
)
def test_numbers_that_cannot_be_are_refused(name: str, at: int, value: float, reason: str) -> None:
    columns = columns_of()
    columns[name][at] = value
    with pytest.raises(ValueError, match=reason):
        decode([3, 4], *packed(columns))
    # A relay refuses them before they are joined with the reports of other clients.
    with pytest.raises(ValueError, match=r"column|absent|ranges|bits|system|latency"):
        report_batch.BatchPart([3, 4], *packed(columns))


def test_sums_of_counts_have_64_bits() -> None:
    most = Histogram([5, report_batch.MOST_COUNTED], 5, 5)
    several = [report_batch.encode([(c, replace(REPORT, latency=most))]) for c in range(50)]
    _, columns, payload = report_batch.join([report_batch.BatchPart([c], *each) for c, each in enumerate(several)])
    assert decode(range(50), columns, payload).latency.counts == [5, 50 * report_batch.MOST_COUNTED]
    more = report_batch.encode([(1, replace(REPORT, latency=replace(most, counts=[5, report_batch.MOST_COUNTED + 1])))])
    with pytest.raises(ValueError, match="latency has a count"):
        report_batch.BatchPart([1], *more)


@pytest.mark.parametrize(
    ("name", "length"),
    [
        *((name, 3) for name in ("batches", "cpu_user_s", "absent_counts", "ledger_counts", "system_bytes")),
        *(("batches", 1), ("lag_bins_us", 20), ("absent", 3), ("publisher", 4), ("range_counts", 2), ("ranges", 13)),
        *(("bits", 2), ("system", 13), ("latency_bounds", 0), ("latency_counts", 3), ("cohort_latency_counts", 0)),
        *(("latency_bounds", 1), ("latency_bounds", 4), ("cohort_latency_bounds", 0)),
    ],
)
def test_columns_of_another_length_are_refused(name: str, length: int) -> None:
    columns = columns_of()
    assert len(columns[name]) != length
    columns[name] = np.resize(columns[name], length)
    with pytest.raises(ValueError, match=name.removesuffix("_bounds").removesuffix("_counts")):
        decode([3, 4], *packed(columns))
    with pytest.raises(ValueError, match=name.removesuffix("_bounds").removesuffix("_counts")):
        report_batch.BatchPart([3, 4], *packed(columns))


@pytest.mark.parametrize(
    "change",
    [
        lambda first, other, *more: [("bundles", first[1]), other, *more],
        lambda first, other, *more: [other, first, *more],
        lambda *head: [*head[:-1]],
    ],
    ids=["renamed", "swapped", "short"],
)
def test_other_columns_are_refused(change: Callable[..., list[tuple[str, int]]]) -> None:
    head, payload = packed(columns_of())
    with pytest.raises(ValueError, match="columns are not those"):
        decode([3, 4], change(*head), payload)


@pytest.mark.parametrize("ids", [[], [3], [4, 3], [3, 3], [3, 4, 5], [3, 2**32]])
def test_other_ids_are_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ids|items"):
        decode(ids, *packed(columns_of()))


@pytest.mark.parametrize("length", [0, 8, -8, -1, 1, 8_000_000])
def test_a_payload_of_another_length_is_refused(length: int) -> None:
    head, payload = packed(columns_of())
    changed = payload[:length] if length <= 0 else payload + bytes(length)
    with pytest.raises(ValueError, match="payload"):
        decode([3, 4], head, changed)


def test_padding_is_zeros() -> None:
    head, payload = packed(columns_of())
    text = payload.index(b'{"a":1}{"a":1}')
    with pytest.raises(ValueError, match="something else than zeros"):
        decode([3, 4], head, payload[: text + 14] + b"x" + payload[text + 15 :])


@pytest.mark.parametrize(
    "changes",
    [
        {"absent": [(n, n) for n in range(MAX_ABSENT + 1)]},
        {"ledgers": [replace(LEDGER, missing_ranges=[(2 * n, 2 * n) for n in range(MAX_MISSING_RANGES + 1)])]},
    ],
    ids=["absent", "ranges"],
)
def test_longer_lists_than_there_may_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has a number that is not 0 to"):
        table_of({1: replace(REPORT, **changes)})


def test_more_bits_than_a_report_may_hold_are_refused() -> None:
    head = columns_of({3: REPORT})
    head["bits"] = np.full(200_000, 255, np.uint8)
    head["bits_bytes"][1], head["received"][1] = 200_000, 1_600_000
    with pytest.raises(ValueError, match="longer than 196608 bytes"):
        decode([3], *packed(head))


def test_a_table_may_hold_more_than_fits_into_one_batch() -> None:
    reports = {c: replace(REPORT, batches=c, system={"a": "x" * 10_000}) for c in range(500)}
    bytes_of_all = sum(len(r.system["a"]) for r in reports.values() if r.system)
    assert bytes_of_all > report_batch.MAX_BATCH_BYTES
    table = table_of(reports)
    assert table.batches.tolist() == list(reports)
    assert table.latency == merge([REPORT.latency] * 500)
