"""Times, figures, steps and clients in a few words for a person."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log10
from typing import Final

from hydra.model import Figure, StepPlan, value_of

_WHOLE_FROM: Final = 999.5
"""Figures from here on are shown without a fraction."""
_MOST_DIGITS: Final = 6
"""Digits behind the point of figures that are nearly nothing."""
_ALWAYS_TOLD: Final = ("rate", "messages")
"""Settings that a step's description has in any case."""
_RANGES: Final = 8
"""Ranges of ids that are named, of many."""


def duration(seconds: float) -> str:
    """Seconds for a person: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def countdown(seconds: float) -> str:
    """Seconds that are left, as what is looked at while they pass: ``45 s``, ``2 min 10 s``, ``24 min``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    tens = round(seconds / 10)
    return f"{tens // 6} min {tens % 6 * 10} s" if tens < 60 else duration(seconds)


def number(value: Figure, significant: int = 3) -> str:
    """A figure for a person, ``–`` for none: so many significant digits, all of those before the point, no exponent."""
    if value is None:
        return "–"
    if isinstance(value, str | bool):
        return str(value)
    if isinstance(value, int) or abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    # Below a thousandth what the last of the digits is worth no longer matters.
    digits = significant if value == 0 else max(significant - 1 - floor(log10(abs(value))), 0)
    text = f"{value:.{min(digits, _MOST_DIGITS)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_us(value: float) -> str:
    """Microseconds for a person: ``820 µs``, ``2.5 ms``, ``1.2 s``."""
    for unit_us, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= unit_us:
            return f"{number(value / unit_us)} {unit}"
    return f"{number(value)} µs"


def describe(plan: StepPlan, varied: Iterable[str] = ()) -> str:
    """A step in a few words.

    Args:
        plan: the one.
        varied: the settings that tell it from the other steps of its sweep: they are named.
    """
    settings = plan.settings
    rate = "max" if settings.rate == "max" else f"{number(settings.rate)}/s"
    series = "" if plan.series == "grid" else f"{plan.series}: "
    publishers = f"{plan.publishers} publisher{'' if plan.publishers == 1 else 's'}" if plan.point else ""
    words = [
        publishers,
        f"{plan.clients} clients" if plan.clients or not plan.point else "",
        f"{series}{rate}",
        f"{settings.messages:,} messages each" if settings.messages is not None else "",
        *(f"{name} {number(value_of(settings, name))}" for name in varied if name not in _ALWAYS_TOLD),
        "" if plan.cohort.kind == "none" else f"{100 * plan.cohort.fraction:.0f} % {plan.cohort.kind}",
    ]
    return (f"{plan.point}: " if plan.point else "") + ", ".join(filter(None, words))


def ranges(ids: Iterable[int]) -> list[range]:
    """Rising ids as ranges without gaps."""
    found: list[range] = []
    for client in ids:
        if found and found[-1].stop == client:
            found[-1] = range(found[-1].start, client + 1)
        else:
            found.append(range(client, client + 1))
    return found


def id_ranges(ids: Iterable[int]) -> str:
    """Clients' ids as ranges; the first few if they are many."""
    found = ranges(sorted(ids))
    text = ", ".join(f"{r.start}" if len(r) == 1 else f"{r.start}–{r.stop - 1}" for r in found[:_RANGES])
    return f"ids {text}{', …' if len(found) > _RANGES else ''}"
