"""The texts about the rows of a scenario: the base of the third of a kind's objects. Pure.

The methods here suit kinds whose rows are single steps at given settings; other kinds override them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hydra.events.value_formatting import counted, duration_us
from hydra.events.value_formatting import number as text_of
from hydra.measure.step_result import StepFigures
from hydra.measure.traffic_columns import CLIENTS, Shares, Totals
from hydra.model import number
from hydra.sweep.cleanness import host_trouble, why_not_clean
from hydra.sweep.interface import Row, RowName, ScenarioPart


@dataclass(frozen=True, slots=True)
class HeadlineFigure:
    """One figure in large letters.

    Attributes:
        label: what it is.
        value: "" if it is unknown.
        detail: a note.
        clean: whether its row is clean.
        noted: whether there was trouble on the hosts of its row.
    """

    label: str
    value: str
    detail: str = ""
    clean: bool = True
    noted: bool = False

    @staticmethod
    def of_row(label: str, value: str, detail: str, row: Row) -> HeadlineFigure:
        """A figure of a row, with the reasons why the row is not clean, and the trouble on its hosts."""
        why, trouble = why_not_clean(row), host_trouble(row)
        details = (detail, f"not clean: {why}" if why else "", trouble)
        return HeadlineFigure(label, value, "; ".join(filter(None, details)), not why, bool(trouble))


class SweepTexts(ScenarioPart):
    """The texts about the rows of a scenario."""

    of_rows: ClassVar[str] = "each row"
    """What each curve of a plot of single steps belongs to."""
    all_good: ClassVar[str] = "every row was measured, nothing was lost and no rate was missed"
    """The text that is shown if no row has a warning."""
    aim: ClassVar[str] = ""
    """The text that is shown in place of a rate, for kinds that search for it."""
    of_diamonds: ClassVar[str] = ""
    """The explanation of the rates that a plot of losses marks."""

    @property
    def outline(self) -> str:
        """What the scenario asks for, for the facts of a report."""
        *others, last = self._sweep.counts
        counts = ", ".join([*(f"{count:,}" for count in others), counted(last, "subscriber")])
        return f"{counts}{self._outline_addition}; {self._sweep.duration_s:g} s a step, "

    @property
    def _outline_addition(self) -> str:
        """What the scenario asks for in addition to subscriber counts and lengths."""
        return ""

    @property
    def searched(self) -> str:
        """What it searches for, and how: only runs with the same text are compared; "": it searches for nothing."""
        return ""

    def legend(self, rows: Sequence[Row]) -> str:
        """The explanation of the brackets beside its figures; "" if there are none."""
        return ""

    def effort(self, row: Row) -> str:
        """The number of steps of a row, if the results decide it; "" otherwise."""
        return ""

    def headline(self, rows: Sequence[Row], name: RowName) -> list[HeadlineFigure]:
        """What the system carried, what was requested and not carried, and the latency.

        The first figure is that of the clean row in which most arrived. If other rows are not clean, the second figure
        is of the one in which most arrived. The latency is that of the first figure's row.

        Args:
            rows: the measured rows.
            name: gives the name of a row.
        """
        reasons = [(row, why_not_clean(row)) for row in rows]
        clean, others = _most([row for row, why in reasons if not why]), _most([row for row, why in reasons if why])
        found = []
        of_clean = StepFigures.of(clean or {})
        if clean is not None and (carried := of_clean.rates.aggregate_pps) is not None:
            lost = of_clean.totals.client_loss_pct
            loss = f"with {text_of(lost)} % loss" if lost else "without loss"
            label, what = ("received", _received_by) if _at_full_speed(of_clean) else ("carried", _delivered_to)
            found.append(HeadlineFigure.of_row(label, f"{text_of(carried)}/s", f"{loss}; {what(clean, name)}", clean))
        elif clean is None:
            found.append(HeadlineFigure("carried", "", "no row is clean", clean=False))
        if others is not None:
            figures = StepFigures.of(others)
            delivered = figures.rates.aggregate_pps
            rate = "" if "rate" in self._sweep.varied else f"{requested(others)}, "
            label, what = ("received", _received_by) if _at_full_speed(figures) else ("delivered", _delivered_to)
            value = "" if delivered is None else f"{text_of(delivered)}/s"
            found.append(HeadlineFigure.of_row(label, value, f"{rate}{what(others, name)}", others))
        best = clean or others or {}
        late = StepFigures.of(best).p99_us
        if late is not None:
            text, noted = f"there ({name(best)})", bool(host_trouble(best))
            found.append(HeadlineFigure("p99 latency", duration_us(late), text, clean is not None, noted))
        return found


def _most(rows: Sequence[Row]) -> Row | None:
    """The row in which most arrived; None without rows."""

    def received(row: Row) -> float:
        figures = StepFigures.of(row)
        return figures.rates.aggregate_pps or figures.totals.avg_rx_rate_pps or 0.0

    return max(rows, key=received, default=None)


def _at_full_speed(figures: StepFigures) -> bool:
    """Whether the row's publishers sent at rate ``max``."""
    return figures.shares.requested_rate == "max"


def _delivered_to(row: Row, name: RowName) -> str:
    """The subscribers whose messages the figure of a row counts, as text."""
    return f"messages delivered to {together(row, name)}"


def _received_by(row: Row, name: RowName) -> str:
    """The same of a row at rate ``max``, with what each subscriber received and each publisher sent a second."""
    totals = Totals.of_row(row)
    each = f", {text_of(totals.avg_rx_rate_pps)}/s each" if totals.clients != 1 else ""
    return f"messages received by {together(row, name)}{each}; sent: {text_of(totals.avg_tx_rate_pps)}/s"


def together(row: Row, name: RowName) -> str:
    """The subscribers of a row whose figure is that of all: ``all subscribers together (30 subscribers)``."""
    return name(row) if row.get(CLIENTS) == 1 else f"all subscribers together ({name(row)})"


def requested(row: Row) -> str:
    """The rate that was requested of each publisher of a row: ``at 30,000/s``, ``at full speed``."""
    rate = number(Shares.of_row(row).requested_rate)
    return "at full speed" if rate is None else f"at {text_of(rate)}/s"
