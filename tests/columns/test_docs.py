"""The tables of columns in the documentation are those that the records give."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "column_tables.py"))


def test_the_tables_of_the_page_are_made_of_the_records() -> None:
    page = SCRIPT["PAGE"].read_text()
    assert SCRIPT["renewed"](page) == page, "run scripts/column_tables.py"


def test_a_page_without_one_of_the_tables_is_refused() -> None:
    page = SCRIPT["PAGE"].read_text().replace("<!-- columns: step -->", "")
    with pytest.raises(ValueError, match="each of published"):
        SCRIPT["renewed"](page)
