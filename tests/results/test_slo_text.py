"""The answer to whether a workload holds, as people and programs read it."""

from __future__ import annotations

import json

import pytest

from hydra.measure.slo import ObjectiveResult, holds
from hydra.model import TimeSeriesFacts
from hydra.report.slo_text import answer_sentence, json_text, objective_warnings, objectives_table
from hydra.store.slo_results import SloResult

SHORT = ObjectiveResult("p99_ms", 20.0, 5.0, 4.0, None, None, "measure for at least 299 s", 299)
CLOCKS = ObjectiveResult("p50_ms", 1.0, 0.9, 0.0, 5.9, None, "clocks may be wrong by 5,000 us")
KEPT = ObjectiveResult("loss_pct", 0.0, 0.0, 0.0, 0.1, True)
MISSED = ObjectiveResult("max_ms", 1.0, 2.0, None, None, False)


@pytest.mark.parametrize(
    ("objectives", "word", "seconds", "sentence"),
    [
        ([KEPT], "yes", None, "yes: the workload holds"),
        ([KEPT, SHORT], "unknown", 299, "unknown: measure for at least 299 s"),
        ([CLOCKS, SHORT], "unknown", None, "unknown whether the workload holds"),
        ([SHORT, MISSED], "no", None, "no: the workload does not hold"),
    ],
)
def test_each_answer_has_its_word(
    objectives: list[ObjectiveResult], word: str, seconds: int | None, sentence: str
) -> None:
    answer = SloResult(holds(objectives), objectives, [], 0, True, TimeSeriesFacts(0, 10.0, 1, 1.0, complete=True), [])
    told = json.loads(json_text(answer, not_clean="3 % late"))
    assert (told["clean"], told["why"]) == (False, "3 % late")
    assert (told["answer"], told["measure_s"], answer_sentence(answer)) == (word, seconds, sentence)
    assert told["holds"] is {"yes": True, "no": False, "unknown": None}[word]
    assert objective_warnings(answer) == [f"{o.name}: {o.why}" for o in objectives if o.why]


def test_a_table_shows_both_limits() -> None:
    rows = objectives_table([SHORT, KEPT]).rows
    assert [row.cells[-2:] for row in rows] == [["4 ms – —", "unknown"], ["0 % – 0.1 %", "yes"]]
