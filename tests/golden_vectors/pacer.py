"""What a publisher owes at any time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.golden_vectors.common import GRACE_NS, SECOND_NS, START_NS, Case

Act = int | tuple[str, int]
"""When it is asked, ns since the start; or ``advance`` and by how many, or ``stop`` and when."""


def pacer(rate: float | str, seconds: float, burst: int, acts: Sequence[Act], *, messages: int | None = None) -> Case:
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

    for given in acts:
        act, number = ("ask", given) if isinstance(given, int) else given
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
        times = [now_ns if exact is None else due_ns(sent + k) for k in range(min(due, 5))]
        lag_ns = 0 if following is None else max(now_ns - following, 0)
        step = {"at_ns": now_ns, "done": done(now_ns), "due": due, "times": times, "next_due_ns": following}
        steps.append(step | {"lag_ns": lag_ns})
    window = {"start_ns": START_NS, "stop_ns": START_NS + round(seconds * SECOND_NS)}
    limit = {} if messages is None else {"messages": messages}
    return {"rate": rate, **window, "burst": burst, **limit, "steps": steps}


def pacers() -> dict[str, Case]:
    """By name."""
    ms = 1_000_000
    a_second = 1000.0, 1.0, 100
    return {
        "steady": pacer(1000.0, 1.0, 10, [-1, 0, ("advance", 1), ms - 1, ms, 500 * ms, ("advance", 10), 500 * ms]),
        "a-third": pacer(1e6 / 3, 0.01, 100, [2, 3 * ms, ("advance", 7), 3 * ms, ("advance", 993), 3 * ms]),
        "fraction-with-a-large-denominator": pacer(
            999.999, 100.0, 100, [0, ("advance", 99_990), 99_990 * ms, 100_000 * ms]
        ),
        "slower-than-one-a-second": pacer(
            0.3, 10.0, 5, [0, ("advance", 1), 3_333 * ms, 3_334 * ms, ("advance", 2), 9_999 * ms]
        ),
        "days-without-drift": pacer(
            3.0, 1_000_000.0, 100, [("advance", 2_999_997), 999_999 * SECOND_NS, 999_999 * SECOND_NS - 1]
        ),
        "kept-up-at-the-end": pacer(*a_second, [("advance", 998), 1000 * ms + 1, 1005 * ms - 1, 1005 * ms]),
        "behind-at-the-end": pacer(*a_second, [("advance", 900), 1000 * ms - 1, 1000 * ms]),
        "complete": pacer(*a_second, [("advance", 1000), 900 * ms, 1000 * ms]),
        "stopped-early": pacer(
            *a_second,
            [("advance", 500), ("stop", 2000 * ms), 510 * ms, ("stop", 510 * ms), 509 * ms, 510 * ms, 515 * ms],
        ),
        "max": pacer("max", 1.0, 100, [-1, 0, ("advance", 100), 7, ("stop", 500 * ms), 500 * ms - 1, 500 * ms]),
        "so-many-messages": pacer(
            *a_second, [0, ("advance", 20), 500 * ms, ("advance", 10), 31 * ms, ("stop", 500 * ms), 0], messages=30
        ),
        "more-messages-than-the-window-takes": pacer(
            *a_second, [("advance", 998), 999 * ms, ("advance", 2), 999 * ms], messages=2000
        ),
        "so-many-messages-stopped-early": pacer(
            *a_second, [("advance", 20), ("stop", 25 * ms), 24 * ms, 25 * ms], messages=30
        ),
        "so-many-messages-at-max": pacer("max", 1.0, 100, [0, ("advance", 240), 7, ("advance", 10), 8], messages=250),
        "more-messages-at-max-than-the-window-takes": pacer(
            "max", 1.0, 100, [("advance", 240), 1000 * ms - 1, 1000 * ms], messages=2**62
        ),
        "max-one-by-one": pacer("max", 1.0, 1, [0, ("advance", 1), 999 * ms, 1000 * ms]),
    }
