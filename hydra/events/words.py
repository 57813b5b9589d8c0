"""Times, figures, steps and clients in a few words for a person."""

from __future__ import annotations

from collections.abc import Iterable

from hydra.model import Figure, StepPlan, value_of

_RANGES = 8
"""Ranges of ids that are named, of many."""


def duration(seconds: float) -> str:
    """Seconds for a person: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def number(value: Figure) -> str:
    """A figure for a person; ``–`` where there is none."""
    if value is None:
        return "–"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def describe(plan: StepPlan) -> str:
    """A step in a few words."""
    settings = plan.settings
    rate = "max" if settings.rate == "max" else f"{settings.rate:,.6g}/s"
    cohort = "" if plan.cohort.kind == "none" else f", {plan.cohort.fraction:.0%} {plan.cohort.kind}"
    series = "" if plan.series == "grid" else f"{plan.series}: "
    size = value_of(settings, "msg_batch") or settings.burst
    batch = f", batch {size}" if size else ""
    messages = f", {settings.messages:,} messages each" if settings.messages is not None else ""
    publishers = f"{plan.publishers} publisher{'' if plan.publishers == 1 else 's'}, "
    point = f"{plan.point}: {publishers}" if plan.point else ""
    clients = f"{plan.clients} clients, " if plan.clients or not plan.point else ""
    return f"{point}{clients}{series}{rate}{messages}{batch}{cohort}"


def ranges(ids: Iterable[int]) -> list[range]:
    """Rising ids as ranges without gaps."""
    found: list[range] = []
    for client in ids:
        if found and found[-1].stop == client:
            found[-1] = range(found[-1].start, client + 1)
        else:
            found.append(range(client, client + 1))
    return found


def named(ids: Iterable[int]) -> str:
    """Clients' ids as ranges; the first few if they are many."""
    found = ranges(sorted(ids))
    text = ", ".join(f"{r.start}" if len(r) == 1 else f"{r.start}–{r.stop - 1}" for r in found[:_RANGES])
    return f"ids {text}{', …' if len(found) > _RANGES else ''}"
