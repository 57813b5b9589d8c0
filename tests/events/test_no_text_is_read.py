"""No code reads English: with ``x`` in place of every text, flag, kind, remedy and exit code are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hydra.cli.main import main as whole_command
from hydra.config.scenario import load_scenario
from hydra.errors import RefusedError
from hydra.events.event import Event
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import SKIPPED_BY, USER, StepPlan
from hydra.report.row_warnings import WarnedRow, merge_equal_warnings, warnings_of
from hydra.run.runner import code_of
from hydra.sweep import Row, for_scenario
from hydra.sweep.repetition import merge_repeats
from hydra.sweep.search_answer import Inconclusive, SearchAnswer, SideFindings
from hydra.sweep.search_columns import search_columns
from hydra.sweep.search_figures import RateFigures
from hydra.sweep.search_spec import SearchSpec
from hydra.sweep.search_warnings import SearchWarning, text_of_search

FIXED = load_scenario("zmqfixed", {"sweep.clients": [2, 4, 6, 8]})
SEARCHED = load_scenario("zmqrate", {})
COLUMNS = {column.name: column for column in search_columns(SearchSpec())}


@pytest.fixture
def mute(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Removes the texts of all events and warnings."""

    def take() -> None:
        for kind in Event.kinds.values():
            monkeypatch.setattr(
                kind, "sentence" if issubclass(kind, SearchWarning) else "text", property(lambda _: "x")
            )
        refused = RefusedError.__init__

        def without_text(self: RefusedError, key: Any, _: str, remedy: str = "", others: Any = ()) -> None:
            refused(self, key, "x", remedy, others)

        monkeypatch.setattr(RefusedError, "__init__", without_text)

    return take


def measured(plan: StepPlan, epoch: int, reason: str) -> StepResult:
    """The user skips one row, another does not fit, one fails, and one is measured at the second try."""
    if plan.clients == 4:
        return StepResult(epoch, plan, "skipped", reason=reason)
    if plan.clients == 2:
        return StepResult(epoch, plan, "skipped", StepFigures.of({SKIPPED_BY: USER}), reason)
    failed = plan.clients == 6 or (plan.clients == 8 and epoch == 5)
    return StepResult(
        epoch, plan, "failed" if failed else "ok", StepFigures.of({"host_others_pct": 40.0}), reason if failed else ""
    )


def grid(reason: str) -> list[Row]:
    sweep, results = for_scenario(FIXED), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        results.append(measured(plan, len(results) + 1, reason))
    return sweep.rows(results)


def searched() -> list[Row]:
    """Every way in which a search has no answer, and several of them in one repeated row."""
    rows: list[Row] = []
    for why in Inconclusive:
        answer = SearchAnswer("unknown", why=why, needed_s=300.0)
        figures = RateFigures.of(answer, [500.0, 8e3], SideFindings())
        rows.append({"status": "ok", "step_s": 5.0, **figures.cells("loss")})
        rows[-1]["loss_note"] = text_of_search(rows[-1], "loss")
    return [*rows, merge_repeats(rows, COLUMNS)]


def test_rows_have_the_same_warnings_and_the_same_exit_code(mute: Callable[[], None]) -> None:
    def found(rows: list[Row], scenario: Any) -> list[object]:
        each = [[(w.kind, w.remedy, w.level) for w in warnings_of(row, scenario, rows)] for row in rows]
        return [code_of(rows), [code_of([row]) for row in rows], each]

    before = found(grid("needs 9 GB; take fewer"), FIXED), found(searched(), SEARCHED)
    mute()
    after = found(grid("x"), FIXED), found(searched(), SEARCHED)
    assert after == before
    kinds = [kind for row in before[0][2] for kind, *_ in row]  # type: ignore[attr-defined]  # see above
    assert kinds == ["row_skipped", "row_skipped", "row_failed", "host_shared", "second_try", "host_shared"]
    texts = [each.text for each in merge_equal_warnings([WarnedRow("a", warnings_of(row, FIXED)) for row in grid("x")])]
    assert {line.partition(";")[0] for line in texts} == {"x"}


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("zmqrate", "--clients", "2", "--sndhwm", "5,5"), "--sndhwm"),
        (("zmqfixed", "--clients", "2", "--set", "settings.rate=0"), "--set settings.rate"),
        (("zmqfixed", "--clients", "2", "--payload", "json", "--message-size", "24"), "--message-size"),
        (("zmqfixed", "--clients", "2", "--message-size", "24", "--set", "settings.receive_rate=-1"), "--set settings"),
        (("zmqfixed", "--clients", "30,30", "--duration", "9"), "--subscribers"),
        (("nats-fixed", "--replicas", "0"), "--replicas"),
        (("kafka-batch", "--msg-batch", "100,100"), "--msg-batch"),
    ],
)
def test_the_same_flag_is_named(
    mute: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    flag: str,
) -> None:
    monkeypatch.setattr("hydra.cli.main.interrupt_on_the_first", lambda: None)
    monkeypatch.setattr("sys.argv", ["hydra", *words])

    def said() -> str:
        with pytest.raises(SystemExit) as end:
            whole_command()
        assert end.value.code == 2
        return capsys.readouterr().err

    before = said()
    mute()
    after = said()
    remedy = after.partition(": x")[2]
    assert after.startswith(f"hydra: {flag}")
    assert remedy
    assert before.startswith(f"hydra: {flag}")
    assert before.endswith(remedy)
