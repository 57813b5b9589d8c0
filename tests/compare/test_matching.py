"""Which rows are the same: by what was asked for, never by what is compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.analysis.compared_runs import ComparedRow, ComparedRun, Row, RowRepeat, differences, match
from hydra.errors import UsageError
from tests.compare.simulated import COLUMNS


def run(
    name: str, *settings: Row, varied: tuple[str, ...] = (), system: str = "some", searches: str = ""
) -> ComparedRun:
    rows = [ComparedRow(each, [RowRepeat({"avg_rx_rate_pps": 1.0})]) for each in settings]
    return ComparedRun(name, name, system, rows, COLUMNS, searches, varied)


A = {"clients": 30, "rate": 1000.0, "message_size": 100, "queue": 5}
B = {**A, "clients": 60}


def test_rows_are_told_by_client_count_and_what_is_compared_is_not_looked_at() -> None:
    matching = match([run("a", A, B), run("b", {**B, "queue": 9}, {**A, "queue": 9})])
    names = [(each.name, [row.settings["queue"] for row in each.rows]) for each in matching.rows]
    assert names == [("30 subscribers", [5, 9]), ("60 subscribers", [5, 9])]
    assert matching.unmatched == {}


def test_a_setting_that_one_of_them_varies_tells_rows_apart_in_all() -> None:
    several = run("a", A, {**A, "queue": 9}, varied=("queue",))
    matching = match([several, run("b", {**A, "queue": 9})])
    assert [dict(row.settings)["queue"] for row in matching.rows] == [9]
    assert matching.unmatched == {"a": ["30 subscribers, queue 5"]}


def test_rows_that_not_all_have_are_listed() -> None:
    matching = match([run("a", A, B), run("b", A), run("c", A, {**A, "clients": 90})])
    assert [row.name for row in matching.rows] == ["30 subscribers"]
    assert matching.unmatched == {"a": ["60 subscribers"], "c": ["90 subscribers"]}


def test_points_are_told_by_their_name() -> None:
    here = run("a", {**A, "point": "small"})
    # However they came out.
    failed = replace(here, name="b", rows=[replace(here.rows[0], repeats=[RowRepeat({}, problem="lost")])])
    assert [row.name for row in match([here, failed]).rows] == ["small"]


@pytest.mark.parametrize("name", ["rate", "message_size", "message_size_min", "payload", "publishers", "messages"])
def test_another_workload_is_another_row_and_the_refusal_says_which(name: str) -> None:
    with pytest.raises(UsageError, match=f"no row is in all of these runs: {name}: a 7; b 8"):
        match([run("a", {**A, name: 7}), run("b", {**A, name: 8})])


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ((run("b", {**A, "rate": 5.0}, system="other"),), "rate: a 1000.0; b 5.0"),
        (
            (run("b", A, {**A, "acks": 1}, system="other"),),
            "b has several rows with the same clients, publishers, rate",
        ),
        ((run("b", A, searches="searches for x"),), "different experiments: a searches for nothing, b searches for x"),
        ((run("b"),), "no row is in all of these runs: b has none"),
        ((run("b", A), run("c", B)), "clients: a 30; b 30; c 60"),
        ((run("b", {**A, "clients": 60}, {**B, "rate": 5.0, "clients": 30}),), "other combinations|rate"),
    ],
)
def test_runs_that_cannot_be_compared(others: tuple[ComparedRun, ...], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        match([run("a", A), *others])


def test_rows_of_two_systems_agree_in_clients_publishers_rate_and_size() -> None:
    own, other = run("a", {**A, "payload": "zeros"}, B), run("b", {**B, "acks": "1"}, A, system="other")
    assert [each.name for each in match([own, other]).rows] == ["30 subscribers", "60 subscribers"]


def test_what_is_compared_tells_no_rows_apart() -> None:
    slow, fast = (
        replace(run(name, {**A, "rate": rate}), apart={"settings.rate": str(rate)})
        for name, rate in (("a", 1000.0), ("b", 2000.0))
    )
    assert [each.name for each in match([slow, fast]).rows] == ["30 subscribers"]
    assert [[row.settings["rate"] for row in each.rows] for each in match([slow, fast]).rows] == [[1000.0, 2000.0]]


def test_an_environment_differs_where_its_facts_do() -> None:
    here = {"host": {"name": "x", "cores": 2}, "agents": [{"id": 1}, {"id": 2}], "limits": [1, 2], "none": None}
    present = {"host": {"name": "y", "cores": 2}, "agents": [{"id": 1}], "limits": [1, 3], "more": True}
    assert [(each.what, each.values) for each in differences([here, present])] == [
        ("host.name", ("x", "y")),
        ("agents.1.id", ("2", "")),
        ("limits", ("1, 2", "1, 3")),
        ("more", ("", "True")),
    ]
    assert differences([here, here, here]) == []
