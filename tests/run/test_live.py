"""What the live view shows, as text."""

from __future__ import annotations

import pytest

from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Settings, StepPlan
from hydra.monitor.live_view import lines, sparkline
from hydra.monitor.step_progress import LiveViewState, ProgressDetails, SparklinePoint, StepProgress

POINTS = [SparklinePoint(1000.0, 0.0, 200.0), SparklinePoint(), SparklinePoint(4000.0, 2.5, 1600.0)]
WATCHED = ProgressDetails(0.0234, ((17, 512.3), (3, 890.0)), 30, {"one": 20.4, "two": 63.0})
SENDING = StepProgress(4.0, 0.4, sent_pps=30_000.0, received_pps=998.4, p99_us=820.0)
WHOLE = LiveViewState("step 3 of 6: 30 subscribers, 1,000/s", POINTS, 80.0, SENDING, WATCHED, keys=True)


def shown(snapshot: LiveViewState, width: int = 80, height: int = 20) -> list[str]:
    return [line.plain for line in lines(snapshot, width, height)]


def test_the_view_of_a_step_in_the_middle_of_its_window() -> None:
    assert shown(WHOLE) == [
        "step 3 of 6: 30 subscribers, 1,000/s" + "about 80 s left".rjust(44),
        "━" * 10 + "─" * 14 + "  40 %, 6 s of this step left",
        "now       30,000/s sent, 998/s per subscriber, 2.3 % not there yet, p99 820 µs",
        "slowest   client 17: 512/s, client 3: 890/s (of 30)",
        "CPU       two 63 %, one 20 %",
        "delivered ▃·█  last 4,000/s, highest 4,000/s",
        "lost      ▁·█  last 2.5 %, highest 2.5 %",
        "p99       ▂·█  last 1.6 ms, highest 1.6 ms",
        "e end after this step   s skip this row   Ctrl-C end now",
    ]


@pytest.mark.parametrize(
    ("snapshot", "output"),
    [
        (LiveViewState("step 1: 2 subscribers"), ["step 1: 2 subscribers", "preparing", "Ctrl-C ends the run now"]),
        (LiveViewState("", preparing="starting 3 toy servers"), ["starting 3 toy servers", "Ctrl-C ends the run now"]),
        (
            LiveViewState("s", clients=(12, 1_000)),
            ["preparing: clients are launched and made ready; 12 of 1,000 have connected"],
        ),
        (LiveViewState("s", keys=True, ends=True), ["ends after this step   s skip this row"]),
        (LiveViewState("s", keys=True, passes_over=True), ["e end after this step   skips this row"]),
        (LiveViewState("s", moment=StepProgress(3.0, 0.1, doing="draining")), ["still on their way"]),
        (
            LiveViewState("s", moment=StepProgress(2.0, 0.5, received_pps=7.0, doing="reading")),
            ["reading the stored messages, 50 %"],
        ),
        (LiveViewState("s", moment=SENDING, watched=ProgressDetails(0.004)), ["under 1 % not there yet"]),
        (LiveViewState("s", left_s=200.0), ["about 3 min 20 s left"]),
    ],
)
def test_what_else_there_is_to_tell(snapshot: LiveViewState, output: list[str]) -> None:
    text = "\n".join(shown(snapshot))
    assert [words for words in output if words not in text] == []


@pytest.mark.parametrize("moment", [None, StepProgress(0.0, 0.0), StepProgress(1.0, 0.1, doing="draining")])
def test_what_nobody_knows_is_not_shown(moment: StepProgress | None) -> None:
    text = "\n".join(shown(LiveViewState("step 1", [SparklinePoint()], moment=moment)))
    assert [word for word in ("/s", "slowest", "CPU", "delivered", "lost", "p99", "about") if word in text] == []


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 5), (40, 9), (20, 3), (10, 1)])
def test_the_view_fits_its_terminal(width: int, height: int) -> None:
    long = LiveViewState("step 3 of 6: " + "x" * 200, POINTS * 50, 1e6, SENDING, WATCHED, keys=True)
    found = lines(long, width, height)
    assert len(found) <= height
    assert all(line.cell_len <= width for line in found)
    assert found[0].plain.startswith("step 3"[: width - 1])


def test_of_a_low_terminal_the_keys_are_left() -> None:
    assert shown(WHOLE, height=2)[1].startswith("e end after this step")


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0.0, 0.0], "▁▁"),
        ([1.0, 8.0, None], "▂█·"),
        ([None], "·"),
        ([float(n) for n in range(9)], "▁▂▃▄▅▆▇██"),
    ],
)
def test_a_sparkline_begins_at_zero_and_leaves_out_what_is_not_known(values: list[float | None], drawn: str) -> None:
    assert sparkline(values) == drawn
    assert sparkline([1.0, *values], max(len(values), 1))[-len(drawn) :] == drawn or not drawn


@pytest.mark.parametrize(
    ("figures", "p99_us"),
    [
        ({"latency_p99_us": 5, "latency_from_send_p99_us": 9}, 5.0),
        ({"latency_from_send_p99_us": 9.5}, 9.5),
        ({"latency_p99_us": None}, None),
    ],
)
def test_a_step_is_drawn_by_what_it_measured(figures: dict[str, float | None], p99_us: float | None) -> None:
    plan = StepPlan(3, Settings(), 1.0)
    assert SparklinePoint.of(
        StepResult(1, plan, "ok", StepFigures.of({"aggregate_pps": 7.0, **figures}))
    ) == SparklinePoint(7.0, None, p99_us)
