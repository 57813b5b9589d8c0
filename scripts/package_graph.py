#!/usr/bin/env python3
"""Makes the table and the picture of the packages in ``docs/architecture.md`` anew, from ``hydra/`` itself.

The table has each package's sentence and its layer: the length of the longest chain of packages that it uses. In the
picture systems and engines, which have a ``spec.py``, are drawn as one. An arrow says that one package uses the other;
what follows from other arrows is left out, and so is the model, which every package uses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
MODEL = {"model", "amounts", "errors"}
PLUGGED = "systems and engines"
_PICTURE = re.compile(r"(<!-- picture -->\n).*?(<!-- end -->\n)", re.DOTALL)
_TABLE = re.compile(r"(<!-- packages -->\n).*?(<!-- end packages -->\n)", re.DOTALL)

Graph = Mapping[str, set[str]]
"""The packages that each package uses."""


def packages(root: Path) -> dict[str, set[str]]:
    """The packages below a folder and what each of them uses; ``amounts.py`` and ``errors.py`` belong to the model."""
    uses: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        package = _home(path.relative_to(root).parts[0].removesuffix(".py"))
        if package != "__init__":
            used = map(_home, _used(ast.parse(path.read_text(encoding="utf-8")), root.name))
            uses.setdefault(package, set()).update(used)
    return {package: (used & uses.keys()) - {package} for package, used in uses.items()}


def _home(name: str) -> str:
    return "model" if name in MODEL else name


def drawn(graph: Graph, root: Path) -> dict[str, set[str]]:
    """The graph without the model, systems and engines as one."""
    one = {spec.parent.name: PLUGGED for spec in root.glob("*/spec.py")}
    uses: dict[str, set[str]] = {}
    for package in graph.keys() - {"model"}:
        name = one.get(package, package)
        uses.setdefault(name, set()).update(one.get(used, used) for used in graph[package] - {"model"})
    return {name: used - {name} for name, used in uses.items()}


def table(graph: Graph, root: Path) -> str:
    """The packages with their layers and sentences, the highest first."""

    @cache
    def layer(package: str) -> int:
        return 1 + max(map(layer, graph[package]), default=0)

    lines = ["| layer | package | |", "|---|---|---|"]
    for package in sorted(graph, key=lambda name: (-layer(name), name)):
        text = ast.get_docstring(ast.parse((root / package / "__init__.py").read_text(encoding="utf-8"))) or ""
        sentence = " ".join(text.split("\n\n")[0].replace("``", "`").split())
        lines.append(f"| {layer(package)} | `{package}` | {sentence} |")
    return "\n".join([*lines, ""])


def _used(tree: ast.AST, root: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith(f"{root}."))


def reduced(graph: Graph) -> dict[str, set[str]]:
    """The graph without the arrows that follow from others."""
    return {
        package: {used for used in uses if not any(_reaches(graph, other, used) for other in uses - {used})}
        for package, uses in graph.items()
    }


def _reaches(graph: Graph, package: str, target: str) -> bool:
    seen, waiting = {package}, [package]
    while waiting:
        for used in graph[waiting.pop()] - seen:
            if used == target:
                return True
            seen.add(used)
            waiting.append(used)
    return False


def picture(graph: Graph) -> str:
    """A flowchart of Mermaid."""
    names = {package: package.replace(" ", "_") for package in graph}
    arrows = [
        f"    {names[package]} --> {names[used]}"
        for package, uses in sorted(reduced(graph).items())
        for used in sorted(uses)
    ]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```", ""])


def renewed(page: str) -> str:
    """The page with its table and its picture made anew.

    Raises:
        ValueError: it has no place for one of them, or several.
    """
    root = ROOT / "hydra"
    graph = packages(root)
    for part, text in ((_TABLE, table(graph, root)), (_PICTURE, picture(drawn(graph, root)))):
        if len(part.findall(page)) != 1:
            raise ValueError(f"the page must have one place for {part.pattern}")
        page = part.sub(lambda found, text=text: found[1] + text + found[2], page)  # type: ignore[misc]
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
