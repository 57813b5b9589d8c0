"""The warnings of a row in which something is missing: it was skipped, failed, or has fewer figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import counted
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.measure.column import COUNT, REPEATS, STATUS
from hydra.model import SKIPPED_BY, USER, Figure
from hydra.report.row_context import RowContext, RowWarning

_NAMED: Final = 4
"""The maximum number of columns that a warning about missing figures names."""


class RowSkipped(RowWarning):
    """A row that was skipped; if the user skipped it during its repeats, it has figures."""

    level = Level.FAIL
    template = "SKIPPED: {reason}"
    reason: str
    by_user: bool = False

    @property
    def remedy(self) -> str:
        fewer = "use fewer clients or more agents; hydra check reports what fits"
        return "measure the row in another run" if self.by_user else fewer

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(STATUS) == "skipped":
            yield cls(about.reason or _NO_REASON, about.row.get(SKIPPED_BY) == USER)


_NO_REASON: Final = "no reason was given"


class RowFailed(RowWarning):
    """A row that could not be measured."""

    level = Level.FAIL
    template = "FAILED: {reason}"
    remedy = f"{GO_ON}: Hydra measures the failed steps again"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(about.reason or _NO_REASON)] if about.row.get(STATUS) == "failed" else []


class RowPartial(RowWarning):
    """A row with steps that were not measured."""

    level = Level.LOSS
    template = "not finished: the run ended before the last step of this row"
    remedy = GO_ON

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls()] if about.row.get(STATUS) == "partial" else []


class StepRetried(RowWarning):
    """A row with a failed step that was measured again."""

    kind = "second_try"

    template = "{reason}"
    remedy = "--repeat measures the row several times and shows the spread"
    reason: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(STATUS) not in ("skipped", "failed", "partial") and about.reason:
            yield cls(about.reason)


class PartialRepeats(RowWarning):
    """Columns without a figure in some of the repeats: the number of repeats with a figure, and its columns."""

    kind = "fewer_figures"

    remedy = "use longer steps or more repeats"
    repeats: Figure
    columns: Sequence[tuple[Figure, Sequence[str]]]

    @property
    def text(self) -> str:
        of = counted(self.repeats, "repeat")
        found = [f"{count} of {of} have a figure for {_some(names)}" for count, names in self.columns]
        return f"only {'; '.join(found)}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        columns: dict[Figure, list[str]] = {}
        for column, count in about.row.items():
            if REPEATS in about.row and column.endswith(COUNT) and column.removesuffix(COUNT) in about.row:
                columns.setdefault(count, []).append(column.removesuffix(COUNT))
        return [cls(about.row[REPEATS], list(columns.items()))] if columns else []


def _some(columns: Sequence[str]) -> str:
    """The first columns, and the number of the others."""
    others = f" and {counted(len(columns) - _NAMED, 'other column')}" if len(columns) > _NAMED else ""
    return ", ".join(columns[:_NAMED]) + others
