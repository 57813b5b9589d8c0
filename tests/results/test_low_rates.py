"""Figures below 1, such as rates of a message in some seconds, are never shown as 0."""

from __future__ import annotations

from hydra.jupyter import blocks
from hydra.measure.column import PER_SECOND, Column
from hydra.monitor import live_view
from hydra.monitor.step_progress import LiveViewState, StepProgress
from hydra.report import tables
from hydra.report.send_warnings import RateMissed
from hydra.sweep.search_warnings import AnswerAboveHighest, AnswerBelowLowest


def test_a_rate_below_half_a_message_per_second_is_shown_in_every_text() -> None:
    warnings = [
        str(RateMissed(0.4, 0.004).text),
        AnswerAboveHighest("loss", None, 5.0, (0.25, None)).sentence,
        AnswerAboveHighest("loss", None, 5.0, (0.25, None)).remedy,
        AnswerBelowLowest("loss", None, 5.0, (None, 0.125)).sentence,
    ]
    moment = StepProgress(3.0, 0.4, sent_pps=0.4, received_pps=0.2)
    view = [line.plain for line in live_view.lines(LiveViewState("s", moment=moment), 80, 24)]
    assert ["0.4/s; the mean rate was 0.004/s" in warnings[0], "0.25/s" in warnings[1]] == [True, True]
    assert ["--start-rate 0.25," in warnings[2], "0.125/s" in warnings[3]] == [True, True]
    assert any("0.4/s sent, 0.2/s per subscriber" in line for line in view)


def test_a_start_rate_to_copy_has_no_separators() -> None:
    assert "--start-rate 28100, which" in AnswerAboveHighest("loss", None, 5.0, (28_100.4, None)).remedy


def test_tables_round_no_figure_to_zero() -> None:
    rate = Column("rate", PER_SECOND)
    mean = Column("total", "messages", digits="none")
    assert [tables.cell(rate, value) for value in (0.0, 0.004, 0.25, 12.3456)] == ["0", "0.004", "0.25", "12.35"]
    assert [tables.cell(mean, value) for value in (0.0, 0.25, 12.3456)] == ["0", "0.25", "12"]
    assert [blocks.figure(rate, value) for value in (0.0, 0.004, 0.25, 12.3456)] == ["0", "0.004", "0.25", "12.35"]
