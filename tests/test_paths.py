"""Every path and module of Hydra's own that documentation, comments and docstrings name is there.

With ``hydra/`` and without, from the root, from ``hydra/``, ``native/src`` or a folder above the text itself; a file's
name alone (``step.py``) is that of some file. CHANGELOG names earlier files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOPS = ("bench", "conf", "docs", "hydra", "native", "scripts", "tests")
MADE = {"build", "__pycache__", "runs"}
"""Folders of what is compiled or measured."""
PYTHON = re.compile(r'"""(.*?)"""|#([^\n]*)', re.DOTALL)
COMMENTS = {".py": PYTHON, ".cc": re.compile("//(.*)"), ".h": re.compile("//(.*)"), ".md": re.compile("(.*)")}
"""Where a kind of file names others; every other kind does after a ``#``."""
PATH = re.compile(r"(?<![\w./~$<-])(?:[\w-]+/)+[\w.-]*\w\b(?![*<{])|(?<![\w./*-])\w+\.(?:py|cc|h)\b")
COMMENT = re.compile("#(.*)")
MODULE = re.compile(r"(?<![\w./*-])hydra(?:\.[A-Za-z_]\w*)+")
CODE = (".py", ".cc", ".h")
ELSEWHERE = re.compile(
    r"\bNAME|RUN-SUFFIX"  # any name
    r"|^hydra\.(?:systems|engines|commands)$"  # groups of entry points
    r"|^hydra\.(?:tar|toml)$|^hydra/role$"  # a file of the reader's; a key of Kubernetes
    r"|^hydra[/.]conf\b|^hydra/native/hydra-client"  # only in an installed package, or compiled
    r"|^native/build|^linux/|^docs/docs/constraints\.md$"  # made there; Linux's; Marathon's
)


@cache
def files() -> frozenset[str]:
    """Of the project, without what is made, and their folders."""
    found = [path for top in TOPS for path in (ROOT / top).rglob("*") if not {*path.parts} & MADE]
    return frozenset(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.*"), ROOT / "Makefile", *found])


@cache
def names() -> frozenset[str]:
    return frozenset(path.rpartition("/")[2] for path in files())


def named_paths(path: str) -> Iterator[str]:
    """The paths and modules that a file names."""
    kind = Path(path).suffix
    text = "\n".join("".join(found) for found in COMMENTS.get(kind, COMMENT).findall((ROOT / path).read_text()))
    for word in PATH.findall(text):
        if word.partition("/")[0] in TOPS or word.endswith(CODE):
            yield word
    yield from MODULE.findall(text)


def exists(word: str, path: str) -> bool:
    """Whether what a file names exists; of a module, also the name in it."""
    if "/" not in word and word.endswith(CODE):
        return word in names()
    if "/" in word:
        folders = ["", "hydra", "native/src", *(folder.as_posix() for folder in Path(path).parents)]
        return any((Path(folder) / word).as_posix() in files() for folder in folders)
    return has(word.split("."))


def has(parts: list[str]) -> bool:
    """Whether there is such a module, or a module that names what stands in it."""
    for end in range(len(parts), 0, -1):
        module = "/".join(parts[:end])
        file = next((name for name in (f"{module}.py", f"{module}/__init__.py") if name in files()), None)
        if file:
            return end == len(parts) or bool(re.search(rf"\b{parts[end]}\b", (ROOT / file).read_text()))
    return False


@pytest.mark.parametrize("top", ["", *TOPS])
def test_every_path_that_is_named_is_there(top: str) -> None:
    texts = [path for path in sorted(files()) if path.startswith(f"{top}/") or (not top and "/" not in path)]
    kinds = (*COMMENTS, ".ini", ".toml", ".txt", ".yaml", ".yml", "Makefile")
    dead = {
        f"{path}: {word}"
        for path in texts
        if path.endswith(kinds) and path != "CHANGELOG.md"
        for word in named_paths(path)
        if not ELSEWHERE.search(word) and not exists(word, path)
    }
    assert sorted(dead) == []


@pytest.mark.parametrize(
    ("word", "present"),
    [
        ("hydra/run/nosuch.py", False), ("run/nosuch.py", False), ("nosuch.py", False), ("tests/nosuch", False),
        ("hydra.nosuch.Thing", False), ("hydra.errors.NoSuch", False), ("native/src/zmq/nosuch.cc", False),
        ("hydra/errors.py", True), ("errors.py", True), ("hydra.errors.HydraError", True), ("common/clock.h", True),
    ],
)  # fmt: skip
def test_a_dead_path_is_found(word: str, present: bool) -> None:
    assert exists(word, "docs/index.md") == present
