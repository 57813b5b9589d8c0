"""Pages of the documentation that are made from the code are up to date, and the site's navigation has every page."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.processes  # it needs what engines bring: a second of imports
def test_every_command_stands_in_its_page() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "command_pages.py"))
    assert (ROOT / "docs" / "commands.md").read_text() == script["page"](), "run scripts/command_pages.py"


def test_the_navigation_has_every_page_once() -> None:
    listed = [line.split(":")[-1].strip() for line in (ROOT / "mkdocs.yml").read_text().splitlines() if ".md" in line]
    assert sorted(listed) == sorted(
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    )
