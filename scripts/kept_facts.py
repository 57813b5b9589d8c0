#!/usr/bin/env python3
"""Lists the keys, flags, columns, numbers and links that README and docs named in an earlier revision and name no more.

    scripts/kept_facts.py main                       # what is missing, by the page that named it
    scripts/kept_facts.py main --dropped reasons.txt # lines "FACT reason": dropped on purpose

A fact is kept if any page names it: pages may be merged. The exit code is 1 if a fact is missing without a reason.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_BLOCK: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(rf"{_BLOCK.pattern}|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_FLAG: Final = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_KEY: Final = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9]*(?:[._][a-z0-9]+)+(?![\w/])")
_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
_FILE: Final = re.compile(r"\.(py|md|toml|cc?|h|sh|json|csv|db|html|txt|jar|log|service)$")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_UNIT: Final = (
    r"%|µs|ms|ns|s|min|h|days?|bytes|[KMGT]i?B|[kKM]/s|/s|messages/s|million|cores?|CPUs?|steps?|clients|subscribers"
)
_NUMBER: Final = re.compile(rf"(?<![\w.,/#-])\d[\d,]*(?:\.\d+)?(?:\s?(?:{_UNIT})(?![\w]))?")


def facts(text: str, page: str) -> Iterator[str]:
    """The facts that a page names: keys and columns written as code, flags, numbers with their unit, links."""
    for target in _LINK.findall(text):
        yield f"link {_resolved(target, page)}"
    for found in _CODE.finditer(text):
        code = found[0].strip('`"')
        yield from (key for key in _KEY.findall(code) if not _FILE.search(key))
        if _WORD.fullmatch(code):
            yield code
    prose = _LINK.sub("]", text)
    yield from _FLAG.findall(prose)
    yield from (re.sub(r"[,\s]", "", number) for number in _NUMBER.findall(_BLOCK.sub("", prose)))


def _resolved(target: str, page: str) -> str:
    """A link's target as seen from the repository: what is within a page is a link to its anchor."""
    if "://" in target:
        return target
    path, _, anchor = target.partition("#")
    whole = normpath((PurePosixPath(page).parent / path).as_posix()) if path else page
    return f"{whole}#{anchor}" if anchor else whole


def now() -> dict[str, str]:
    """The text of each page of this tree."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def before(revision: str) -> dict[str, str]:
    """The text of each page of a revision."""
    names = _git("ls-tree", "-r", "--name-only", revision, "README.md", "docs").split("\n")
    return {name: _git("show", f"{revision}:{name}") for name in names if name.endswith(".md")}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout


def missing(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, list[str]]:
    """The facts of each old page that no new page names; pages that lost none are left out."""
    kept = {fact for page, text in new.items() for fact in facts(text, page)}
    lost = {page: sorted({*facts(text, page)} - kept) for page, text in old.items()}
    return {page: gone for page, gone in lost.items() if gone}


def main() -> int:
    """Prints what is missing; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("revision", help="the earlier revision, such as main")
    parser.add_argument("--dropped", type=Path, help="file of facts that were dropped on purpose: FACT reason")
    asked = parser.parse_args()
    lines = asked.dropped.read_text(encoding="utf-8").splitlines() if asked.dropped else []
    reasons = [line for line in lines if line.strip()]
    count = 0
    for page, lost in missing(before(asked.revision), now()).items():
        unexplained = [fact for fact in lost if not any(line.startswith(f"{fact} ") for line in reasons)]
        count += len(unexplained)
        if unexplained:
            sys.stdout.write("\n".join([page, *(f"    {fact}" for fact in unexplained), ""]))
    sys.stdout.write(f"{count} facts are missing\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
