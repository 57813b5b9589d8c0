"""Texts that people read use the words of docs/glossary.md and none that CONTRIBUTING.md ("Words") replaces."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "prose.py"))


@pytest.mark.parametrize("scope", SCRIPT["SCOPES"])
def test_no_text_has_a_word_that_another_one_replaces(scope: str) -> None:
    found = list(SCRIPT["hits"](scope))
    files = Counter(hit.place.rpartition(":")[0] for hit in found).most_common(5)
    shown = "\n".join(f"{hit.place}: {hit.pattern}: {hit.excerpt}" for hit in found[:10])
    assert not found, f"scripts/prose.py FILE shows them; most in {files}\n{shown}"


def test_no_identifier_has_a_word_that_a_sentence_may_not_have() -> None:
    found = list(SCRIPT["identifiers"]())
    assert not found, "; ".join(f"{hit.place}: {hit.excerpt}" for hit in found)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Nobody knows what became of it.", "an actor without a name"),
        ("it is told to whoever asks", "an actor without a name"),
        ("The run goes on with the next step.", "go on"),
        ("What was said before", "say"),
        ("Servers are yours or come along.", "come along"),
        ("Hydra brings a mosquitto along", "come along"),
        ("the gravest first", "gravity"),
        ("The course of a step", "course"),
        ("Of each measurement.", "no subject"),
        ("the client has gone", "gone"),
    ],
)
def test_a_pattern_finds_all_forms_of_its_words(text: str, pattern: str) -> None:
    assert SCRIPT["PATTERNS"][pattern].search(text)


@pytest.mark.parametrize(
    "text", ["of course it does", "each one of them; everyone of", "a spelling", "a groom", "to-say"]
)
def test_a_pattern_finds_no_other_words(text: str) -> None:
    assert [name for name, pattern in SCRIPT["PATTERNS"].items() if pattern.search(text)] == []


def test_code_and_quotations_may_use_any_word() -> None:
    text = 'Its key is `gone`, and the broker wrote "nobody told me".\n```\nhydra --anew\n```\n[see](nobody.md)'
    plain = SCRIPT["_QUOTED"].sub("", text)
    assert [name for name, pattern in SCRIPT["PATTERNS"].items() if pattern.search(plain)] == []


def test_the_glossary_has_each_term_once_in_order() -> None:
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| **")]
    terms = [line.split("**")[1].lower() for line in rows]
    assert terms == sorted(set(terms))
    assert len(terms) >= 31
