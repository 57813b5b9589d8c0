"""Whether a step has kept what was asked of it, with what margin, and how sure that is. Pure.

A percentile of n messages is known within limits: the 95 % upper limit of the p-th is the value with the smallest rank
r of which P(binomial(n, p) < r) >= 0.95 (H. A. David, H. N. Nagaraja, Order Statistics, 7.1). There is none below
log 0.05 / log p messages: then no step can show the objective. A share of losses has the exact limit of C. J. Clopper
and E. S. Pearson (Biometrika 26, 1934). Both take messages for independent of each other, which those of one burst of
losses are not: they say what the number of messages allows at best. A copy that did not arrive is later than all
others.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from hydra.columns.names import RATE_HELD
from hydra.measure.course import PERCENTILES, Consequence
from hydra.measure.figures import least_sent
from hydra.model import Figure, Histogram, SloSpec
from hydra.wire.buckets import highest_of, percentiles_us

CONFIDENCE: Final = 0.95
LOSS: Final = "loss_pct"
MAX: Final = "max_ms"
RECOVERY: Final = "recovery_s"
RATE: Final = "rate"
"""The objective that nobody has to ask for: that the messages of which the others speak were sent (``least_sent``)."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One objective.

    Attributes:
        name: of :class:`hydra.model.SloSpec`, or ``rate``.
        target: what was asked for, in the unit of the name.
        measured: the figure; None: it is not known.
        limit: its 95 % upper limit, None where there is none (of the whole run, everything is known).
        holds: whether it was kept.
        why: what has to be known besides; "" if nothing.
    """

    name: str
    target: float
    measured: float | None
    limit: float | None
    holds: bool
    why: str = ""

    @property
    def margin(self) -> float | None:
        """By how much the figure is below its target, of which the rate is reached from below."""
        if self.measured is None:
            return None
        return self.measured - self.target if self.name == RATE else self.target - self.measured


def needed(name: str) -> int:
    """How many messages it takes at least to show a percentile with the usual confidence."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(PERCENTILES[name] / 100))


def impossible(slo: SloSpec, messages: float) -> str:
    """Why no step with so many messages could show what is asked for, or ""."""
    for name in slo.objectives():
        if name in PERCENTILES and messages < needed(name):
            return f"{name} of {messages:.0f} messages cannot be shown: it takes {needed(name)} for 95 % confidence"
    if slo.loss_pct:
        least = math.log(1 - CONFIDENCE) / math.log1p(-slo.loss_pct / 100)
        if messages < least:
            what = f"a loss of at most {slo.loss_pct:g} % of {messages:.0f} messages cannot be shown"
            return f"{what}: it takes {math.ceil(least)} for 95 % confidence"
    return ""


def judged(
    slo: SloSpec,
    figures: Mapping[str, Figure],
    latency: Histogram,
    consequences: Sequence[Consequence],
    due: float,
    publishers: int = 1,
) -> list[Judged]:
    """Every objective of a step.

    Args:
        slo: what was asked for.
        figures: the step's columns.
        latency: of its subscribers outside the cohort.
        consequences: of its events.
        due: messages that all publishers had to send.
        publishers: how many they are.
    """
    sent = figures.get("total_tx")
    rate = float(sent) if isinstance(sent, int | float) else None
    # What was refused was sent in time, and is of no use to anybody.
    least = least_sent(due, publishers)
    held = figures.get(RATE_HELD) is True and rate is not None and rate >= least
    found = [Judged(RATE, least, rate, None, held, "" if held else _unsent(figures))]
    missing = _missing(figures, latency)
    for name, target in slo.objectives().items():
        if name in PERCENTILES:
            found.append(_percentile(name, target, latency, missing))
        elif name == MAX:
            worst = latency.max_us / 1000 if latency.counts and not missing else None
            why = "" if missing == 0 else _gone(missing)
            found.append(Judged(name, target, worst, None, worst is not None and worst <= target and not why, why))
        elif name == LOSS:
            found.append(_loss(target, figures, latency))
        else:
            found.append(_recovery(target, consequences))
    return found


def _unsent(figures: Mapping[str, Figure]) -> str:
    return f"not sent as it was due; what limited it: {figures.get('verdict') or 'not known'}"


def _missing_pct(figures: Mapping[str, Figure]) -> float | None:
    """The share of the copies that did not arrive, lost or not; None: it is not known exactly."""
    parts = [figures.get(name) for name in ("client_loss_pct", "undrained_pct", "unknown_pct")]
    known = [float(part) for part in parts if isinstance(part, int | float)]
    return sum(known) if len(known) == len(parts) else None


def _missing(figures: Mapping[str, Figure], latency: Histogram) -> int | None:
    """How many copies did not arrive beside those of this histogram; None: it is not known."""
    percent, arrived = _missing_pct(figures), sum(latency.counts[1::2])
    if percent is None or percent >= 100:
        return None
    return max(round(arrived / (1 - percent / 100)) - arrived, 1) if percent else 0


def _gone(missing: int | None) -> str:
    return (
        "not known: nobody knows how many copies did not arrive" if missing is None else f"{missing:,} did not arrive"
    )


def _percentile(name: str, target: float, latency: Histogram, missing: int | None) -> Judged:
    sums = list(accumulate(latency.counts[1::2]))
    if not sums or missing is None:
        return Judged(name, target, None, None, holds=False, why=_gone(missing) if sums else "nothing arrived")
    # Those that did not arrive are the last: of the others, a higher percentile is meant.
    part, copies = PERCENTILES[name] / 100, sums[-1] + missing
    if part * copies > sums[-1]:
        return Judged(name, target, None, None, holds=False, why=_gone(missing))
    (value,) = percentiles_us(latency, (100 * part * copies / sums[-1],))
    rank = upper_rank(copies, part)
    if value is None or rank is None:
        why = f"{copies} messages were sent, and it takes {needed(name)} for 95 % confidence"
        return Judged(name, target, None if value is None else value / 1000, None, holds=False, why=why)
    if rank > sums[-1]:
        return Judged(name, target, value / 1000, None, holds=False, why=_gone(missing))
    limit = min(highest_of(latency.counts[2 * bisect_left(sums, rank)]), latency.max_us) / 1000
    why = "" if limit <= target or value / 1000 > target else "within the target, but not with 95 % confidence"
    return Judged(name, target, value / 1000, limit, limit <= target, why)


def upper_rank(n: int, part: float) -> int | None:
    """The rank of the value below which the quantile lies with 95 % confidence; None: so few values have none."""
    from scipy.stats import binom

    rank = int(binom.ppf(CONFIDENCE, n, part)) + 1
    return rank if rank <= n else None


def _loss(target: float, figures: Mapping[str, Figure], latency: Histogram) -> Judged:
    measured = _missing_pct(figures)
    if measured is None:
        return Judged(LOSS, target, None, None, holds=False, why="not known exactly")
    arrived = sum(latency.counts[1::2])
    n = round(arrived / (1 - measured / 100)) if measured < 100 else arrived
    lost = n - arrived if measured else 0
    limit = upper_share(lost, n) * 100 if n else None
    if not n:
        return Judged(LOSS, target, measured, None, holds=False, why="nothing arrived")
    why = ""
    if target and limit is not None and measured <= target < limit:
        why = "within the target, but not with 95 % confidence"
    # None lost is a fact of this run; of how it would go on, the limit tells.
    return Judged(LOSS, target, measured, limit, measured <= target and not why, why)


def upper_share(count: int, n: int) -> float:
    """The 95 % upper limit of a share of which ``count`` of n were seen."""
    if count >= n:
        return 1.0
    if not count:
        return -math.expm1(math.log(1 - CONFIDENCE) / n)
    from scipy.stats import beta

    return float(beta.ppf(CONFIDENCE, count + 1, n - count))


def _recovery(target: float, consequences: Sequence[Consequence]) -> Judged:
    if not consequences:
        return Judged(RECOVERY, target, None, None, holds=False, why="there was no event to recover from")
    times = [c.recovered_s for c in consequences]
    if any(time is None for time in times):
        never = next(c for c in consequences if c.recovered_s is None)
        return Judged(
            RECOVERY, target, None, None, holds=False, why=f"not recovered from {never.kind} at {never.at_s:g} s"
        )
    worst = max(time for time in times if time is not None)
    return Judged(RECOVERY, target, worst, None, worst <= target)


def holds(objectives: Sequence[Judged]) -> bool:
    """The answer: whether every objective was kept."""
    return all(objective.holds for objective in objectives)
