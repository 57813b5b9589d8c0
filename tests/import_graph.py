"""The modules of hydra, and what each of them imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1] / "hydra"
Sources = Mapping[str, str]
"""Module name → its text."""
_IMPORT = re.compile(r"^[ \t]*((?:import|from\s+[\w.]+\s+import)\s+(?:\([^)]*\)|[^\n]*))", re.MULTILINE)
_parsed = cache(ast.parse)


@cache
def statements(text: str) -> list[tuple[int, ast.stmt]]:
    """Each import and its line. The formatter lets each begin a line: to parse all else would take seconds."""
    return [(text.count("\n", 0, found.start(1)) + 1, _parsed(found[1]).body[0]) for found in _IMPORT.finditer(text)]


@cache
def sources() -> Sources:
    found = {}
    for path in sorted(HOUSE.rglob("*.py")):
        parts = path.relative_to(HOUSE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


def imports(module: str, text: str, known: Sources) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, wherever in the text it stands."""
    for line, node in statements(text):
        if isinstance(node, ast.Import):
            yield from ((line, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # The house is written with absolute imports; a relative one is resolved as if in a module, not a package.
            base = ".".join(module.split(".")[: -node.level]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield line, inner if inner in known else origin


def third_parties(known: Sources, module: str) -> set[str]:
    used = {name.split(".")[0] for _, name in imports(module, known[module], known)}
    return used - set(sys.stdlib_module_names) - {"hydra"}
