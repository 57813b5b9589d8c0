"""The warnings of a step whose seconds differ, or that shows less than it seems to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import counted, number
from hydra.events.warnings import HydraWarning
from hydra.measure.column import STATUS
from hydra.measure.evidence import Differences, Unsteadiness
from hydra.report.row_context import RowContext, RowWarning
from hydra.sweep.cleanness import unjudged

_NAMED_SECONDS: Final = 3
"""A warning names this number of the largest differences: a row of an hour can have hundreds."""


class UnsteadyRow(RowWarning):
    """A row whose seconds are not alike, so its figures are means of different loads or states.

    ``seconds`` holds how they differ; for a row with repeats, only whether the first repeat was slow.
    """

    kind = "not_steady"

    seconds: Sequence[Unsteadiness]

    @property
    def remedy(self) -> str:
        if any(each.kind == "stop" for each in self.seconds):
            return "find out what stopped the servers, the network or the hosts; the report plots the seconds"
        return "use longer steps, or a longer warm-up (warmup_max_s); the report plots the seconds"

    @property
    def text(self) -> str:
        how = f": {_largest(self.seconds)}" if self.seconds else " in at least one of its repeats"
        return f"not steady{how}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.figures.passing.steady is False:
            differences = about.figures.passing.unsteady
            yield cls(differences.found if isinstance(differences, Differences) else ())


def _largest(seconds: Sequence[Unsteadiness]) -> str:
    """The largest differences in the order of time, and the number of the others."""
    most = sorted(seconds, key=lambda each: (each.for_s, abs(each.by)), reverse=True)[:_NAMED_SECONDS]
    left = len(seconds) - len(most)
    others = f", and {counted(left, 'other difference')}" if left else ""
    return ", ".join(_differs(each) for each in seconds if each in most) + others


def _differs(found: Unsteadiness) -> str:
    """How seconds of a row differ from the others."""
    by = f"{number(100 * abs(found.by))} % {'less' if found.by < 0 else 'more'} was received"
    if found.kind == "stop":
        return f"nothing was received for about {number(found.for_s)} s from second {found.at_s} on"
    if found.kind == "short":
        return f"{by} in second {found.at_s} than was due"
    if found.kind == "beginning":
        return f"{by} in the first {found.at_s} s than later"
    if found.kind == "first":
        return f"{by} in the first repeat than in the others"
    if found.kind == "change":
        return f"{by} from second {found.at_s} on than before"
    return f"{by} in second {found.at_s} than in the median second"


class NotJudged(RowWarning):
    """A row of which it is unknown whether it is clean."""

    level = Level.LOSS
    template = "{what}"
    remedy = "measure the row again; if its messages have no header, this stays unknown"
    what: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(STATUS) != "ok" or about.figures.loss.client_loss_high_pct is not None:
            return []
        return map(cls, unjudged(about.figures))
