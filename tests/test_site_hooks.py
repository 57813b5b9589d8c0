"""Pages that are written for GitHub's Markdown, as MkDocs is given them."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
HOOKS = runpy.run_path(str(ROOT / "scripts" / "site_hooks.py"))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("text:\n- a\n- b", "text:\n\n- a\n- b"),
        ("text\n\n- a\n  more of a\n- b", "text\n\n- a\n    more of a\n- b"),
        ("- a\n  - in a\n    - in that\n- b", "- a\n    - in a\n        - in that\n- b"),
        ("1. a\n\n   | x |\n   |---|\n\n2. b", "1. a\n\n    | x |\n    |---|\n\n2. b"),
        ("1. a:\n\n       code\n\ntext", "1. a:\n\n        code\n\ntext"),
        ("- a\n\n  ```\n  - c\n      | c\n  ```\n- b", "- a\n\n    ```\n    - c\n        | c\n    ```\n\n- b"),
        ("1. a\n\n   more\n2. b", "1. a\n\n    more\n\n2. b"),
        ("```\ncode\n```\n| x |\n|---|", "```\ncode\n```\n\n| x |\n|---|"),
        ("<!-- columns: step -->\n| x |\n|---|\n| 1 |", "<!-- columns: step -->\n\n| x |\n|---|\n| 1 |"),
        ("a − b\nand so on", "a − b\nand so on"),
        ("```\ntext\n- no list\n```", "```\ntext\n- no list\n```"),
    ],
)  # fmt: skip
def test_lists_and_tables_are_found(written: str, read: str) -> None:
    assert "\n".join(HOOKS["blocks"](written.split("\n"))) == read


def link(text: str) -> str:
    return str(HOOKS["_OUTSIDE"].sub(lambda found: HOOKS["outside"](found, "page.md"), text))


def test_a_link_out_of_the_documentation_becomes_the_name_of_the_file() -> None:
    assert link("see [the bounds](../hydra/config/fields.py).") == "see the bounds (`hydra/config/fields.py`)."
    assert link("see [`conf/scenarios`](../conf/scenarios)") == "see `conf/scenarios`"
    with pytest.raises(FileNotFoundError, match=r"docs/page\.md links to \.\./nothing"):
        link("[x](../nothing)")


def test_a_picture_of_arrows_is_a_table() -> None:
    read = HOOKS["_PICTURE"].sub(
        lambda found: HOOKS["arrows"](found[1]), "```mermaid\nflowchart TD\n    a --> b\n    a --> c\n```\n"
    )
    assert read == "| from | to |\n|---|---|\n| `a` | `b`, `c` |\n"


@pytest.mark.parametrize(
    ("html", "good"),
    [
        ('<script src="assets/a.js"></script>', True),
        ('<a href="https://example.org/">there</a>', True),
        ('<script src="https://example.org/a.js"></script>', False),
        ('<link rel="stylesheet" href="//example.org/a.css">', False),
        ("<img alt='' src='http://example.org/a.png'>", False),
    ],
)
def test_a_page_that_would_load_something_from_elsewhere_fails(html: str, good: bool) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
    if good:
        assert HOOKS["on_post_page"](html, page, None) == html
    else:
        with pytest.raises(ValueError, match="not readable offline"):
            HOOKS["on_post_page"](html, page, None)
