"""The tables of columns in the documentation are those that the records give."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "column_tables.py"))


@pytest.mark.parametrize("path", SCRIPT["pages"](), ids=lambda path: path.name)
def test_the_tables_of_a_page_are_made_of_the_records(path: Path) -> None:
    page = path.read_text()
    assert SCRIPT["renewed"](page, SCRIPT["pages"]()[path]) == page, "run scripts/column_tables.py"


def test_a_page_without_one_of_the_tables_is_refused() -> None:
    ((path, parts), *_) = SCRIPT["pages"]().items()
    page = path.read_text().replace("<!-- columns: step -->", "")
    with pytest.raises(ValueError, match="each of published"):
        SCRIPT["renewed"](page, parts)
