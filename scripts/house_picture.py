#!/usr/bin/env python3
"""Draws the picture of the rooms in ``docs/architecture.md`` anew, from the imports in ``hydra/``.

A room is a package or a module right under ``hydra/``; those of systems, which have a ``spec.py``, are drawn as one. An
arrow says that one uses the other; what follows from other arrows is left out, and so are the nouns, which everybody
uses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
NOUNS = {"model", "errors"}
SYSTEMS = "systems"
_PART = re.compile(r"(<!-- picture -->\n).*?(<!-- end -->\n)", re.DOTALL)

Graph = Mapping[str, set[str]]
"""The rooms that each room uses."""


def rooms(house: Path) -> dict[str, set[str]]:
    """The rooms of a package and what each of them uses, without the nouns."""
    own = {spec.parent.name: SYSTEMS for spec in house.glob("*/spec.py")}
    uses: dict[str, set[str]] = {}
    for path in sorted(house.rglob("*.py")):
        room = path.relative_to(house).parts[0].removesuffix(".py")
        if room != "__init__":
            used = _used(ast.parse(path.read_text(encoding="utf-8")), house.name)
            uses.setdefault(own.get(room, room), set()).update(own.get(name, name) for name in used)
    known = uses.keys() - NOUNS
    return {room: (used & known) - {room} for room, used in uses.items() if room in known}


def _used(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith(f"{package}."))


def reduced(graph: Graph) -> dict[str, set[str]]:
    """The graph without the arrows that follow from others."""
    return {
        room: {used for used in uses if not any(_reaches(graph, other, used) for other in uses - {used})}
        for room, uses in graph.items()
    }


def _reaches(graph: Graph, room: str, target: str) -> bool:
    seen, waiting = {room}, [room]
    while waiting:
        for used in graph[waiting.pop()] - seen:
            if used == target:
                return True
            seen.add(used)
            waiting.append(used)
    return False


def picture(graph: Graph) -> str:
    """A flowchart of Mermaid."""
    arrows = [f"    {room} --> {used}" for room, uses in sorted(reduced(graph).items()) for used in sorted(uses)]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```", ""])


def renewed(page: str) -> str:
    """The page with its picture drawn anew.

    Raises:
        ValueError: it has no place for it, or several.
    """
    if len(_PART.findall(page)) != 1:
        raise ValueError("the page must have one place for the picture: <!-- picture --> … <!-- end -->")
    return _PART.sub(lambda part: part[1] + picture(rooms(ROOT / "hydra")) + part[2], page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
