"""Pages of the documentation that are made from the code are up to date, and the site's navigation has every page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.tier("test")  # it needs what engines bring: a second of imports
def test_every_command_stands_in_its_page() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "command_pages.py"))
    assert (ROOT / "docs" / "commands.md").read_text() == script["page"](), "run scripts/command_pages.py"


_PATH = re.compile(r"`([\w.*-]+/[\w./*{},-]+\.(?:py|h|cc|toml|csv|md|sh))`")
"""A file in a text; {a,b} are several."""


def test_the_files_that_pages_name_exist() -> None:
    folders = [ROOT, ROOT / "hydra", ROOT / "native" / "src", ROOT / "native" / "src" / "common"]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    named = [(page.name, path) for page in pages for path in _PATH.findall(page.read_text(encoding="utf-8"))]
    assert len(named) > 100
    several = [(page, path, re.fullmatch(r"(.*)\{(.*)\}(.*)", path)) for page, path in named]
    files = [
        (page, file)
        for page, path, parts in several
        for file in ([f"{parts[1]}{each}{parts[3]}" for each in parts[2].split(",")] if parts else [path])
    ]
    assert [each for each in files if not any(next(folder.glob(each[1]), None) for folder in folders)] == []


def test_the_navigation_has_every_page_once() -> None:
    listed = [line.split(":")[-1].strip() for line in (ROOT / "mkdocs.yml").read_text().splitlines() if ".md" in line]
    assert sorted(listed) == sorted(
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    )


def test_the_worked_client_stands_in_its_page() -> None:
    """``ruff format`` takes what stands in a block of Python for Python, and would take the marks apart."""
    shown = re.findall(
        r'^--8<-- "(docs/examples/\S+)"$', (ROOT / "docs" / "another-client.md").read_text(), re.MULTILINE
    )
    assert [Path(name).name for name in shown] == ["first_slice.c", "tiny_publisher.py", "tiny_step.py"]
    assert all((ROOT / name).is_file() for name in shown)


@pytest.mark.parametrize("whole", [False, True])
def test_sentences_are_drawn_without_code_and_fragments(whole: bool) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "sentences.py"))
    text = "The step is short and has ended. It ends!\n```\nhydra\n```\n| a | one cell of more words than five |\n"
    found = [sentence.text for sentence in script["sentences"]([("docs/a.md:1", text)], whole=whole)]
    assert found == ["The step is short and has ended.", "one cell of more words than five"][: 2 - whole]
