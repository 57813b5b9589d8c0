"""The modules of hydra, and what each of them imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "hydra"
Sources = Mapping[str, str]
"""Module name → its text."""
_IMPORT = re.compile(r"^[ \t]*((?:import|from\s+[\w.]+\s+import)\s+(?:\([^)]*\)|[^\n]*))", re.MULTILINE)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+[^\n]*\n|\n)+", re.MULTILINE)
_parsed = cache(ast.parse)


@cache
def statements(text: str) -> list[tuple[int, ast.stmt]]:
    """Each import and its line. The formatter lets each begin a line: to parse all else would take seconds."""
    return [(text.count("\n", 0, found.start(1)) + 1, _parsed(found[1]).body[0]) for found in _IMPORT.finditer(text)]


@cache
def sources() -> Sources:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


def imports(module: str, text: str, known: Sources) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, wherever in the text it stands."""
    for line, node in statements(text):
        if isinstance(node, ast.Import):
            yield from ((line, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # Hydra has absolute imports; a relative one is resolved as if in a module, not a package.
            base = ".".join(module.split(".")[: -node.level]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield line, inner if inner in known else origin


def at_run_time(known: Sources) -> Sources:
    """The texts without the imports that only type checkers see."""
    return {module: _FOR_TYPES.sub("", text) for module, text in known.items()}


def reached(program: str, known: Sources) -> set[str]:
    """A module and all modules of hydra that its process may import, those that a function imports included."""
    found, to_see = set[str](), {program}
    while to_see:
        module = to_see.pop()
        found.add(module)
        used = {name for _, name in imports(module, known[module], known) if name in known}
        # A package's own module is imported with everything in it.
        to_see |= (used | {package for name in used | {module} for package in _packages(name)}) - found
    return found


def _packages(module: str) -> Iterator[str]:
    while module := module.rpartition(".")[0]:
        yield module


def third_parties(known: Sources, module: str) -> set[str]:
    used = {name.split(".")[0] for _, name in imports(module, known[module], known)}
    return used - set(sys.stdlib_module_names) - {"hydra"}
