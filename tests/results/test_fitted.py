"""Tables and texts as wide as the terminal."""

from __future__ import annotations

import pytest

from hydra.report.figure_texts import OF_ROWS
from hydra.report.table import Table, TableCell, TableRow, fitted, markdown, tabled, without_empty_columns

ROWS = [
    {"name": "a_long_name_of_a_run", "steps": 1234, "memory": 0.25, "why": "no disk was there to write on " * 3},
    {"name": "b", "steps": 7, "memory": 12.0, "why": ""},
]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_is_no_wider_than_its_terminal_and_loses_nothing(width: int) -> None:
    lines = tabled(ROWS, width).splitlines()
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    for cell in ("1,234", "0.25", "12") if width > 20 else ():
        assert cell in text
    # Folded cells of several columns stand beside each other: every word is there nevertheless.
    letters = sorted("".join(str(row["why"]) for row in ROWS).replace(" ", ""))
    assert all(text.count(letter) >= letters.count(letter) for letter in set(letters))


def test_the_column_whose_folding_costs_least_is_folded() -> None:
    assert tabled(ROWS, 60).splitlines() == [
        "name          steps  memory  why",
        "────────────  ─────  ──────  ───────────────────────────────",
        "a_long_name_  1,234    0.25  no disk was there to write on",
        "of_a_run                     no disk was there to write on",
        "                             no disk was there to write on",
        "b                 7      12",
    ]


def test_a_table_of_a_pipe_is_as_wide_as_it_gets() -> None:
    assert max(map(len, tabled(ROWS).splitlines())) > 100
    assert fitted("x" * 200) == "x" * 200


def test_short_tables() -> None:
    assert (tabled([], 80), tabled([{"a": 1}], 80).split()) == ("", ["a", "─", "1"])


DOCUMENT = (
    "# t2 against t1",
    "- ⚠ the **runs** did not take turns, so that whatever else changed counts as well",
    Table(
        ["left", "name"],
        [TableRow(["1", TableCell("one", "[0 – 2]")]), TableRow(["1,000", "two | three"], "⚠", "why")],
        [True, False],
    ),
)


def test_a_document_is_markdown_in_a_file_and_wrapped_at_a_terminal() -> None:
    assert fitted(DOCUMENT) == markdown(DOCUMENT)
    assert markdown(DOCUMENT).splitlines()[4:] == [
        "|    left | name        |",
        "|--------:|:------------|",
        "|       1 | one [0 – 2] |",
        "| 1,000 ⚠ | two | three |",
        "",
        f"`⚠` {OF_ROWS['⚠']}",
    ]
    assert fitted(DOCUMENT, 40).splitlines() == [
        "t2 against t1",
        "",
        "- ⚠ the runs did not take turns, so that",
        "  whatever else changed counts as well",
        "",
        "   left  name",
        "───────  ───────────",
        "      1  one",
        "         [0 – 2]",
        "1,000 ⚠  two | three",
        "",
        "⚠ the row is not clean: read its",
        "warnings before you use its figures",
    ]


def test_a_row_with_a_mark_has_another_colour_where_there_are_some() -> None:
    assert [line for line in fitted(DOCUMENT, 40, colours=True).splitlines() if "\x1b" in line] == [
        "\x1b[33m1,000 ⚠  two | three\x1b[0m"
    ]


def test_spaces_of_a_short_line_are_kept() -> None:
    assert fitted("  two spaces  between", 80) == "  two spaces  between"


def test_only_where_nothing_else_is_left_words_are_cut() -> None:
    table = Table(["measured", "figure"], [TableRow(["1,234,567", "max_rate_below_1pct_drop_pps"])], [True, False])
    assert fitted([table], 24).splitlines() == [
        " measured  figure",
        "─────────  ─────────────",
        "1,234,567  max_rate_",
        "           below_1pct_",
        "           drop_pps",
    ]
    assert max(map(len, fitted([table], 12).splitlines())) <= 12


def test_a_column_that_is_empty_in_all_rows_is_left_out() -> None:
    rows = [TableRow(["a", "—", TableCell("—"), "", "0"], "⚠"), TableRow(["b", TableCell("1"), "—", "", "—"])]
    table = Table(["row", "once", "never", "no text", "zero"], rows, [False, True, True, False, True], list("abcde"))
    assert without_empty_columns(table) == Table(
        ["row", "once", "zero"],
        [TableRow(["a", "—", "0"], "⚠"), TableRow(["b", TableCell("1"), "—"])],
        [False, True, True],
        list("abe"),
        [],
    )


def test_a_table_without_rows_keeps_its_columns() -> None:
    assert without_empty_columns(Table(["row", "figure"], [])) == Table(["row", "figure"], [])
