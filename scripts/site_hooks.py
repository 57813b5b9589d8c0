"""What MkDocs is told of pages that are written for GitHub's Markdown: lists and links. Named in ``mkdocs.yml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
_ITEM: Final = re.compile(r"( *)([-*]|\d+\.)( +)")
_FENCE: Final = re.compile(r" *(```|~~~)")
_OUTSIDE: Final = re.compile(r"\[([^\]]*)\]\(\.\./([^)#]+)(#[^)]*)?\)")
_LOADED: Final = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
_PICTURE: Final = re.compile(r"^```mermaid\nflowchart [A-Z]+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ARROW: Final = re.compile(r"(\w+) --> (\w+)")
_TAB: Final = 4
"""How far Python's Markdown wants the inside of a list's item."""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # by name
    """The page as MkDocs reads it.

    Raises:
        FileNotFoundError: it links to a file of the repository that is not there.
    """
    text = _PICTURE.sub(lambda found: arrows(found[1]), markdown)
    return "\n".join(blocks(_OUTSIDE.sub(lambda link: outside(link, page.file.src_uri), text).split("\n")))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001  # by name
    """The page as it is written.

    Raises:
        ValueError: it would load something from elsewhere.
    """
    if found := _LOADED.search(output):
        raise ValueError(f"docs/{page.file.src_uri} is not readable offline: {found[0]}")
    return output


def arrows(picture: str) -> str:
    """A picture of Mermaid's as a table: what draws it would have to be loaded from elsewhere."""
    ends: dict[str, list[str]] = {}
    for begin, end in _ARROW.findall(picture):
        ends.setdefault(begin, []).append(f"`{end}`")
    return "\n".join(
        ["| from | to |", "|---|---|", *(f"| `{begin}` | {', '.join(to)} |" for begin, to in ends.items())]
    )


def outside(link: re.Match[str], source: str) -> str:
    """A link to a file of the repository that is no page: the site has its name only.

    Raises:
        FileNotFoundError: there is no such file.
    """
    text, path = link[1], link[2]
    if not (ROOT / path).exists():
        raise FileNotFoundError(f"docs/{source} links to ../{path}, which is not there")
    name = f"`{path.rstrip('/')}`"
    return name if text.strip("`") == path.rstrip("/") else f"{text} ({name})"


def blocks(lines: list[str]) -> Iterator[str]:
    """Lists and tables with an empty line before them, and the insides of lists where Python's Markdown wants them."""
    inside: list[int] = []  # where the text of each open item begins
    shift: int | None = None  # of the lines between two fences
    before = began = ""  # of what kind the line above was, and the first one since the last empty line
    for line in lines:
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if shift is not None:
            yield " " * max(0, indent + shift) + text
            if _FENCE.match(line):
                shift, before, began = None, "fence", "fence"
            continue
        item = _ITEM.match(line)
        kind = "" if not text else "item" if item else "table" if text.startswith("|") else "text"
        if kind and (item or not before):
            while inside and indent < inside[-1]:
                inside.pop()
        depth = sum(indent >= at for at in inside)
        if (kind == "table" and before not in ("", "table")) or (item and before and began != "item"):
            yield ""
            before = ""
        began = began if before else kind
        moved = _TAB * depth + indent - (inside[depth - 1] if depth else 0)
        yield " " * moved + text
        if item:
            inside.append(item.end())
        if _FENCE.match(line):
            shift = moved - indent
        before = kind
