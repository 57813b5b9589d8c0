"""Which warnings a row of a group has."""

from __future__ import annotations

import pytest

from hydra.config.scenario import load_scenario
from hydra.events.row_warnings import FateOfGone, FateUnknown, FewReceived, Lagged, SubscribersGone
from hydra.results.notes import notes_of
from hydra.sweep import Row

ROW: Row = {"clients": 4, "cohort_clients": None, "status": "ok", "total_tx": 1000, "rx_clients": 4}


@pytest.mark.parametrize(
    ("figures", "alone", "in_a_group"),
    [
        ({"rx_clients": 1}, {FewReceived}, set()),
        ({"unknown": 5}, {FateUnknown}, {FateUnknown}),
        ({"unknown": 5, "failed_dead": 1}, {FateUnknown, SubscribersGone}, {FateOfGone, SubscribersGone}),
        ({"late_pct": 50.0}, {Lagged}, {Lagged}),
    ],
)
def test_the_notes_of_a_row(figures: Row, alone: set[type], in_a_group: set[type]) -> None:
    scenario = load_scenario("zmqfixed", {})
    assert {type(n) for n in notes_of({**ROW, **figures}, scenario)} == alone
    assert {type(n) for n in notes_of({**ROW, **figures, "group": "readers"}, scenario)} == in_a_group


@pytest.mark.parametrize(("group", "messages"), [(None, 2000), ("readers", 500)])
def test_what_was_still_to_come_is_counted_once_for_a_group(group: str | None, messages: int) -> None:
    (note,) = notes_of({**ROW, "late_pct": 50.0, "group": group}, load_scenario("zmqfixed", {}))
    assert isinstance(note, Lagged)
    assert note.messages == messages
