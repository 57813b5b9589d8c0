"""A row's columns of each answer of a search, and their texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.events.event import Event
from hydra.measure.column import LoneLossySubscriber
from hydra.run.runner import code_of
from hydra.sweep import Row
from hydra.sweep.repetition import merge_repeats
from hydra.sweep.search_answer import CredibleInterval, Inconclusive, LossyRange, SearchAnswer, SideFindings
from hydra.sweep.search_columns import search_columns, side_columns
from hydra.sweep.search_figures import RateFigures
from hydra.sweep.search_spec import SearchSpec
from hydra.sweep.search_warnings import (
    AboveUndisturbed,
    AnswerAboveHighest,
    AnswerBelowLowest,
    AnswerByCurve,
    LossAtStart,
    LossyBetween,
    NoAnswer,
    NoRateHolds,
    RateDrifted,
    SearchText,
    SearchTooShort,
    SearchWarning,
    SubscriberLosesAlone,
    of_figure,
    text_of_search,
)

R = CredibleInterval(19e3, 2e4, 21e3)
FIGURE = SearchAnswer("figure", R)
NONE = SearchAnswer("none", loss=CredibleInterval(0.01, 0.02, 0.03))
SHORT = SearchAnswer("unknown", CredibleInterval(1e3, 3e3, 9e3), why=Inconclusive.TOO_SHORT, needed_s=300.0)
COLUMNS = {column.name: column for column in search_columns(SearchSpec())}


def row(answer: SearchAnswer, found: SideFindings = SideFindings(), *against: type[SearchWarning]) -> Row:  # noqa: B008  # frozen
    figures = RateFigures.of(answer, [500.0, 8e3], found, [each.why for each in against])
    reported: Row = {"status": "ok", "step_s": 5.0, **figures.cells("loss")}
    return {**reported, "loss_note": text_of_search(reported, "loss")}


@pytest.mark.parametrize(
    ("answer", "found", "against", "warnings"),
    [
        (FIGURE, SideFindings(), (), []),
        (NONE, SideFindings(), (), [NoRateHolds("loss", 2.0, (1.0, 3.0))]),
        (SHORT, SideFindings(), (), [SearchTooShort("loss", 300.0, 5.0, (1e3, 9e3))]),
        (
            SearchAnswer("unknown", R, why=Inconclusive.CHANGING), SideFindings(), (),
            [RateDrifted("loss", None, 5.0, (19e3, 21e3))],
        ),
        (SearchAnswer("unknown", why=Inconclusive.GIVEN_UP), SideFindings(), (), [NoAnswer("loss", None, 5.0)]),
        # The end of what was tried is all that is known.
        (
            SearchAnswer("unknown", why=Inconclusive.ABOVE_HIGHEST), SideFindings(), (),
            [AnswerAboveHighest("loss", None, 5.0, (8e3, None))],
        ),
        (
            SearchAnswer("unknown", why=Inconclusive.BELOW_LOWEST), SideFindings(), (),
            [AnswerBelowLowest("loss", None, 5.0, (None, 500.0))],
        ),
        (
            replace(FIGURE, form=True), SideFindings(), (AboveUndisturbed,),
            [AboveUndisturbed("loss"), AnswerByCurve("loss")],
        ),
        (
            replace(FIGURE, holes=(LossyRange(3e3, 6e3), LossyRange(8e3, 9e3))), SideFindings(), (),
            [LossyBetween("loss", [(3e3, 6e3), (8e3, 9e3)])],
        ),
        (FIGURE, SideFindings(start_ms=2.0), (), [LossAtStart("loss", 2.0)]),
        (
            NONE, SideFindings(LoneLossySubscriber(17, 0.05), R), (),
            [NoRateHolds("loss", 2.0, (1.0, 3.0)), SubscriberLosesAlone("loss", 17, 5.0, 2e4, (19e3, 21e3))],
        ),
    ],
)  # fmt: skip
def test_an_answer_and_what_is_beside_it_are_columns_and_these_are_warnings(
    answer: SearchAnswer, found: SideFindings, against: tuple[type[SearchWarning], ...], warnings: list[Event]
) -> None:
    reported = row(answer, found, *against)
    assert of_figure(reported, "loss") == warnings
    assert (reported["loss_note"] or "") == "; ".join(w.text.removeprefix("loss: ") for w in warnings)
    known = [column.name for column in side_columns("loss", "loss")]
    assert [name for name in reported if name.startswith("loss_") and name not in known] == []
    assert code_of([reported]) == (0 if answer.kind == "figure" else 3)


def test_every_why_has_its_warning() -> None:
    words = [why for kind in Event.kinds.values() if issubclass(kind, SearchWarning) and (why := kind.why)]
    assert {why.value for why in Inconclusive} < set(words)
    assert len(set(words)) == len(words)


def test_repeats_that_answer_differently_are_all_told_and_no_good_end() -> None:
    together = merge_repeats([row(FIGURE), row(SHORT), row(SHORT), row(NONE)], COLUMNS)
    assert (str(together["loss_answer"]), together["loss_why"]) == ("figure / unknown / none", "too short")
    assert (together["loss_needed_s"], together["loss_floor_pct"]) == (300.0, 2.0)
    (warning,) = of_figure(together, "loss")
    assert isinstance(warning, SearchText)
    assert "(2 of 4 repeats)" in warning.text
    assert "use --search-steps 60 or more in a new run (at least 300 s of measuring, about 6 min)" in warning.remedy
    assert code_of([together]) == 3
    assert code_of([merge_repeats([row(FIGURE), row(FIGURE)], COLUMNS)]) == 0
