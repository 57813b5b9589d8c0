#!/usr/bin/env python3
"""Finds the words that CONTRIBUTING.md ("Words") asks not to use, in everything that people read.

    scripts/prose.py              # how many in each scope, by pattern
    scripts/prose.py docs/nats.md # where they are, in files whose path begins so

``tests/test_prose.py`` allows none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
Scope = Literal["messages", "pages", "docstrings"]
"""Messages, help and column definitions; README and docs; docstrings and comments, also those of the tests."""
SCOPES: Final[tuple[Scope, ...]] = ("messages", "pages", "docstrings")

PATTERNS: Final = {
    name: re.compile(rf"(?i)(?<![\w-])(?:{forms})(?![\w-])")
    for name, forms in {
        "an actor without a name": "(?:no|some|every|any)body|(?:every|any|some)one(?! of\\b)|who(?:m)?ever",
        "tell": "tells?|told|telling",
        "say": "says?|said|saying",
        "go on": "(?:go|goes|going|went|gone) on(?: with)?",
        "so many": "so many",
        "as far as": "as far as",
        "anew": "anew",
        "come along": r"(?:comes?|came|coming|brings?|brought|bringing)(?: [\w'’-]+){0,5} along",
        "room, house, noun": "rooms|(?:this|each|every|which|pure) room|houses?|nouns?",
        "remark, caution": "remark(?:s|ed)?|caution(?:s|ed)?",
        "gravity": "gravity|grave(?:r|st)?",
        "course": "(?<!of )courses?",
        "spell": "spells?",
        "beside": r"(?:lay|lays|laid|laying)\b[^.;:]{0,60}\bbeside",
        "vouch": "vouch(?:es|ed)?",
        "felt": "felt",
        "fate": "fates?",
        "gone": "gone",
        "of ours": "of (?:ours|yours|theirs|(?:our|your) own)",
        "no word": "(?:no|last|a) words? (?:of|from|since|for)|no word",
        "backlog": r"pil(?:e|es|ed|ing) up|lagged|lags? behind|f(?:all|alls|alling|ell|allen) behind",
        "lost by": "losers?|takers?",
        "stranded": "stranded",
    }.items()
}
# What begins with "Of" or "Those of" and has no verb: a sentence without a subject.
PATTERNS["no subject"] = re.compile(r"(?:^|(?<=[.:;] ))(?:Of|Those of|As in|Likewise)\b[^.;,]{0,50}\.(?=\s|$)")

IDENTIFIER_WORDS: Final = re.compile(
    r"(?i)(?<![a-z])(?:(?:un)?told|tells?|said|says?|theirs|ours|mine|it|(?:un)?heed(?:ed)?|grave|gone|asked|there|beside"
    r"|patience|away|tires|anew|spells?|courses?|house|(?:no|every|some)body|whoever|remarks?|vouch)(?![a-z])"
)
"""Words that are no part of the name of a function, class, argument, variable or attribute of Hydra."""
_KEPT: Final = frozenset(
    {
        "course",
        "course_s",
        "spells",
        "there",
        "its_course",
        "run_snapshot.asked",
        "send_warnings.asked",
        "send_warnings.said",
    }
)
"""Names that files, the protocol, warnings in JSON and notebooks have."""
_QUOTED: Final = re.compile(
    r'^(```|~~~).*?^\1|``[^`]+``|`[^`\n]+`|"[^"\n]{1,160}"|“[^”]{1,160}”|\]\([^)]*\)|<!--.*?-->'
    r"|'\w+'|{\w+}|^(?:INSERT|SELECT|CREATE) .*\Z|^ +\w+(?=: )",
    re.M | re.S,
)
"""Quotations, code, names of values and of arguments, and SQL."""
_COMMENT: Final = re.compile(r"(?m)^(?:.*[^\s'\"{]\s{2})?\s*#(?!!|:| noqa| type:) ?(.*)$")
_CC_COMMENT: Final = re.compile(r"(?<!:)//+ ?([^\n]*)")
_CC_STRING: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_COMMENTED: Final = {".toml", ".yaml", ".properties", ".options"}
_WORDS: Final = 3
"""A literal with fewer is a name, not a message."""


class Text(NamedTuple):
    """Something that people read: ``place`` is the file, and the line where it begins."""

    place: str
    words: str


class Hit(NamedTuple):
    """A word that is not to be used, with what stands around it."""

    place: str
    pattern: str
    excerpt: str


def texts(scope: Scope) -> Iterator[Text]:
    """All texts of a scope."""
    if scope == "pages":
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            yield Text(f"{path.relative_to(ROOT)}:1", path.read_text(encoding="utf-8"))
        return
    for path in sorted((ROOT / "hydra").rglob("*.py")):
        yield from _of_python(path)[scope]
    if scope == "docstrings":
        for path in sorted((ROOT / "tests").rglob("*.py")):
            yield from _of_python(path)[scope]
    for path in sorted((ROOT / "native" / "src").rglob("*.[ch]*")):
        found = (_CC_STRING if scope == "messages" else _CC_COMMENT).finditer(path.read_text(encoding="utf-8"))
        yield from _enough(path, path.read_text(encoding="utf-8"), found)
    if scope == "messages":
        # Users copy these files, and read there what their keys mean.
        for path in sorted(path for path in (ROOT / "conf").rglob("*") if path.suffix in _COMMENTED):
            text = path.read_text(encoding="utf-8")
            yield from _enough(path, text, _COMMENT.finditer(text))
        for name in ("conf/grafana/hydra.json", "hydra/jupyter/sweep.ipynb"):
            text = (ROOT / name).read_text(encoding="utf-8")
            yield from _enough(ROOT / name, text, _CC_STRING.finditer(text))
        template = ROOT / "hydra" / "jupyter" / "page.html.j2"
        yield Text(f"{template.relative_to(ROOT)}:1", template.read_text(encoding="utf-8"))


@cache
def _of_python(path: Path) -> dict[Scope, list[Text]]:
    """Docstrings and comments, and all other literals: parts of one message are joined, values in it are ``…``."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    found: dict[Scope, list[Text]] = {"messages": [], "docstrings": []}
    for node in nodes:
        words = "" if id(node) in inner else _words(node)
        if len(words.split()) >= _WORDS and isinstance(node, ast.expr):
            scope: Scope = "docstrings" if id(node) in documents else "messages"
            found[scope].append(Text(f"{path.relative_to(ROOT)}:{node.lineno}", words))
    found["docstrings"] += _enough(path, source, _COMMENT.finditer(source))
    return found


def _words(node: ast.AST) -> str:
    """The text of a literal; "" if it is none."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _enough(path: Path, source: str, found: Iterable[re.Match[str]]) -> Iterator[Text]:
    """What was found in a file, if it is long enough; comments of lines that follow one another are one text."""
    start = end = 0
    words = ""
    for each in found:
        if words and source[end : each.start()].strip():
            yield from _text(path, source, start, words)
            words = ""
        start, end = start if words else each.start(), each.end()
        words = f"{words}\n{each[1]}".strip("\n")
    yield from _text(path, source, start, words)


def _text(path: Path, source: str, start: int, words: str) -> Iterator[Text]:
    if len(words.split()) >= _WORDS:
        yield Text(f"{path.relative_to(ROOT)}:{source.count(chr(10), 0, start) + 1}", words)


def hits(scope: Scope) -> Iterator[Hit]:
    """Every word of the scope's texts that is not to be used; quotations and code are left out."""
    for text in texts(scope):
        # As long as before, so that lines are still counted.
        plain = _QUOTED.sub(lambda quoted: re.sub(r"[^\n]", "~", quoted[0]), text.words)
        file, _, line = text.place.rpartition(":")
        for name, pattern in PATTERNS.items():
            for found in pattern.finditer(plain):
                at = int(line) + plain.count("\n", 0, found.start())
                excerpt = " ".join(text.words[max(0, found.start() - 40) : found.end() + 40].split())
                yield Hit(f"{file}:{at}", name, excerpt)


def identifiers() -> Iterator[Hit]:
    """Every definition in ``hydra/`` whose name has a word that is not to be used."""
    for path in sorted((ROOT / "hydra").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = _defined(node)
            if {name, f"{path.stem}.{name}"}.isdisjoint(_KEPT) and IDENTIFIER_WORDS.search(
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
            ):
                yield Hit(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", "identifier", name)


def _defined(node: ast.AST) -> str:
    """The name that a node defines; "" if it defines none."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.id if isinstance(node, ast.Name) else node.attr
    return ""


def main(words: list[str]) -> None:
    """Prints the counts, or the places in the files that were named."""
    for scope in SCOPES:
        found = list(hits(scope))
        if words:
            shown = [hit for hit in found if hit.place.startswith(tuple(words))]
            sys.stdout.writelines(f"{hit.place}: {hit.pattern}: {hit.excerpt}\n" for hit in shown)
        else:
            counts = Counter(hit.pattern for hit in found).most_common()
            sys.stdout.write(f"{scope}: {len(found)} ({', '.join(f'{name} {count}' for name, count in counts)})\n")


if __name__ == "__main__":
    main(sys.argv[1:])
