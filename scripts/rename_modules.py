#!/usr/bin/env python3
"""Moves modules of hydra to other packages or names, and rewrites whatever names them: imports, strings, paths in docs.

    scripts/rename_modules.py TABLE

Each line of TABLE is ``old.module new.module``, both without the leading ``hydra.``; ``old.* new.*`` are all modules of
a package that no line before names; ``old.package:Name new.module`` is a name that a package hands on. A line whose old
module does not exist is passed over, so that the same table can be applied to a branch that began before a move.
Run ``ruff check --fix --select I`` and ``ruff format`` afterwards: the order of the imports changes with their names.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
IMPORT: Final = re.compile(r"^([ \t]*)from (hydra[\w.]*) import (?:\(([^)]*)\)|([^\n#]*))([^\n]*)$", re.MULTILINE)
DONE: Final = "ydrah"
"""Stands for ``hydra`` in what was rewritten already."""
KEPT: Final = {"CHANGELOG.md", "scripts/rename_modules.py"}
"""What tells of the past, and this."""


def path_of(module: str) -> Path:
    """Its file, whether it is there or not; of a package that is there, its ``__init__``."""
    base = ROOT / module.replace(".", "/")
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def table_of(text: str) -> dict[str, str]:
    """Old → new dotted name of each module that is there and moves."""
    moved: dict[str, str] = {}
    for line in text.splitlines():
        if words := line.split("#")[0].split():
            old, new = (f"hydra.{word}" for word in words)
            if old.endswith(".*"):
                folder = path_of(old[:-2]).parent
                for path in sorted(folder.rglob("*.py")):
                    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                    moved.setdefault(module, new[:-2] + module.removeprefix(old[:-2]))
            elif ":" in old:
                moved[old] = f"{new}.{old.partition(':')[2]}"
            elif path_of(old).is_file() and path_of(old).name != "__init__.py":
                moved[old] = new
    return {old: new for old, new in moved.items() if old != new}


def tracked() -> Iterator[Path]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if name not in KEPT and path.is_file() and not path.is_symlink():
            yield path


def move(moved: Mapping[str, str]) -> None:
    """The files themselves. What a package leaves behind, its ``__init__``, goes or becomes the new package's."""
    pairs = {path_of(old): new for old, new in moved.items() if ":" not in old}
    for path, new in pairs.items():
        base = ROOT / new.replace(".", "/")
        target = base / "__init__.py" if path.name == "__init__.py" else base.with_suffix(".py")
        if target.name == "__init__.py" and target.exists():
            subprocess.run(["git", "rm", "-q", "-f", str(path)], cwd=ROOT, check=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", str(path), str(target)], cwd=ROOT, check=True)
    for folder in sorted((ROOT / "hydra").rglob("*/"), reverse=True):
        left = [path for path in folder.iterdir() if path.name != "__pycache__"]
        if not left:
            shutil.rmtree(folder)
        elif [path.name for path in left] == ["__init__.py"]:
            subprocess.run(["git", "rm", "-q", "-f", str(left[0])], cwd=ROOT, check=True)
        elif any(path.suffix == ".py" for path in left) and not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text('"""."""\n')
            subprocess.run(["git", "add", str(folder / "__init__.py")], cwd=ROOT, check=True)


def split_imports(text: str, moved: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The text whose ``from package import module`` names each module where it is now; local → new name of those."""
    renamed: dict[str, str] = {}

    def rewritten(found: re.Match[str]) -> str:
        indent, package, listed, plain, rest = found.groups()
        names = [name.strip() for name in re.sub(r"#.*", "", listed or plain).split(",") if name.strip()]
        gone = [name for name in names if {f"{package}{sign}{name.split()[0]}" for sign in ".:"} & moved.keys()]
        if not gone:
            return found[0]
        lines = []
        left = [name for name in names if name not in gone]
        if left:
            lines.append(f"{indent}from {package} import {', '.join(left)}{rest}")
        for name in gone:
            module, _, alias = name.partition(" as ")
            home, _, base = (moved.get(f"{package}.{module}") or moved[f"{package}:{module}"]).rpartition(".")
            local = alias or module
            if base != local and not alias:
                renamed[local] = base
            where = home.replace("hydra", DONE)
            lines.append(f"{indent}from {where} import {base}{f' as {local}' if base != local else ''}{rest}")
        return "\n".join(lines)

    return IMPORT.sub(rewritten, text), renamed


def _home(node: ast.Import | ast.ImportFrom) -> str:
    return ((node.module if isinstance(node, ast.ImportFrom) else "") or "").replace(DONE, "hydra")


def without_alias(text: str, old: str, new: str) -> str:
    """The text with ``import new as old`` made ``import new``, if ``old`` is nothing else in it and ``new`` is free."""
    tree = ast.parse(text)
    stored = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    stored |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    stored |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = [
        (node, a) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import) for a in node.names
    ]
    homes = {_home(node) for node, a in imported if (a.name, a.asname) == (new, old)}
    stored |= {
        (a.asname or a.name)
        for node, a in imported
        if not (a.name == new and (a.asname == old or (not a.asname and _home(node) in homes)))
    }
    if {old, new} & stored:
        return text
    lines = text.encode().splitlines(keepends=True)
    places = sorted(
        (
            (node.lineno - 1, node.col_offset)
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id == old
        ),
        reverse=True,
    )
    for line, column in places:
        if lines[line][column : column + len(old)] != old.encode():
            return text  # within an f-string Python 3.11 tells no place
        lines[line] = lines[line][:column] + new.encode() + lines[line][column + len(old) :]
    return re.sub(rf"\bimport {new} as {old}\b", f"import {new}", b"".join(lines).decode())


def rewrite(text: str, moved: Mapping[str, str], is_python: bool) -> str:
    """The text that names each module where it is now."""
    if is_python:
        text, renamed = split_imports(text, moved)
        for old, new in renamed.items():
            text = without_alias(text, old, new)
    packages = {old: new for old, new in moved.items() if path_of(old).name == "__init__.py"}
    files = {
        f"{o.replace('.', '/')}.py": f"{n.replace('.', '/')}.py"
        for o, n in moved.items()
        if o not in packages and ":" not in o
    }
    folders = {f"{o.replace('.', '/')}/": f"{n.replace('.', '/')}/" for o, n in packages.items()}
    paths = files | folders
    short = {o.removeprefix("hydra/"): n.removeprefix("hydra/") for o, n in files.items() if o.count("/") > 1}
    every = {old: new for old, new in moved.items() if ":" not in old} | paths | short
    pattern = re.compile(
        r"(?<![\w./-])((?:\.\./)*)("
        + "|".join(re.escape(name) for name in sorted(every, key=len, reverse=True))
        + r")(?!(?<=\w)\w)"
    )
    return pattern.sub(lambda found: found[1] + every[found[2]], text).replace(DONE, "hydra")


def main(table: str) -> None:
    """Carries out the table of this file."""
    moved = table_of(Path(table).read_text())
    targets = [new for old, new in moved.items() if ":" not in old and path_of(old).name != "__init__.py"]
    double = {new for new in targets if targets.count(new) > 1 or (path_of(new).is_file() and new not in moved)}
    if double:
        sys.exit(f"two modules would be {sorted(double)}")
    texts = {path: path.read_bytes() for path in tracked()}
    for path, data in texts.items():
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        new = rewrite(text, moved, path.suffix == ".py")
        if new != text:
            path.write_text(new)
    move(moved)


if __name__ == "__main__":
    main(*sys.argv[1:])
