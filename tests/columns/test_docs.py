"""The tables in the documentation are those that the code gives: columns, settings, warnings and events."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from hydra.events.event import Event

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "doc_tables.py"))
WARNINGS = ("run", "row", "search", "routine")
# They are tables by themselves, with a section of their own, or keys of other tables.
TABLES = "sweep settings publisher subscriber server native tables load events slo system"


@pytest.mark.parametrize("path", SCRIPT["pages"](), ids=lambda path: path.name)
def test_the_tables_of_a_page_are_those_of_the_code(path: Path) -> None:
    page = path.read_text()
    assert SCRIPT["renewed"](page) == page, "run scripts/doc_tables.py"


def test_a_page_that_names_another_table_is_refused() -> None:
    with pytest.raises(KeyError, match="strep"):
        SCRIPT["renewed"]("<!-- columns: strep -->\n<!-- end -->\n")


def test_every_table_of_columns_and_warnings_is_shown_once() -> None:
    shown = [mark for mark in SCRIPT["marks"]() if not mark.startswith(("settings", "files"))]
    assert sorted(shown) == sorted(
        [
            "exit codes: all",
            *(f"columns: {n}" for n in SCRIPT["columns"]()),
            *(f"events: {n}" for n in WARNINGS),
            *(f"messages: {n}" for n in ("from clients", "from the controller", "columns of a batch")),
        ]
    )


def test_every_warning_and_event_has_an_entry() -> None:
    listed = {kind.kind for name in WARNINGS for kind in SCRIPT["events"](name)}
    bases = {"warning", "row_warning", "status_warning", "figure_warning", "search_warning", "held_warning"}
    assert {*Event.kinds} - listed <= bases


@pytest.mark.parametrize("system", ["all", *(spec.identity.name for spec in SCRIPT["systems"]())])
def test_every_setting_is_explained_and_shown_once(system: str) -> None:
    shown: list[tuple[str, str]] = []
    for mark in SCRIPT["marks"]():
        kind, of, *words = mark.replace(":", "").split()
        if (kind, of) == ("settings", system):
            names = words[1:] or [n for names in SCRIPT["meanings"](SCRIPT["tables_of"](of)[words[0]]) for n in names]
            shown += [(words[0], name) for name in names]
    fitting = {
        (table, name) for table, noun in SCRIPT["tables_of"](system).items() for name in SCRIPT["fields_of"](noun)
    }
    assert sorted(shown) == sorted(each for each in fitting if each in shown or each[1] not in TABLES.split())
