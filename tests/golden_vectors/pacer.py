"""What a publisher owes at any time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.golden_vectors.common import GRACE_NS, SECOND_NS, START_NS, Case


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
