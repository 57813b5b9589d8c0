"""Reports of many subscribers as columns."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tests.golden_vectors.common import HIGHEST_US, LAG_BINS, SECOND_NS, START_NS, Case, bitmap, ranges
from tests.golden_vectors.histogram import bucket_of, histogram

DRAIN_ENDS: Final = ("complete", "marked", "quiet", "deadline")
NULL: Final = -(2**63)


def counted(*values_us: int) -> Case:
    """The histogram of these latencies."""
    return {name: of for name, of in histogram([1000 * v for v in values_us]).items() if name != "batches"}


def account(publisher: int = 0, received: int = 0, **more: Any) -> Case:
    """A ledger, as a report holds it."""
    fields: Case = {"publisher": publisher, "received": received, "in_window": received, "missing": 0}
    fields |= {
        "missing_ranges": [],
        "truncated": False,
        "duplicates": 0,
        "reordered": 0,
        "extra": 0,
        "received_bits": "",
    }
    assert more.keys() <= fields.keys()
    return fields | more


def report(*ledgers: Case, **more: Any) -> Case:
    """A subscriber's report, as the field ``subscriber`` of a message holds it."""
    fields: Case = {"ledgers": list(ledgers), "batches": 0, "first_batch": 0, "first_ns": 0, "last_ns": 0, "bytes": 0}
    fields |= {"stale": 0, "latency": counted(), "usage": usage(0.0, 0.0, 0), "undrained": 0, "absent": []}
    fields |= {"reconnects": 0, "felt": True, "drain": "complete", "lag_bins_us": [], "system": None}
    assert more.keys() <= fields.keys() | {"hot"}
    return fields | more


def usage(cpu_user_s: float, cpu_system_s: float, max_rss_bytes: int) -> Case:
    """What a process has used."""
    return {"cpu_user_s": cpu_user_s, "cpu_system_s": cpu_system_s, "max_rss_bytes": max_rss_bytes}


def value_at(percent: int, latency: Case) -> int:
    """The end of the bucket of the value with the rank that a percentile has; 0 where there is none."""
    buckets = [index for index, n in pairs(latency["counts"]) for _ in range(n)]
    if not buckets:
        return 0
    # The highest value at an index is below the lowest at the next: found by trying some.
    wanted = buckets[max(-(-percent * len(buckets) // 100), 1) - 1]
    low: int = latency["min_us"]
    high: int = latency["max_us"]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bucket_of(middle) <= wanted else (low, middle - 1)
    return low


def pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Two by two."""
    return zip(numbers[0::2], numbers[1::2], strict=True)


def added(latencies: Iterable[Case]) -> tuple[list[int], list[int]]:
    """The lowest and highest value of histograms, and the sum of their counts."""
    some = [h for h in latencies if h["counts"]]
    together: dict[int, int] = {}
    for index, n in (pair for h in some for pair in pairs(h["counts"])):
        together[index] = together.get(index, 0) + n
    bounds = [min(h["min_us"] for h in some), max(h["max_us"] for h in some)] if some else []
    return bounds, [number for index in sorted(together) for number in (index, together[index])]


def text_of(system: Case) -> bytes:
    """A system's own figures as JSON in UTF-8."""
    return json.dumps(system, separators=(",", ":"), ensure_ascii=False).encode()


def batch(reports: dict[int, Case], cohort: Sequence[int] = ()) -> Case:
    """The reports of these subscribers, and the columns and the payload of their batch."""
    ids = sorted(reports)
    rows = [reports[client] for client in ids]
    ledgers = [one for row in rows for one in row["ledgers"]]
    bits = [base64.b64decode(one["received_bits"]) for one in ledgers]
    texts = [b"" if r["system"] is None else text_of(r["system"]) for r in rows]
    lags = any(row["lag_bins_us"] for row in rows)
    counts = ("batches", "first_batch", "first_ns", "last_ns", "bytes", "stale", "undrained", "reconnects", "felt")
    columns: list[tuple[str, str, Sequence[Any]]] = [(name, "q", [int(row[name]) for row in rows]) for name in counts]
    columns.append(("drain", "q", [DRAIN_ENDS.index(row["drain"]) for row in rows]))
    for name, kind in (("max_rss_bytes", "q"), ("cpu_user_s", "d"), ("cpu_system_s", "d")):
        columns.append((name, kind, [row["usage"][name] for row in rows]))
    latencies = [row["latency"] for row in rows]
    no_lags = [None] * LAG_BINS
    columns += [
        ("latency_count", "q", [sum(n for _, n in pairs(latency["counts"])) for latency in latencies]),
        ("latency_min_us", "q", [latency["min_us"] for latency in latencies]),
        *((f"latency_p{p}_us", "q", [value_at(p, latency) for latency in latencies]) for p in (50, 99)),
        ("latency_max_us", "q", [latency["max_us"] for latency in latencies]),
        ("lag_bins_us", "q", [NULL if x is None else x for r in rows for x in r["lag_bins_us"] or no_lags] * lags),
        ("absent_counts", "q", [len(row["absent"]) for row in rows]),
        ("absent", "q", [x for row in rows for pair in row["absent"] for x in pair]),
        ("ledger_counts", "q", [len(row["ledgers"]) for row in rows]),
    ]
    for name in ("publisher", "received", "in_window", "missing", "duplicates", "reordered", "extra", "truncated"):
        columns.append((name, "q", [int(one[name]) for one in ledgers]))
    columns += [
        ("range_counts", "q", [len(one["missing_ranges"]) for one in ledgers]),
        ("ranges", "q", [x for one in ledgers for pair in one["missing_ranges"] for x in pair]),
        ("bits_bytes", "q", [len(one) for one in bits]),
        ("bits", "B", b"".join(bits)),
        ("system_bytes", "q", [len(one) for one in texts]),
        ("system", "B", b"".join(texts)),
    ]
    for name, inside in (("latency", False), ("cohort_latency", True)):
        bounds, numbers = added(reports[client]["latency"] for client in ids if (client in cohort) is inside)
        columns += [(f"{name}_bounds", "q", bounds), (f"{name}_counts", "q", numbers)]
    if any("hot" in row for row in rows):
        hot = [row.get("hot", {"expected": 0, "missing": 0, "latency": counted()}) for row in rows]
        columns += [(f"hot_{name}", "q", [one[name] for one in hot]) for name in ("expected", "missing")]
        bounds, numbers = added(one["latency"] for c, one in zip(ids, hot, strict=True) if c not in cohort)
        columns += [("hot_latency_bounds", "q", bounds), ("hot_latency_counts", "q", numbers)]
    payload = b""
    for _, kind, values in columns:
        payload += struct.pack(f"<{len(values)}{kind}", *values)
        payload += bytes(-len(payload) % 8)
    heads = [[name, len(values)] for name, _, values in columns]
    return {"ids": ids, "cohort": list(cohort), "reports": rows, "columns": heads, "payload": payload.hex()}


def lossy(seed: int) -> dict[int, Case]:
    """Subscribers with all that a report can hold, at random."""
    dice = random.Random(seed)
    reports: dict[int, Case] = {}
    for client in sorted(dice.sample(range(2**32), 12)):
        latencies = [dice.choice([-1, 1, 1]) * dice.randrange(10 ** dice.randrange(1, 7)) for _ in range(30)]
        ledgers = []
        for publisher in range(dice.randrange(4)):
            gaps = ranges(dice.sample(range(500), dice.randrange(30)))
            counts = {name: dice.randrange(9) for name in ("duplicates", "reordered", "extra", "in_window", "missing")}
            more: Case = {"missing_ranges": gaps, "truncated": dice.choice([True, False]), **counts}
            ledgers.append(account(publisher, dice.randrange(2**40), **more))
        reports[client] = report(
            *ledgers,
            batches=dice.randrange(99),
            first_batch=dice.randrange(99),
            first_ns=START_NS + dice.randrange(SECOND_NS),
            last_ns=START_NS + 9 * SECOND_NS,
            bytes=dice.randrange(2**50),
            stale=dice.randrange(3),
            latency=counted(*latencies[: dice.choice([0, 1, 30])]),
            usage=usage(dice.randrange(64) / 8, 0.25, dice.randrange(2**35)),
            undrained=dice.randrange(3),
            absent=[[START_NS + n, START_NS + n + 5] for n in range(0, 100 * dice.randrange(3), 50)],
            reconnects=dice.randrange(3),
            felt=dice.choice([True, False]),
            drain=dice.choice(DRAIN_ENDS),
            lag_bins_us=[dice.choice([None, dice.randrange(10**6)]) for _ in range(dice.choice([0, LAG_BINS]))],
            system=dice.choice([None, {}, {"rebalance_ms": 2.5, "rebalances": 3}]),
        )
    return reports


def batches() -> dict[str, Case]:
    """By name."""
    plain = report(account(received=3), batches=2, first_batch=1, first_ns=START_NS, last_ns=START_NS + 7, bytes=72)
    largest = 2**63 - 1
    member = [account(7, 3, extra=1, received_bits=bitmap([0, 1, 5, 9])), account(8, 1, received_bits=bitmap([2]))]
    bins = [0, *[None] * 18, HIGHEST_US]
    hundred = counted(*range(5, 5 * 101, 5))
    return {
        "one": batch({1: plain}),
        "nothing-received": batch({5: report()}),
        "a-histogram": batch({1: report(latency=hundred)}),
        # The middle of two values is the first, of three the second; the 99th percentile of 151 is the 150th.
        "the-rank-of-a-percentile": batch(
            {n: report(latency=counted(*range(10, 10 * n + 1, 10))) for n in (1, 2, 3, 49, 50, 51, 149, 150, 151)}
        ),
        "the-end-of-a-bucket": batch({1: report(latency=counted(4_097, 4_098, 5_000_001))}),
        "below-zero": batch({1: report(latency=counted(-5_003, -4, 9)), 2: report(latency=counted(-7_000))}),
        "a-cohort": batch(
            {n: report(latency=counted(n, 10 * n, 3000 * n)) for n in range(1, 6)} | {6: report()}, cohort=[2, 5, 6]
        ),
        "all-in-the-cohort": batch({n: report(latency=counted(n)) for n in (3, 4)}, cohort=[3, 4]),
        "ranges": batch(
            {
                1: report(account(received=5, missing=6, missing_ranges=[[0, 2], [7, 9]])),
                2: report(account(received=11)),
                3: report(account(4, 8, missing=3, missing_ranges=[[0, 2]], truncated=True), account(9, 1)),
            }
        ),
        "absent": batch({1: report(absent=[[5, 9], [20, 20]], reconnects=2, felt=False), 3: plain}),
        "lags-of-one": batch({1: report(), 2: report(lag_bins_us=bins), 3: report(lag_bins_us=[None] * 20)}),
        "members": batch({1: report(*member), 2: report(account(7, truncated=True)), 3: report(member[1])}),
        "a-system-of-its-own": batch({1: report(system={"a": [1, "ä"], "b": None}), 2: report(), 3: report(system={})}),
        "hot-topics": batch(
            {
                1: report(
                    account(received=9, missing=3), hot={"expected": 8, "missing": 2, "latency": counted(7, 900)}
                ),
                4: report(account(received=4), hot={"expected": 0, "missing": 0, "latency": counted()}),
                5: report(account(received=6), hot={"expected": 3, "missing": 0, "latency": counted(7, 8, 31)}),
            },
            cohort=[5],
        ),
        "how-drains-end": batch({n: report(drain=end) for n, end in enumerate(DRAIN_ENDS)}),
        "as-large-as-may-be": batch(
            {
                2**32 - 1: report(
                    account(2**32 - 1, largest, missing_ranges=[[largest - 1, largest]], missing=2),
                    **dict.fromkeys(("batches", "bytes", "undrained"), largest),
                    absent=[[0, largest]],
                    usage=usage(1e9, 0.5, largest),
                )
            }
        ),
        **{f"random-{seed}": batch(lossy(seed), sorted(lossy(seed))[::3]) for seed in range(3)},
    }
