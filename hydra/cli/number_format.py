"""Numbers as `hydra fit` and `hydra plan` print them."""

from __future__ import annotations

from hydra.analysis.models import Interval
from hydra.events.formatting import number


def count(value: float) -> str:
    """A number of things: 1,000,000."""
    return f"{value:,.0f}"


def figure(value: float | None) -> str:
    """A figure with three digits; "no limit" for None."""
    if value is None:
        return "no limit"
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 99.95 else number(value)


def span(interval: Interval, unit: str = "") -> str:
    """An estimate and its interval: ``4.1 [3.9 – 4.4] µs``."""
    scale, name = _scaled(interval, unit)
    estimate, low, high = (None if v is None else v * scale for v in (interval.estimate, interval.low, interval.high))
    # One that is only limited has no estimate.
    first = "—" if estimate is None else figure(estimate)
    return f"{first} [{figure(low)} – {figure(high)}]{f' {name}' if name else ''}"


def _scaled(interval: Interval, unit: str) -> tuple[float, str]:
    if unit in ("s", "s/s"):
        return 1e6, "µs" if unit == "s" else "µs/s"
    if unit.startswith("bytes"):
        largest = interval.estimate or interval.low
        for size, prefix in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if largest >= size:
                return 1 / size, unit.replace("bytes", prefix)
    return 1.0, unit
