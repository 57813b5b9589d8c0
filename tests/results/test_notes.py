"""Which warnings a row of a group has."""

from __future__ import annotations

import pytest

from hydra.columns.searched import rates
from hydra.config.scenario import load_scenario
from hydra.events import row_warnings
from hydra.events.row_warnings import FateUnknown, HostBusy, Lagged, Loss, RowPartial, RowSkipped, SubscribersGone
from hydra.events.search_warnings import StillRising
from hydra.events.warnings import HydraWarning
from hydra.results.notes import notes_of, told_once
from hydra.sweep import Row

FIXED = load_scenario("zmqfixed", {})
ROW: Row = {"clients": 4, "cohort_clients": None, "status": "ok", "total_tx": 1000, "rx_clients": 4}


@pytest.mark.parametrize(
    ("figures", "alone", "in_a_group"),
    [
        ({"rx_clients": 1}, {row_warnings.FewReceived}, set()),
        ({"unknown": 5}, {FateUnknown}, {FateUnknown}),
        ({"unknown": 5, "failed_dead": 1}, {FateUnknown, SubscribersGone}, {row_warnings.FateOfGone, SubscribersGone}),
        ({"late_pct": 50.0}, {Lagged}, {Lagged}),
    ],
)
def test_the_notes_of_a_row(figures: Row, alone: set[type], in_a_group: set[type]) -> None:
    assert {type(n) for n in notes_of({**ROW, **figures}, FIXED)} == alone
    assert {type(n) for n in notes_of({**ROW, **figures, "group": "readers"}, FIXED)} == in_a_group


def test_a_row_that_was_skipped_in_the_middle_of_its_repeats_keeps_the_warnings_of_its_figures() -> None:
    bare: Row = {"clients": 4, "status": "skipped", "reason": "by hand"}
    for row, notes in (({**ROW, **bare, "late_pct": 50.0}, [RowSkipped, Lagged]), (bare, [RowSkipped])):
        assert [type(note) for note in notes_of(row, FIXED)] == notes


@pytest.mark.parametrize(("group", "messages"), [(None, 2000), ("readers", 500)])
def test_what_was_still_to_come_is_counted_once_for_a_group(group: str | None, messages: int) -> None:
    (note,) = notes_of({**ROW, "late_pct": 50.0, "group": group}, FIXED)
    assert isinstance(note, Lagged)
    assert note.messages == messages


def test_each_warning_stands_once_gravest_first_with_what_would_change_it() -> None:
    busy, lost = HostBusy(99.0), [Loss(2.0), Loss(3.0)]
    remedy = "ask for a lower rate; the column verdict says what limited it"
    assert told_once([("1 client", [busy, lost[0]]), ("2 clients", [busy]), ("3 clients", [lost[1], busy])]) == [
        ("1 client", f"{lost[0].text}; 3 clients: {lost[1].text}; {remedy}"),
        ("1 client; 2 clients; 3 clients", f"{busy.text}; {busy.remedy}"),
    ]
    remarks = [StillRising("max_rate"), StillRising("nodrop")]
    said = f"{remarks[0].text}; {remarks[1].text}; raise --start-rate"
    assert told_once([("1 client", remarks)]) == [("1 client", said)]


@pytest.mark.parametrize(
    ("rows", "of", "names"),
    [(4, 4, "row 0; row 1; row 2; row 3"), (5, 5, "all 5 rows"), (5, 6, "row 0; row 1; row 2; 2 more rows")],
)
def test_of_many_rows_a_few_are_named(rows: int, of: int, names: str) -> None:
    about: list[tuple[str, list[HydraWarning]]] = [(f"row {n}", [RowPartial()] if n < rows else []) for n in range(of)]
    assert [said for said, _ in told_once(about)] == [names]


SEARCHED: Row = {"clients": 4, "status": "ok", "slow_cohort_felt": False, "max_rate_with_drop_pps": 20_000.0}


def test_slow_clients_that_were_not_felt_have_what_it_would_have_taken() -> None:
    scenario = load_scenario("zmqrate", {"sweep.duration_s": 10.0})
    assert scenario.sweep.search is not None
    column = rates(scenario.sweep.search)["slow"]
    (note,) = notes_of({**SEARCHED, column: 12_000.0}, scenario)
    # They read half of 20,000/s, and the marks are 1,000 at both ends.
    assert isinstance(note, row_warnings.SlowNotFelt)
    assert (note.sent_pps, note.read_pps, note.duration_s, note.queue) == (12_000.0, 10_000.0, 10.0, 2000)
    assert note.kernel == pytest.approx(10 * 2**20 / 26)
    assert "fall behind by 20,000 messages in a step" in note.text
    (note,) = notes_of({**SEARCHED, column: 12_000.0}, load_scenario("zmqrate", {"settings.sndhwm": 0}))
    assert "set a limit" in str(note)
    (note,) = notes_of(SEARCHED, scenario)
    assert str(note).endswith("measure for longer, or make them slower")
