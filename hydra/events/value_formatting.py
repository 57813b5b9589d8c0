"""Short texts for times, figures, steps and clients."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import Final

from hydra.model import Evidence, Figure, StepPlan

MARK: Final = "⚠"
"""Stands beside a row that is not clean, and before a warning that names such a row."""
UNKNOWN: Final = "—"
"""Stands in the place of a figure that is not known."""
_WHOLE_FROM: Final = 999.5
"""Figures from this value on are shown without a fraction."""
_MOST_DIGITS: Final = 6
"""The maximum number of digits after the decimal point."""
_ALWAYS_SHOWN: Final = ("rate", "messages")
"""Settings that every description of a step has."""
_SERIES: Final = {
    "max_rate": "full speed",
    "nodrop": "full speed without drops",
    "loss": "held rate",
    "slow": "with slow subscribers",
    "reconnecting": "with reconnecting subscribers",
}
"""The series of a search or a ladder in words."""
_RANGES: Final = 8
"""The maximum number of ranges of ids that a text names."""


def duration(seconds: float) -> str:
    """A duration as text: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def countdown(seconds: float) -> str:
    """A remaining time, to be shown while it passes: ``45 s``, ``2 min 10 s``, ``24 min``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    tens = round(seconds / 10)
    return f"{tens // 6} min {tens % 6 * 10} s" if tens < 60 else duration(seconds)


def number(value: Figure, significant: int = 3) -> str:
    """A figure as text with this many significant digits, all digits before the point, no exponent; ``–`` for None."""
    if value is None:
        return "–"
    if isinstance(value, str | bool | Evidence):
        return str(value)
    if isinstance(value, int) or abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    # Tiny figures get fewer significant digits, because the digits after the point are limited.
    digits = significant if value == 0 else max(significant - 1 - floor(log10(abs(value))), 0)
    text = f"{value:.{min(digits, _MOST_DIGITS)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def known_digits(value: float, half: float) -> float:
    """A figure or a limit of its interval, rounded to the digits that the interval leaves known.

    It is rounded to the second significant digit of half the interval's width, but keeps two significant digits.

    Args:
        value: the figure or the limit.
        half: half the width of the interval.
    """
    if not (value and half > 0 and isfinite(value) and isfinite(half)):
        return value
    return round(value, 1 - min(floor(log10(half)), floor(log10(abs(value)))))


def known_texts(figure: float, low: float, high: float) -> tuple[str, str, str]:
    """A figure and the limits of its interval, with the digits that the interval leaves known."""
    figure, low, high = (known_digits(each, (high - low) / 2) for each in (figure, low, high))
    return number(figure), number(low), number(high)


def between(low: float | None, high: float | None, unit: str) -> str:
    """Where a value is by its limits: ``between 1,000 and 2,000/s``, ``above 1,000/s``; "" without a limit."""
    if low is not None and high is not None:
        return f"between {number(low)} and {number(high)}{unit}"
    if high is not None:
        return f"below {number(high)}{unit}"
    return "" if low is None else f"above {number(low)}{unit}"


def counted(count: Figure, one: str, several: str = "") -> str:
    """A number with what it counts: ``1 client``, ``1,200 subscribers``, ``2 copies``.

    Args:
        count: the number; ``–`` stands for None.
        one: the word for one, or its words with a verb: ``client``, ``message was``.
        several: the same for any other number; "": ``one`` with an s.
    """
    return f"{number(count)} {one if count == 1 else several or f'{one}s'}"


def duration_us(value: float) -> str:
    """Microseconds as text: ``820 µs``, ``2.5 ms``, ``1.2 s``."""
    for unit_us, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= unit_us:
            return f"{number(value / unit_us)} {unit}"
    return f"{number(value)} µs"


def series_text(series: str) -> str:
    """A series in words: ``full speed``; the name of its columns if it has no other."""
    return _SERIES.get(series, series.replace("_", " "))


def describe(plan: StepPlan, varied: Iterable[str] = ()) -> str:
    """A short description of a step.

    Args:
        plan: the step's plan.
        varied: settings that vary between the steps of the sweep; the description names them.
    """
    settings = plan.settings
    full = series_text(plan.series) if plan.series in ("max_rate", "nodrop") else "max"
    rate = full if settings.rate == "max" else f"{number(settings.rate)}/s"
    words = [
        counted(plan.publishers, "publisher") if plan.point else "",
        counted(plan.clients, "subscriber") if plan.clients or not plan.point else "",
        rate,
        f"{counted(settings.messages, 'message')} each" if settings.messages is not None else "",
        *(f"{name} {number(plan.value(name))}" for name in varied if name not in _ALWAYS_SHOWN),
        "" if plan.cohort.kind == "none" else f"{100 * plan.cohort.fraction:.0f} % {plan.cohort.kind}",
    ]
    return (f"{plan.point}: " if plan.point else "") + ", ".join(filter(None, words))


def ranges(ids: Iterable[int]) -> list[range]:
    """Ascending ids as ranges without gaps."""
    found: list[range] = []
    for client in ids:
        if found and found[-1].stop == client:
            found[-1] = range(found[-1].start, client + 1)
        else:
            found.append(range(client, client + 1))
    return found


def id_ranges(ids: Iterable[int]) -> str:
    """Ids of clients as ranges; only the first ranges if there are many."""
    found = ranges(sorted(ids))
    text = ", ".join(f"{r.start}" if len(r) == 1 else f"{r.start}–{r.stop - 1}" for r in found[:_RANGES])
    return f"ids {text}{', …' if len(found) > _RANGES else ''}"


def bytes_text(count: float) -> str:
    """An amount of memory or disk: ``1.5 GB``, ``12 MB``, ``0 MB``."""
    return (
        f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1g} MB" if count < 1e7 else f"{count / 1e6:.0f} MB"
    )
