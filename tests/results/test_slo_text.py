"""The answer to whether a workload holds, as people and programs read it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hydra.measure.slo import ObjectiveResult, holds
from hydra.model import RunSetup, TimeSeriesFacts
from hydra.report.slo_text import answer_line, answer_sentence, json_text, objective_warnings, objectives_table
from hydra.store.slo_results import SloResult

SHORT = ObjectiveResult("p99_ms", 20.0, 5.0, 4.0, None, None, "measure for at least 299 s", 299)
CLOCKS = ObjectiveResult("p50_ms", 1.0, 0.9, 0.0, 5.9, None, "clocks may be wrong by 5,000 us")
KEPT = ObjectiveResult("loss_pct", 0.0, 0.0, 0.0, 0.1, True)
MISSED = ObjectiveResult("max_ms", 1.0, 2.0, None, None, False)
LOST = ObjectiveResult("p99_ms", 1.0, None, 9.0, None, False, "3 copies did not arrive")
SENT = ObjectiveResult("rate", 990.0, 1000.0, None, None, True)


@pytest.mark.parametrize(
    ("objectives", "word", "seconds", "sentence", "line"),
    [
        (
            [SENT, KEPT], "yes", None, "yes: the workload holds",
            "yes: loss_pct 0 % (95 % interval: 0 % – 0.1 %), target <= 0 %",
        ),
        (
            [KEPT, SHORT], "unknown", 299, "unknown: measure for at least 299 s",
            "unknown: p99_ms 5 ms (95 % interval: at least 4 ms), target <= 20 ms; measure for at least 299 s",
        ),
        (
            [CLOCKS, SHORT], "unknown", None, "unknown whether the workload holds",
            "unknown: p50_ms 0.9 ms (95 % interval: 0 ms – 5.9 ms), target <= 1 ms: clocks may be wrong by 5,000 us; "
            "p99_ms 5 ms (95 % interval: at least 4 ms), target <= 20 ms",
        ),
        ([SHORT, MISSED], "no", None, "no: the workload does not hold", "no: max_ms 2 ms, target <= 1 ms"),
        (
            [LOST], "no", None, "no: the workload does not hold",
            "no: p99_ms — (95 % interval: at least 9 ms), target <= 1 ms: 3 copies did not arrive",
        ),
    ],
)  # fmt: skip
def test_each_answer_has_its_word_and_a_line_with_the_figures_that_decide_it(
    objectives: list[ObjectiveResult], word: str, seconds: int | None, sentence: str, line: str
) -> None:
    answer = SloResult(holds(objectives), objectives, [], 0, True, TimeSeriesFacts(0, 10.0, 1, 1.0, complete=True), [])
    content = json.loads(json_text(RunSetup(), answer, not_clean="3 % late"))
    assert (content["clean"], content["why"]) == (False, "3 % late")
    assert (content["answer"], content["measure_s"], answer_sentence(answer)) == (word, seconds, sentence)
    assert answer_line(answer) == line
    assert content["holds"] is {"yes": True, "no": False, "unknown": None}[word]
    assert objective_warnings(answer) == [f"{o.name}: {o.why}" for o in objectives if o.why]


def test_a_table_shows_both_limits() -> None:
    rows = objectives_table([SHORT, KEPT]).rows
    assert [row.cells[-2:] for row in rows] == [["at least 4 ms", "unknown"], ["0 % – 0.1 %", "yes"]]


@pytest.mark.parametrize(
    ("local", "others_pct", "ends"),
    [
        ("host CPU", 24.0, "(other processes used 24 % of it); to get an answer, end the other processes"),
        ("host CPU", None, "host CPU; to get an answer, use fewer clients on this host"),
        ("subscriber hosts", 40.0, "subscriber hosts; to get an answer, use fewer clients on this host"),
        ("publisher", None, "publisher; to get an answer, use a faster publisher"),
    ],
)
def test_an_answer_that_this_machine_prevented_has_the_remedy_of_a_row_at_the_same_rate(
    local: str, others_pct: float | None, ends: str
) -> None:
    objectives = [SENT, replace(MISSED, holds=None, local=local)]
    facts = TimeSeriesFacts(0, 10.0, 1, 1.0, complete=True)
    answer = SloResult(None, objectives, [], 0, True, facts, [], others_pct)
    assert ends in answer_sentence(answer)
    assert answer_sentence(answer).removeprefix("unknown on this machine: ") in answer_line(answer)
    assert "lower rate" not in answer_sentence(answer)
