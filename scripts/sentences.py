#!/usr/bin/env python3
"""Draws 60 sentences for reviewers who know neither the code nor the project.

    scripts/sentences.py SEED    # messages and help 20, column definitions 10, docs 20, docstrings 10

The same seed draws the same sentences of the same tree. Each has behind it where a reader finds it: the heading of a
page, the first line of what a docstring or a comment describes, otherwise the file.
"""

from __future__ import annotations

import random
import re
import runpy
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

SCRIPTS: Final = Path(__file__).resolve().parent
_LEAST_WORDS: Final = 6
"""A text with fewer is a name, or a part of a message that code puts together."""

_RUNNING: Final = ("docs", "docstrings")
"""The kinds of texts of which sentences of running text are drawn."""

_ENDS: Final = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[])|\n\s*\n|\n(?=[-*|#] ?)|\s*\|\s*")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|<!--.*?-->", re.MULTILINE | re.DOTALL)
_WHOLE: Final = re.compile(r"[A-Z`].*[.!?]")
"""A sentence of running text. Messages and cells of tables have neither a capital letter nor a full stop."""
_HEADING: Final = re.compile(r"[\s|]*#+ +(.*)")
_NO_PROSE: Final = re.compile(
    r"(?:hydra|SELECT|INSERT|CREATE|DELETE|UPDATE|WITH|ALTER|DROP|PRAGMA) [a-zA-Z]|…? ?[{<'(]"
)


class Sentence(NamedTuple):
    """A sentence and where it stands."""

    text: str
    place: str


def sentences(texts: Iterable[tuple[str, str]], *, whole: bool) -> Iterator[Sentence]:
    """Every sentence of the texts (place, words) that has enough words.

    Args:
        texts: as tuples (place, words).
        whole: whether only sentences of running text count.
    """
    for place, text in texts:
        file, _, line = place.rpartition(":")
        found = _described(file, int(line)) if line.isdecimal() and file.endswith((".py", ".h", ".cc")) else file
        for part in _ENDS.split(_CODE.sub("", text)):
            if whole and (heading := _HEADING.match(part)):
                found = f"{file}: {heading[1]}"
            words = " ".join(part.split()).strip("-*#| ")
            enough = len(re.findall(r"[A-Za-z]{2,}", words)) >= _LEAST_WORDS
            if enough and not _NO_PROSE.match(words) and (not whole or _WHOLE.fullmatch(words)):
                yield Sentence(words, found)


def _described(file: str, line: int) -> str:
    """The file, and the line before a docstring or a comment, which names what it describes."""
    lines = (SCRIPTS.parent / file).read_text(encoding="utf-8").splitlines()
    return f"{file}: {lines[line - 2].strip()}" if line > 1 else file


def kinds() -> Iterator[tuple[str, int, Iterable[tuple[str, str]]]]:
    """The kinds of texts, how many sentences of each are drawn, and the texts with their places."""
    prose, tables = (runpy.run_path(str(SCRIPTS / name)) for name in ("prose.py", "doc_tables.py"))
    yield "messages and help", 20, prose["texts"]("messages")
    yield "column definitions", 10, [(f"{c.name}:", c.help) for its in tables["columns"]().values() for c in its]
    yield "docs", 20, prose["texts"]("pages")
    yield "docstrings", 10, prose["texts"]("docstrings")


def main(seed: int) -> None:
    """Prints the sentences, numbered."""
    generator, number = random.Random(seed), 0  # noqa: S311  # a lot that can be drawn again, no secret
    for kind, count, texts in kinds():
        sys.stdout.write(f"\n## {kind}\n")
        for sentence in generator.sample(sorted(set(sentences(texts, whole=kind in _RUNNING))), count):
            number += 1
            sys.stdout.write(f"{number}. {sentence.text}  ({sentence.place})\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
