"""Makes tests/golden/{clock,pacer,ledger,lag,histogram,acks,payload,batch}: what goes in and must come out.

Every client is held to them. The answers come from plain models (fractions, lists and sets of numbers) that know
nothing of how Python's or C++'s code does it. ``python -m tests.golden_vectors`` writes the files anew.
"""

from __future__ import annotations

import base64
import json
import math
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

GOLDEN: Final = Path(__file__).parent / "golden"
SECOND_NS: Final = 10**9
START_NS: Final = 1_767_225_600 * SECOND_NS
GRACE_NS: Final = 5_000_000
LAG_BINS: Final = 20
HIGHEST_US: Final = 3_600_000_000
MOST_CHARACTERS: Final = 262_144
MOST_MISSING: Final = 256
MARK: Final = 2**63

Case = dict[str, Any]
Ranges = list[list[int]]


def ranges(numbers: Iterable[int], *, apart_at: int | None = None) -> Ranges:
    """Numbers as [first, last] ranges; a range ends before ``apart_at``."""
    them: Ranges = []
    for n in sorted(numbers):
        if them and them[-1][1] == n - 1 and n != apart_at:
            them[-1][1] = n
        else:
            them.append([n, n])
    return them


def bitmap(numbers: Iterable[int]) -> str:
    """Numbers as a bitmap in base64."""
    one = 0
    for n in numbers:
        one |= 1 << n
    return base64.b64encode(one.to_bytes((one.bit_length() + 7) // 8, "little")).decode()


# --- clock -----------------------------------------------------------------------------------------------------------


def clock(at_ns: int, step_ns: int, rate_ppb: int, distances_ns: Sequence[int]) -> Case:
    """A host's clock: [reading, the step's time] and [the step's time, reading], so far (ns) from the given pair."""
    rate = Fraction(rate_ppb, SECOND_NS)
    return {
        "at_ns": at_ns,
        "step_ns": step_ns,
        "rate_ppb": rate_ppb,
        "times": [[at_ns + d, step_ns + d + math.floor(d * rate)] for d in distances_ns],
        "readings": [[step_ns + d, at_ns + d - math.floor(d * rate / (1 + rate))] for d in distances_ns],
    }


def clocks() -> dict[str, Case]:
    """By name."""
    near = [0, 1, -1, 999, -999, 1_000_000_007, -1_000_000_007, 10 * SECOND_NS, -10 * SECOND_NS]
    # A product with the rate takes more than 64 bits from a quarter of an hour on.
    far = [3600 * SECOND_NS + 1, 86_400 * SECOND_NS + 3, 400 * 86_400 * SECOND_NS + 7, -7_200 * SECOND_NS - 5]
    return {
        "one-host": clock(5_000 * SECOND_NS, START_NS, 0, [*near, *far]),
        "faster": clock(90_000 * SECOND_NS, START_NS, 500_000, [*near, *far]),
        "slower": clock(90_000 * SECOND_NS, START_NS, -500_000, [*near, *far]),
        "by-one": clock(90_000 * SECOND_NS, START_NS, 1, [*near, *far]),
        "by-minus-one": clock(90_000 * SECOND_NS, START_NS, -1, [*near, *far]),
        "as-fast-as-may-be": clock(90_000 * SECOND_NS, START_NS, 10_000_000, [*near, *far]),
        "as-slow-as-may-be": clock(90_000 * SECOND_NS, START_NS, -10_000_000, [*near, *far]),
        "just-booted": clock(0, START_NS, -20_001, [0, 1, 2, 49_997, 49_998, SECOND_NS]),
    }


# --- pacer -----------------------------------------------------------------------------------------------------------


def pacer(
    rate: float | str, seconds: float, burst: int, acts: Sequence[tuple[str, int]], *, messages: int | None = None
) -> Case:
    """A schedule that is asked at some times (ns since the start), advanced, and perhaps stopped early."""
    stop_ns = START_NS + round(seconds * SECOND_NS)
    exact = None if rate == "max" else Fraction(rate).limit_denominator(10**6) or Fraction(rate)
    sent = 0
    steps: list[Case] = []

    def due_ns(n: int) -> int:
        assert exact is not None
        return START_NS + int(n * SECOND_NS / exact)

    def scheduled() -> int:
        n = 0 if exact is None else max(int((stop_ns - START_NS) * exact / SECOND_NS) - 2, 0)
        while exact is not None and due_ns(n) < stop_ns:
            n += 1
        return n if messages is None else min(n, messages)

    def done(now_ns: int) -> bool:
        if exact is None:
            return now_ns >= stop_ns or (messages is not None and sent >= messages)
        if sent >= scheduled():
            return True
        late = now_ns >= stop_ns + GRACE_NS or due_ns(sent) < stop_ns - GRACE_NS
        return now_ns >= stop_ns and late

    for act, number in acts:
        if act == "advance":
            sent += number
            steps.append({"advance": number})
            continue
        if act == "stop":
            stop_ns = min(stop_ns, START_NS + number)
            steps.append({"stop_at_ns": START_NS + number})
            continue
        now_ns = START_NS + number
        due = 0
        if now_ns >= START_NS and not done(now_ns):
            due = burst if messages is None else min(burst, messages - sent)
            if exact is not None:
                waiting = 0
                while waiting < burst and sent + waiting < scheduled() and due_ns(sent + waiting) <= now_ns:
                    waiting += 1
                due = waiting
        following = due_ns(sent) if exact is not None and sent < scheduled() else None
        steps.append(
            {
                "at_ns": now_ns,
                "done": done(now_ns),
                "due": due,
                "times": [now_ns if exact is None else due_ns(sent + k) for k in range(min(due, 5))],
                "next_due_ns": following,
                "lag_ns": 0 if following is None else max(now_ns - following, 0),
            }
        )
    window = {"start_ns": START_NS, "stop_ns": START_NS + round(seconds * SECOND_NS)}
    limit = {} if messages is None else {"messages": messages}
    return {"rate": rate, **window, "burst": burst, **limit, "steps": steps}


def pacers() -> dict[str, Case]:
    """By name."""
    ms = 1_000_000
    ask = "ask"
    return {
        "steady": pacer(
            1000.0,
            1.0,
            10,
            [
                (ask, -1),
                (ask, 0),
                ("advance", 1),
                (ask, ms - 1),
                (ask, ms),
                (ask, 500 * ms),
                ("advance", 10),
                (ask, 500 * ms),
            ],
        ),
        "a-third": pacer(
            1e6 / 3,
            0.01,
            100,
            [(ask, 2), (ask, 3 * ms), ("advance", 7), (ask, 3 * ms), ("advance", 993), (ask, 3 * ms)],
        ),
        "fraction-with-a-large-denominator": pacer(
            999.999, 100.0, 100, [(ask, 0), ("advance", 99_990), (ask, 99_990 * ms), (ask, 100_000 * ms)]
        ),
        "slower-than-one-a-second": pacer(
            0.3,
            10.0,
            5,
            [(ask, 0), ("advance", 1), (ask, 3_333 * ms), (ask, 3_334 * ms), ("advance", 2), (ask, 9_999 * ms)],
        ),
        "days-without-drift": pacer(
            3.0, 1_000_000.0, 100, [("advance", 2_999_997), (ask, 999_999 * SECOND_NS), (ask, 999_999 * SECOND_NS - 1)]
        ),
        "kept-up-at-the-end": pacer(
            1000.0, 1.0, 100, [("advance", 998), (ask, 1000 * ms + 1), (ask, 1005 * ms - 1), (ask, 1005 * ms)]
        ),
        "behind-at-the-end": pacer(1000.0, 1.0, 100, [("advance", 900), (ask, 1000 * ms - 1), (ask, 1000 * ms)]),
        "complete": pacer(1000.0, 1.0, 100, [("advance", 1000), (ask, 900 * ms), (ask, 1000 * ms)]),
        "stopped-early": pacer(
            1000.0,
            1.0,
            100,
            [
                ("advance", 500),
                ("stop", 2000 * ms),
                (ask, 510 * ms),
                ("stop", 510 * ms),
                (ask, 509 * ms),
                (ask, 510 * ms),
                (ask, 515 * ms),
            ],
        ),
        "max": pacer(
            "max",
            1.0,
            100,
            [(ask, -1), (ask, 0), ("advance", 100), (ask, 7), ("stop", 500 * ms), (ask, 500 * ms - 1), (ask, 500 * ms)],
        ),
        "so-many-messages": pacer(
            1000.0,
            1.0,
            100,
            [(ask, 0), ("advance", 20), (ask, 500 * ms), ("advance", 10), (ask, 31 * ms), ("stop", 500 * ms), (ask, 0)],
            messages=30,
        ),
        "more-messages-than-the-window-takes": pacer(
            1000.0, 1.0, 100, [("advance", 998), (ask, 999 * ms), ("advance", 2), (ask, 999 * ms)], messages=2000
        ),
        "so-many-messages-stopped-early": pacer(
            1000.0, 1.0, 100, [("advance", 20), ("stop", 25 * ms), (ask, 24 * ms), (ask, 25 * ms)], messages=30
        ),
        "so-many-messages-at-max": pacer(
            "max", 1.0, 100, [(ask, 0), ("advance", 240), (ask, 7), ("advance", 10), (ask, 8)], messages=250
        ),
        "more-messages-at-max-than-the-window-takes": pacer(
            "max", 1.0, 100, [("advance", 240), (ask, 1000 * ms - 1), (ask, 1000 * ms)], messages=2**62
        ),
        "max-one-by-one": pacer("max", 1.0, 1, [(ask, 0), ("advance", 1), (ask, 999 * ms), (ask, 1000 * ms)]),
    }


# --- ledger ----------------------------------------------------------------------------------------------------------

Run = tuple[int, int, int, int]
"""Epoch, publisher, first sequence, number of messages in a row."""
EPOCH: Final = 6


def ledger(
    publishers: Sequence[int],
    batches: Sequence[tuple[int, Sequence[Run]]],
    sent: Sequence[tuple[int, int, Ranges]],
    *,
    window_end_ns: int = 1000,
    member: bool = False,
) -> Case:
    """Batches read at some times, and the account against what was sent."""
    arrived: dict[int, list[int]] = {p: [] for p in publishers}
    inside: dict[int, set[int]] = {p: set() for p in publishers}
    proven: set[int] = set()
    marked: set[int] = set()
    messages = stale = 0
    over = False
    for now_ns, runs in batches:
        over = over or now_ns > window_end_ns
        for epoch, publisher, first, count in runs:
            for n in range(first, first + count):
                if epoch == EPOCH and publisher in arrived and n < MARK:
                    messages += 1
                    arrived[publisher].append(n)
                    if not over:
                        inside[publisher].add(n)
                elif epoch != 0:
                    stale += 1
                elif n < MARK:
                    proven |= {publisher} if n >= EPOCH else set()
                elif n == MARK + EPOCH:
                    marked.add(publisher)
    ledgers = []
    ends = True
    room = MOST_CHARACTERS
    for publisher, count, holes in sent:
        came = arrived.get(publisher, [])
        seen = set(came)
        expected = set(range(count)) - {n for a, b in holes for n in range(a, b + 1)}
        missing = expected - seen
        behind = max(came, default=-1) + 1
        # Where what is missing before the last arrival and after it touch, they are two ranges all the same; a hole in
        # what is expected keeps them apart as well.
        gaps = ranges(missing, apart_at=behind)
        bits = bitmap(seen) if member and max(seen, default=0) < 8 * MOST_CHARACTERS else ""
        fits = member and len(bits) <= room and max(seen, default=0) < 8 * MOST_CHARACTERS
        room -= len(bits) if fits else 0
        highest = -1
        reordered = 0
        known: set[int] = set()
        for n in came:
            reordered += n not in known and n < highest
            known.add(n)
            highest = max(highest, n)
        ends = ends and max(expected, default=-1) < behind
        ledgers.append(
            {
                "publisher": publisher,
                "received": len(expected & seen),
                "in_window": len(expected & inside.get(publisher, set())),
                "missing": 0 if member else len(missing),
                "missing_ranges": [] if member else gaps[:MOST_MISSING],
                "truncated": not fits if member else len(gaps) > MOST_MISSING,
                "duplicates": len(came) - len(seen),
                "reordered": reordered,
                "extra": len(seen - expected),
                "received_bits": bits if fits else "",
            }
        )
    return {
        "epoch": EPOCH,
        "publishers": list(publishers),
        "window_end_ns": window_end_ns,
        "batches": [{"now_ns": now_ns, "runs": [list(run) for run in runs]} for now_ns, runs in batches],
        "sent": [{"publisher": p, "sent": n, "unacknowledged": holes} for p, n, holes in sent],
        "member": member,
        "messages": messages,
        "stale": stale,
        "proven": set(publishers) <= proven,
        "marked": bool(sent) and {p for p, _, _ in sent} <= marked & set(publishers),
        "has_last": ends,
        "ledgers": ledgers,
    }


def mixed(seed: int, *, member: bool = False) -> Case:
    """Two publishers in disorder, with duplicates, strangers and other epochs."""
    dice = random.Random(seed)
    batches: list[tuple[int, list[Run]]] = []
    for n in range(12):
        runs: list[Run] = []
        for _ in range(dice.randrange(1, 8)):
            epoch = dice.choice([EPOCH] * 12 + [EPOCH - 1, 0])
            publisher = dice.choice([0, 0, 0, 1, 1, 9])
            runs.append((epoch, publisher, dice.randrange(300), dice.choice([1, 1, 2, 3, 40])))
        batches.append((900 + 20 * n, runs))
    sent: list[tuple[int, int, Ranges]] = [(0, 310, [[5, 9], [100, 180]]), (1, 250, [])]
    return ledger([0, 1], batches, sent, member=member)


def ledgers() -> dict[str, Case]:
    """By name."""
    e = EPOCH
    odd = [(1, [(e, 0, n, 1)]) for n in range(1, 1200, 2)]
    third = [(1, [(e, 0, 3 * n, 1)]) for n in range(1100)]
    marks: list[Run] = [(0, 0, MARK + e, 1), (0, 1, MARK + e - 1, 1)]
    return {
        "whole-and-in-order": ledger([0], [(1, [(e, 0, 0, 60)]), (2, [(e, 0, 60, 40)])], [(0, 100, [])]),
        "nothing-came": ledger([0], [], [(0, 100, []), (5, 3, [])]),
        "nothing-was-sent": ledger([0], [], [(0, 0, [])]),
        "holes-and-duplicates": ledger(
            [0, 1],
            [(1, [(e, 0, 0, 10), (e, 0, 5, 1), (e, 0, 20, 30), (e, 1, 3, 5)]), (2, [(e, 0, 12, 3), (e, 0, 0, 2)])],
            [(0, 60, []), (1, 10, [])],
        ),
        "late": ledger(
            [0], [(1000, [(e, 0, 0, 10)]), (1001, [(e, 0, 20, 10)]), (999, [(e, 0, 10, 10)])], [(0, 30, [])]
        ),
        "strangers-and-other-epochs": ledger(
            [0], [(1, [(e - 1, 0, 0, 3), (e, 0, 0, 4), (e, 7, 0, 5), (e + 1, 0, 4, 2)])], [(0, 4, [])]
        ),
        "unacknowledged-are-extra": ledger(
            [0], [(1, [(e, 0, 0, 7), (e, 0, 9, 21), (e, 0, 31, 69)])], [(0, 100, [[8, 9], [40, 44]])]
        ),
        "beyond-what-was-sent": ledger([0], [(1, [(e, 0, 0, 12), (e, 0, 20, 1)])], [(0, 10, [])]),
        "touching-ranges": ledger([0], [(1, [(e, 0, 3, 2)])], [(0, 10, [])]),
        "more-ranges-than-are-listed": ledger([0], odd, [(0, 1200, [])]),
        "probes-prove": ledger([0, 1], [(1, [(0, 0, e, 1), (0, 1, e + 1, 1)])], [(0, 0, []), (1, 0, [])]),
        "probes-of-before-do-not": ledger([0, 1], [(1, [(0, 0, e - 1, 1), (0, 1, e, 1)])], [(0, 0, [])]),
        "marked-by-one": ledger([0, 1], [(1, [*marks, (e, 0, 0, 3)])], [(0, 5, [])]),
        "not-marked-by-both": ledger([0, 1], [(1, marks)], [(0, 5, []), (1, 5, [])]),
        "sequences-of-64-bits": ledger([0], [(1, [(e, 0, MARK, 2), (e, 0, MARK - 1, 1)])], [(0, 2, [])]),
        "member": ledger([0], [(1, [(e, 0, 0, 10), (e, 0, 12, 3), (e, 0, 4, 1)])], [(0, 100, [[13, 13]])], member=True),
        "member-of-whom-nothing-is-told": ledger([0], [], [(0, 100, [])], member=True),
        "member-with-every-third": ledger([0], third, [(0, 4000, [])], member=True),
        "member-of-bytes-to-the-end": ledger([0], [(1, [(e, 0, 7, 1), (e, 0, 15, 1)])], [(0, 100, [])], member=True),
        "member-with-more-than-fits": ledger(
            [0, 1], [(1, [(e, 0, 0, 3), (e, 0, 1_572_864, 1), (e, 1, 5, 2)])], [(0, 10, []), (1, 10, [])], member=True
        ),
        "member-with-more-than-fits-together": ledger(
            [0, 1, 2],
            [(1, [(e, 1, 0, 2), (e, 0, 6, 1), (e, 1, 1_572_863, 1), (e, 2, 7, 2)])],
            [(0, 10, []), (1, 10, []), (2, 10, [])],
            member=True,
        ),
        "member-far-beyond": ledger([0], [(1, [(e, 0, MARK - 1, 1)])], [(0, 10, [])], member=True),
        **{f"mixed-{seed}": mixed(seed) for seed in range(4)},
        "mixed-member": mixed(4, member=True),
    }


# --- lag -------------------------------------------------------------------------------------------------------------


def lag(window_ns: int, batches: Sequence[tuple[int, int]]) -> Case:
    """Batches read at some times (ns since the start), with the age of their newest message."""
    ages: list[list[int]] = [[] for _ in range(LAG_BINS)]
    part_ns = max(window_ns // LAG_BINS, 1)
    for at_ns, age_ns in batches:
        if 0 <= at_ns // part_ns < LAG_BINS:
            ages[at_ns // part_ns].append(min(max(age_ns // 1000, 0), HIGHEST_US))
    return {
        "start_ns": START_NS,
        "stop_ns": START_NS + window_ns,
        "batches": [[START_NS + at_ns, age_ns] for at_ns, age_ns in batches],
        "means_us": [sum(part) // len(part) if part else None for part in ages],
    }


def lags() -> dict[str, Case]:
    """By name."""
    dice = random.Random(7)
    growing = [(n * 7_000_000, n * 50_000 + dice.randrange(20_000)) for n in range(280)]
    return {
        "nothing-read": lag(2 * SECOND_NS, []),
        "means-are-rounded-down": lag(2 * SECOND_NS, [(0, 1000), (1, 2000), (99_999_999, 1999), (100_000_000, 5000)]),
        "outside-the-window": lag(2 * SECOND_NS, [(-1, 1000), (2 * SECOND_NS - 1, 7000), (2 * SECOND_NS, 1000)]),
        "ages-are-clamped": lag(2 * SECOND_NS, [(0, -1000), (1, -5), (SECOND_NS, 2**62), (SECOND_NS + 1, 2**62)]),
        "a-window-shorter-than-its-parts": lag(5, [(n, 1000 * n) for n in range(30)]),
        "a-window-that-cannot-be-divided": lag(1_000_000_007, [(n * 50_000_000, 1000 * n) for n in range(21)]),
        "growing": lag(2 * SECOND_NS, growing),
    }


# --- histogram -------------------------------------------------------------------------------------------------------


def bucket_of(value_us: int) -> int:
    """The index at which a value is counted: the values of a width of 2, 4, 8 … µs share one; below zero mirrored."""
    if value_us < 0:
        return -1 - bucket_of(-value_us)
    width, index = 1, value_us
    while index // width >= 2048:
        width *= 2
    return index // width + 1024 * (width.bit_length() - 1)


def histogram(*batches: Sequence[int]) -> Case:
    """Batches of latencies (ns), each read at one moment."""
    now_ns = START_NS
    read, counts, values = [], dict[int, int](), list[int]()
    for latencies in batches:
        read.append({"now_ns": now_ns, "times_ns": [now_ns - ns for ns in latencies]})
        now_ns += 1_000_001
        for ns in latencies:
            value = max(min(ns // 1000, HIGHEST_US), -HIGHEST_US)
            values.append(value)
            counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    return {
        "batches": read,
        "counts": [number for index in sorted(counts) for number in (index, counts[index])],
        "min_us": min(values, default=0),
        "max_us": max(values, default=0),
    }


def histograms() -> dict[str, Case]:
    """By name."""
    dice = random.Random(11)
    us, hour_ns = 1000, HIGHEST_US * 1000
    edges = [1, 2, 2047, 2048, 2049, 4095, 4096, 4099, 100_000, 2**31, HIGHEST_US - 1, HIGHEST_US]
    around = [dice.randrange(-3_000_000, 9_000_000) for _ in range(200)]
    sizes = [dice.choice([-1, 1]) * dice.randrange(10 ** dice.randrange(15)) for _ in range(300)]
    return {
        "nothing": histogram([]),
        "rounded-down": histogram([0, 1, 999, 1000, 1999, 2000]),
        "rounded-down-below-zero": histogram([-1, -999, -1000, -1001, -2000, -2001]),
        "the-ends-of-buckets": histogram([us * edge for edge in edges]),
        "the-ends-of-buckets-below-zero": histogram([-us * edge for edge in edges]),
        "beyond-an-hour": histogram([hour_ns, hour_ns + us, 2 * hour_ns], [1000]),
        "beyond-an-hour-below-zero": histogram([-hour_ns, -hour_ns - 1, -2 * hour_ns], [1000]),
        "all-below-zero": histogram([-5_000_000], [-7_000_000] * 40),
        "zero-among-both-sides": histogram([-3000, 0, 3000], [0], [-1]),
        "many-at-once-around-zero": histogram(around),
        "the-same-one-by-one": histogram(*([ns] for ns in around)),
        "many-at-once-of-all-sizes": histogram(sizes),
    }


# --- acknowledgements ------------------------------------------------------------------------------------------------

Act = tuple[str, int, int]
"""``accept``, 0, count; or ``acknowledge`` or ``fail``, first, count: every partitions-th sequence from the first."""


def acks(partitions: int, acts: Sequence[Act]) -> Case:
    """Answers in any order; the first one to a sequence counts."""
    accepted = repeated = 0
    answers: dict[int, str] = {}
    for act, first, count in acts:
        if act == "accept":
            accepted += count
            continue
        for n in range(first, first + count * partitions, partitions):
            assert n < accepted
            repeated += n in answers
            answers.setdefault(n, act)
    good = {n for n, answer in answers.items() if answer == "acknowledge"}
    return {
        "partitions": partitions,
        "acts": [list(act) for act in acts],
        "acknowledged": len(good),
        "failed": len(answers) - len(good),
        "pending": accepted - len(answers),
        "repeated": repeated,
        "unacknowledged": ranges(set(range(accepted)) - good),
    }


def answered(seed: int, partitions: int) -> Case:
    """Answers at random."""
    dice = random.Random(seed)
    acts: list[Act] = [("accept", 0, 30)]
    accepted = 30
    for _ in range(60):
        act = dice.choice(["accept", "acknowledge", "acknowledge", "acknowledge", "fail"])
        first = dice.randrange(accepted)
        most = (accepted - 1 - first) // partitions + 1
        count = dice.randrange(1, 12) if act == "accept" else dice.randrange(1, min(most, 9) + 1)
        accepted += count if act == "accept" else 0
        acts.append((act, 0 if act == "accept" else first, count))
    return acks(partitions, acts)


def acknowledgements() -> dict[str, Case]:
    """By name."""
    return {
        "nothing-sent": acks(1, []),
        "in-order": acks(1, [("accept", 0, 100), ("acknowledge", 0, 40), ("acknowledge", 40, 60)]),
        "pending": acks(1, [("accept", 0, 100), ("acknowledge", 0, 40)]),
        "failed-in-the-middle": acks(
            1, [("accept", 0, 30), ("acknowledge", 0, 10), ("fail", 10, 5), ("acknowledge", 15, 15)]
        ),
        "the-first-answer-counts": acks(
            1, [("accept", 0, 10), ("fail", 2, 3), ("acknowledge", 0, 10), ("fail", 0, 10), ("acknowledge", 9, 1)]
        ),
        "partitions-one-after-the-other": acks(
            3, [("accept", 0, 10), ("acknowledge", 1, 3), ("acknowledge", 0, 2), ("fail", 2, 1), ("acknowledge", 5, 2)]
        ),
        **{f"random-{p}": answered(p, p) for p in (1, 2, 5)},
    }


# --- payload ---------------------------------------------------------------------------------------------------------

HEADER_BYTES: Final = 24
WORDS: Final = (
    "order accepted and sent to the warehouse. ",
    "payment confirmed by the bank. ",
    "user signed in from a new device. ",
    "retrying after a timeout of the upstream service. ",
    "cache miss, value read from the database. ",
    "request rejected: the quota is used up. ",
    "connection closed by the remote host. ",
    "report written to the archive. ",
)
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def splitmix(seed: int, stream: int) -> Iterator[int]:
    """The numbers of one stream of a seed."""
    word = 2**64

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
        return z ^ (z >> 31)

    state = mix((2 * seed + stream) % word)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % word
        yield mix(state)


def record(numbers: Iterator[int], index: int, length: int, traced: int, milliseconds: int) -> tuple[str, int]:
    """A JSON record with so many random characters, and the milliseconds of its day."""
    letters = ""
    while len(letters) < traced:
        number = next(numbers)
        letters += "".join(LETTERS[number // 64**k % 64] for k in range(10))
    milliseconds += next(numbers) % 250
    host, rest = next(numbers), milliseconds // 1000
    event = {
        "id": 10_000_000 + index,
        "trace": letters[:traced],
        "time": f"2026-01-01T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.{milliseconds % 1000:03d}Z",
        "host": f"web-{host % 32:02d}",
        "status": [200, 200, 200, 201, 304, 404, 429, 500][host // 256 % 8],
        "ms": 1000 + host // 65536 % 9000,
        "text": "",
    }
    bare = json.dumps(event, separators=(",", ":"))
    spare = max(length - len(bare), 0)
    while len(str(event["text"])) < spare:
        event["text"] = str(event["text"]) + WORDS[next(numbers) % 8]
    event["text"] = str(event["text"])[:spare]
    return json.dumps(event, separators=(",", ":"))[:length], milliseconds


def payload(kind: str, size: int, smallest: int | None = None, seed: int = 1, share: int = 0, lines: str = "") -> Case:
    """The first messages without their headers, in hex; and the bytes of so many messages with them."""
    sizes, numbers = splitmix(seed, 0), splitmix(seed, 1)
    several = smallest is not None and smallest < size
    given = lines.split("\n") if lines else []
    if given and not given[-1]:
        given.pop()
    found: list[bytes] = []
    characters = milliseconds = 0
    for n in range(len(given) if lines else 6):
        length = (smallest or 0) + next(sizes) % (size - (smallest or 0) + 1) if several else size
        length -= HEADER_BYTES
        if kind == "zeros":
            found.append(bytes(length))
        elif kind == "random":
            words = b"".join(next(numbers).to_bytes(8, "little") for _ in range(-(-length // 8)))
            found.append(words[:length])
        elif kind == "json":
            wished = (characters + length) * share // 10_000 - characters * share // 10_000
            characters += length
            most = max(length - 109 if length >= 109 else length - 24, 0)
            text, milliseconds = record(numbers, n, length, min(wished, most), milliseconds)
            found.append(text.encode())
        else:
            found.append(given[n].encode()[: size - HEADER_BYTES].ljust((smallest or HEADER_BYTES) - HEADER_BYTES))
    return {
        "payload": kind,
        "message_size": size,
        "message_size_min": smallest,
        "payload_seed": seed,
        "share": share,
        "lines": lines,
        "messages": [one.hex() for one in found],
        "bytes": [sum(HEADER_BYTES + len(one) for one in found[:n]) for n in range(len(found) + 1)],
    }


def payloads() -> dict[str, Case]:
    """By name."""
    lines = "the first\n\na third that is longer than a message may be\nlast, äöü"
    return {
        "zeros": payload("zeros", 100),
        "zeros-of-several-sizes": payload("zeros", 40, 24),
        "random": payload("random", 100),
        "random-of-several-sizes": payload("random", 61, 25, 2),
        "random-of-another-seed": payload("random", 40, seed=2**63 - 1),
        "random-header-only": payload("random", 24),
        "json": payload("json", 300, share=2500),
        "json-without-random-characters": payload("json", 400),
        "json-of-random-characters": payload("json", 250, share=10_000),
        "json-of-several-sizes": payload("json", 320, 120, 7, 333),
        "json-that-is-cut": payload("json", 100, share=5000),
        "json-that-is-very-short": payload("json", 30, 25, share=5000),
        "lines": payload("lines", 60, lines=lines),
        "lines-with-an-end": payload("lines", 60, lines=lines + "\n"),
        "lines-filled-up": payload("lines", 60, 40, lines=lines),
    }


# --- batch -----------------------------------------------------------------------------------------------------------

DRAIN_ENDS: Final = ("complete", "marked", "quiet", "deadline")
NULL: Final = -(2**63)


def counted(*values_us: int) -> Case:
    """The histogram of these latencies."""
    return {name: of for name, of in histogram([1000 * v for v in values_us]).items() if name != "batches"}


def account(publisher: int = 0, received: int = 0, **more: Any) -> Case:
    """A ledger, as a report holds it."""
    fields = {
        "publisher": publisher,
        "received": received,
        "in_window": received,
        "missing": 0,
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
    fields: Case = {
        "ledgers": list(ledgers),
        "batches": 0,
        "first_batch": 0,
        "first_ns": 0,
        "last_ns": 0,
        "bytes": 0,
        "stale": 0,
        "latency": counted(),
        "usage": {"cpu_user_s": 0.0, "cpu_system_s": 0.0, "max_rss_bytes": 0},
        "undrained": 0,
        "absent": [],
        "reconnects": 0,
        "felt": True,
        "drain": "complete",
        "lag_bins_us": [],
        "system": None,
    }
    assert more.keys() <= fields.keys()
    return fields | more


def value_at(percent: int, latency: Case) -> int:
    """The end of the bucket of the value with the rank that a percentile has; 0 where there is none."""
    buckets = [index for index, n in pairs(latency["counts"]) for _ in range(n)]
    if not buckets:
        return 0
    # The highest value at an index is below the lowest at the next: found by trying them.
    wanted = buckets[max((percent * len(buckets) + 50) // 100, 1) - 1]
    value: int = latency["max_us"]
    while bucket_of(value) > wanted:
        value -= 1
    return value


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
    columns += [
        ("latency_count", "q", [sum(n for _, n in pairs(row["latency"]["counts"])) for row in rows]),
        ("latency_min_us", "q", [row["latency"]["min_us"] for row in rows]),
        ("latency_p50_us", "q", [value_at(50, row["latency"]) for row in rows]),
        ("latency_p99_us", "q", [value_at(99, row["latency"]) for row in rows]),
        ("latency_max_us", "q", [row["latency"]["max_us"] for row in rows]),
        (
            "lag_bins_us",
            "q",
            [NULL if x is None else x for row in rows for x in row["lag_bins_us"] or [None] * LAG_BINS] if lags else [],
        ),
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
    payload = b""
    for _, kind, values in columns:
        payload += struct.pack(f"<{len(values)}{kind}", *values)
        payload += bytes(-len(payload) % 8)
    return {
        "ids": ids,
        "cohort": list(cohort),
        "reports": rows,
        "columns": [[name, len(values)] for name, _, values in columns],
        "payload": payload.hex(),
    }


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
            usage={"cpu_user_s": dice.randrange(64) / 8, "cpu_system_s": 0.25, "max_rss_bytes": dice.randrange(2**35)},
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
        # The middle of two values is the first, of three the second.
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
        "how-drains-end": batch({n: report(drain=end) for n, end in enumerate(DRAIN_ENDS)}),
        "as-large-as-may-be": batch(
            {
                2**32 - 1: report(
                    account(2**32 - 1, largest, missing_ranges=[[largest - 1, largest]], missing=2),
                    batches=largest,
                    bytes=largest,
                    absent=[[0, largest]],
                    undrained=largest,
                    usage={"cpu_user_s": 1e9, "cpu_system_s": 0.5, "max_rss_bytes": largest},
                )
            }
        ),
        **{f"random-{seed}": batch(lossy(seed), sorted(lossy(seed))[::3]) for seed in range(3)},
    }


KINDS: Final[dict[str, Callable[[], dict[str, Case]]]] = {
    "clock": clocks,
    "pacer": pacers,
    "ledger": ledgers,
    "lag": lags,
    "histogram": histograms,
    "acks": acknowledgements,
    "payload": payloads,
    "batch": batches,
}


def text(case: Case) -> str:
    """As it stands in its file."""
    return json.dumps(case, separators=(",", ":")) + "\n"


def main() -> None:
    """Writes every file, and removes those that are no more."""
    for kind, cases in KINDS.items():
        folder = GOLDEN / kind
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for name, case in cases().items():
            (folder / f"{name}.json").write_text(text(case))


if __name__ == "__main__":
    main()
