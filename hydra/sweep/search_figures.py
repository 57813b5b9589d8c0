"""The answer of a search and its side findings as figures of a row, each with its column. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from hydra.measure.column import PER_SECOND, TEXT, YES_NO, Column, Values
from hydra.model import Figure, number
from hydra.sweep.search_answer import CredibleInterval, Inconclusive, LossyRanges, SearchAnswer, SideFindings

_LIMITS: Final = (
    "limits of the 95 % confidence interval of the searched rate (*R*); if the "
    "search found no figure, limits of the range in which *R* is known to be"
)
_FLOOR: Final = "share of messages lost at every rate, however low, and its 95 % confidence interval"
_WITHOUT: Final = (
    "the searched rate (*R*) without the subscriber that loses messages alone, and "
    "the 95 % confidence interval of this rate"
)
_NO_NUMBERS: Final = (TEXT, YES_NO, "")


def _of(unit: str, about: str, *, name: str = "", optional: bool = True, **more: Any) -> Mapping[str, Any]:
    """The metadata of a field: its column, and whether a row without the figure has no such column (``optional``).

    ``name`` ends the name of the column; "": the name of the field does.
    """
    return {"column": Column(name, unit, about, **more), "optional": optional}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateFigures:
    """The figures beside a searched rate, each with its column; ``others_…`` leave out a subscriber that loses alone.

    Of a repeated row, texts that differ are ``Values``.
    """

    answer: Figure = field(
        default=None,
        metadata=_of(
            TEXT,
            "`figure`; `none`: no rate holds; or `unknown`: the search found no answer. Empty: there was no search",
            optional=False,
            repeats="common",
        ),
    )
    why: Figure = field(
        default=None,
        metadata=_of(
            TEXT, "keyword: why there is no figure, or why the figure is doubtful", optional=False, repeats="common"
        ),
    )
    low_pps: float | None = field(default=None, metadata=_of(PER_SECOND, _LIMITS, optional=False))
    high_pps: float | None = field(default=None, metadata=_of(PER_SECOND, _LIMITS, optional=False))
    seen: Figure = field(
        default=None,
        metadata=_of(
            YES_NO,
            "yes: the figure follows from losses measured at rates near the figure; no: it follows more from the "
            "assumed form of the loss curve",
            optional=False,
            repeats="common",
        ),
    )
    needed_s: float | None = field(
        default=None,
        metadata=_of(
            "s",
            "the least seconds of measurement that an answer usually needs, including the seconds already measured",
            repeats="median",
        ),
    )
    floor_pct: float | None = field(default=None, metadata=_of("%", _FLOOR))
    floor_low_pct: float | None = field(default=None, metadata=_of("%", _FLOOR))
    floor_high_pct: float | None = field(default=None, metadata=_of("%", _FLOOR))
    holes_pps: Figure = field(
        default=None,
        metadata=_of(
            TEXT,
            "ranges of rates (messages/s) in which more than the target is lost although higher rates lose less: "
            "`from to`, separated by commas",
            repeats="common",
        ),
    )
    lone_loser: Figure = field(
        default=None, metadata=_of("", "id of the subscriber that loses alone at every rate", repeats="common")
    )
    lone_loser_loss_pct: float | None = field(
        default=None, metadata=_of("%", "loss of the subscriber in `{series}_lone_loser`")
    )
    others_pps: float | None = field(default=None, metadata=_of(PER_SECOND, _WITHOUT, name="without_it_pps"))
    others_low_pps: float | None = field(default=None, metadata=_of(PER_SECOND, _WITHOUT, name="without_it_low_pps"))
    others_high_pps: float | None = field(default=None, metadata=_of(PER_SECOND, _WITHOUT, name="without_it_high_pps"))
    start_lost_ms: float | None = field(
        default=None,
        metadata=_of(
            "ms",
            "messages lost at the start of each step, as the time in ms in which the publishers send this number",
            repeats="median",
        ),
    )

    @classmethod
    def of(
        cls, answer: SearchAnswer, tried: Sequence[float], findings: SideFindings, against: Iterable[str] = ()
    ) -> RateFigures:
        """The figures of a search.

        Args:
            answer: the answer of the search.
            tried: the rates (messages/s) of its steps.
            findings: the findings beside the figure.
            against: the keywords of further objections to the figure.
        """
        low, _, high = answer.interval or (None, None, None)
        if answer.interval is None and answer.why is Inconclusive.ABOVE_HIGHEST:
            low = max(tried, default=None)
        elif answer.interval is None and answer.why is Inconclusive.BELOW_LOWEST:
            high = min(tried, default=None)
        floor_low, floor, floor_high = _parts(answer.loss, 100.0)
        without_low, without, without_high = _parts(findings.without)
        return cls(
            answer=answer.kind,
            why=_one_or_several([*([answer.why.value] if answer.why else []), *against]),
            low_pps=low,
            high_pps=high,
            seen=not answer.form if answer.kind == "figure" else None,
            needed_s=answer.needed_s,
            floor_pct=floor,
            floor_low_pct=floor_low,
            floor_high_pct=floor_high,
            holes_pps=LossyRanges(answer.holes) if answer.holes else None,
            lone_loser=findings.lone.client if findings.lone else None,
            lone_loser_loss_pct=100 * findings.lone.loss if findings.lone else None,
            others_pps=without,
            others_low_pps=without_low,
            others_high_pps=without_high,
            start_lost_ms=findings.start_ms,
        )

    @classmethod
    def of_row(cls, row: Mapping[str, Figure], series: str) -> RateFigures:
        """The figures of a row; ``series`` begins the names of the columns."""
        made: Any = cls
        columns = cls.columns(series)
        cells = {name: row.get(column.name) for name, column in columns.items()}
        found: RateFigures = made(
            **{name: cell if columns[name].unit in _NO_NUMBERS else number(cell) for name, cell in cells.items()}
        )
        return found

    @classmethod
    def columns(cls, series: str) -> dict[str, Column]:
        """The columns by field, in the order of the fields; ``series`` begins their names."""
        known = {each.name: each.metadata["column"] for each in fields(cls)}
        return {
            name: replace(column, name=f"{series}_{column.name or name}", help=column.help.replace("{series}", series))
            for name, column in known.items()
        }

    def cells(self, series: str) -> dict[str, Figure]:
        """The figures as cells of a row; ``series`` begins the names of the columns."""
        columns = self.columns(series)
        values = ((each, getattr(self, each.name)) for each in fields(self))
        return {
            columns[each.name].name: value
            for each, value in values
            if value is not None or not each.metadata["optional"]
        }


def _one_or_several(words: Sequence[str]) -> Figure:
    return Values(tuple(words), ", ") if len(words) > 1 else next(iter(words), None)


def _parts(of: CredibleInterval | None, unit: float = 1.0) -> tuple[float | None, float | None, float | None]:
    """The lower limit, the value and the upper limit."""
    return (None, None, None) if of is None else (unit * of.low, unit * of.figure, unit * of.high)
