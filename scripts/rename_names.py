#!/usr/bin/env python3
"""Renames classes, functions, constants and methods of hydra, and every use of them.

    scripts/rename_names.py TABLE

Each line of TABLE is ``package:Old New`` (a class, a function, a constant or a type of a module) or
``package:Class.old new`` (a method or a field). The package is a dotted prefix without the leading ``hydra.``, or
several with ``|`` between; it only has to tell a definition from others of its name, so that a table outlives moves
within a package. A line without a definition is passed over.

A use is found by what its name stands for: imports are followed, and what a package hands on; another class of the
same name stays. Of a method every use is renamed, but for packages where another class has an attribute of its name.
Comments, docstrings and pages follow where a name stands in backticks, or cannot be an English word. An event keeps its
kind. Run ``ruff check --fix --select I,RUF022`` and ``ruff format`` afterwards.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CODE: Final = ("hydra", "tests", "bench", "scripts", "docs")
KEPT: Final = {"CHANGELOG.md", "scripts/rename_names.py", "scripts/rename_modules.py"}
"""What tells of the past, and this."""
TEXTS: Final = {".md", ".toml", ".cfg", ".ipynb", ".cc", ".h", ".txt", ".yml"}
Named = tuple[str, str]
"""Module and name of a definition."""
Scope = dict[str, "Named | None"]
"""What names stand for; None: for something of the scope itself."""


@dataclass
class Module:
    """A file of Python."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    names: Scope = field(default_factory=dict)


def import_of(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[ast.alias, Named]]:
    """What each part of an import stands for; an empty name is a module."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias, (node.module or "", alias.name)
        else:
            yield alias, (alias.name if alias.asname else alias.name.partition(".")[0], "")


def bound_in(body: list[ast.stmt]) -> Scope:
    """The names that statements bind, without those within functions and classes."""
    found: Scope = {}
    stack: list[ast.AST] = list(body)
    free: set[str] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias, meant in import_of(node):
                found[alias.asname or (alias.name if meant[1] else meant[0])] = meant
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, None)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.Global | ast.Nonlocal):
            free.update(node.names)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, None)
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.setdefault(node.name, None)
        stack.extend(ast.iter_child_nodes(node))
    return {name: meant for name, meant in found.items() if name not in free}


def tracked() -> Iterator[Path]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if name not in KEPT and path.is_file() and not path.is_symlink():
            yield path


class Index:
    """All modules, and what their names stand for."""

    def __init__(self) -> None:
        self.modules: dict[str, Module] = {}
        for path in tracked():
            if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in CODE:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                text = path.read_text()
                self.modules[name] = Module(name, path, text, ast.parse(text))
        for module in self.modules.values():
            module.names = {name: meant or (module.name, name) for name, meant in bound_in(module.tree.body).items()}

    def resolve(self, meant: Named | None) -> Named | None:
        """The definition, or the module (with an empty name), that something stands for."""
        seen = set()
        while meant and meant not in seen:
            seen.add(meant)
            module, name = meant
            if not name:
                return meant
            if f"{module}.{name}" in self.modules:
                return f"{module}.{name}", ""
            if module not in self.modules:
                return None
            meant = self.modules[module].names.get(name)
            if meant == (module, name):
                return meant
        return None

    def has_class(self, module: str, name: str) -> bool:
        """Whether a module has a class of this name."""
        return any(isinstance(node, ast.ClassDef) and node.name == name for node in self.modules[module].tree.body)

    def is_event(self, module: str, node: ast.ClassDef) -> bool:
        """Whether a class is an event, whose kind is its name unless it says otherwise."""
        for base in node.bases:
            if not isinstance(base, ast.Name) or not (found := self.resolve((module, base.id))):
                continue
            if found[1] == "Event":
                return True
            classes = (each for each in self.modules[found[0]].tree.body if isinstance(each, ast.ClassDef))
            if any(self.is_event(found[0], each) for each in classes if each.name == found[1]):
                return True
        return False

    def definitions(self, packages: str, name: str) -> list[str]:
        """The modules of hydra, or of some of its packages, with a definition of this name."""
        return [
            module.name
            for module in self.modules.values()
            if any(
                f"{module.name}.".startswith(f"hydra.{package}.".replace("..", ".")) for package in packages.split("|")
            )
            and module.names.get(name) == (module.name, name)
        ]


@dataclass
class Table:
    """What is renamed: definitions by module and name, attributes by name."""

    names: dict[Named, str] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Old name → the new one by the package where it is another than elsewhere (""); itself where it stays."""
    owners: set[Named] = field(default_factory=set)
    """Classes of which an attribute is renamed."""
    words: dict[str, str] = field(default_factory=dict)
    """Names that stand for one definition alone, wherever they are read."""
    passed: list[str] = field(default_factory=list)


def package_of(module: str) -> str:
    """The package that a module, or a test, is of."""
    packages = {path.name for path in (ROOT / "hydra").iterdir() if path.is_dir()}
    return next((part for part in reversed(module.split(".")[:-1]) if part in packages), "")


def attributes_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Class and attribute of everything that the classes of a module have."""
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            for node in each.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield each.name, node.name
                    for inner in ast.walk(node):
                        if (
                            isinstance(inner, ast.Attribute)
                            and isinstance(inner.ctx, ast.Store)
                            and isinstance(inner.value, ast.Name)
                            and inner.value.id == "self"
                        ):
                            yield each.name, inner.attr
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    yield each.name, node.target.id
                elif isinstance(node, ast.Assign):
                    yield from ((each.name, t.id) for t in node.targets if isinstance(t, ast.Name))


def table_of(text: str, index: Index) -> Table:
    """The table of a text, by what is there."""
    table = Table()
    wanted: dict[str, dict[Named, str]] = {}
    wrong: list[str] = []
    for line in text.splitlines():
        if not (words := line.split("#")[0].split()):
            continue
        where, new = words
        packages, _, old = where.partition(":")
        owner, dot, attribute = old.partition(".")
        found = index.definitions(packages, owner)
        if len(found) > 1:  # a class goes before a type that only its module uses
            found = [name for name in found if index.has_class(name, owner)] or found
        if not found:
            table.passed.append(f"passed over: {line}")
        elif len(found) > 1:
            wrong.append(f"{line}: in {', '.join(found)}")
        elif dot:
            wanted.setdefault(attribute, {})[found[0], owner] = new
            table.owners.add((found[0], owner))
        else:
            table.names[found[0], old] = new
    have: dict[str, set[Named]] = {}
    for name, module in index.modules.items():
        if name.startswith("hydra."):
            for owner, attribute in attributes_of(module.tree):
                have.setdefault(attribute, set()).add((name, owner))
    for attribute, news in wanted.items():
        by_package: dict[str, set[str]] = {}
        for each in have[attribute]:
            by_package.setdefault(package_of(each[0]), set()).add(news.get(each, attribute))
        for package, several in by_package.items():
            if len(several) > 1:
                wrong.append(f"{attribute} in {package}: {', '.join(sorted(several))}")
        table.attributes[attribute] = {package: min(several) for package, several in by_package.items()}
        first, *others = dict.fromkeys(news.values())
        if others:
            wrong.append(f"{attribute}: {first}, {', '.join(others)}")
        table.attributes[attribute][""] = first
    if wrong:
        sys.exit("\n".join(wrong))
    table.words = {old: new for (_, old), new in table.names.items() if len(index.definitions("", old)) == 1}
    return table


Edit = tuple[int, int, str, str]
"""Line, column (in bytes), old and new text."""


class Finder(ast.NodeVisitor):
    """Finds the uses of what is renamed in one module."""

    def __init__(self, module: Module, index: Index, table: Table) -> None:
        self.module, self.index, self.table = module, index, table
        self.edits: set[Edit] = set()
        self.inside: list[tuple[ast.expr, dict[str, str]]] = []
        """F-strings, and what is renamed within: Python 3.11 tells no reliable places there."""
        self.within: dict[str, str] | None = None
        self.scopes: list[tuple[bool, Scope]] = []
        """Of each function and class around a node, innermost last; whether it is a class."""
        self.lines = module.text.encode().splitlines()
        self.local = self._renamed_locals()
        package = package_of(module.name)
        self.attributes = {old: news.get(package, news[""]) for old, news in table.attributes.items()}

    def _renamed_locals(self) -> dict[str, str]:
        """Local name → new name of what is renamed, where an alias goes as well."""
        local = {}
        for name, meant in self.module.names.items():
            found = self.index.resolve(meant)
            if found and (new := self.table.names.get(found)):
                local[name] = new
        return local

    def meaning(self, name: str) -> Named | None:
        """What a name stands for at this place."""
        for depth, (is_class, scope) in enumerate(reversed(self.scopes)):
            if name in scope and (not is_class or depth == 0):
                return self.index.resolve(scope[name])
        return self.index.resolve(self.module.names.get(name))

    def meant(self, node: ast.expr) -> Named | None:
        """What an expression stands for."""
        if isinstance(node, ast.Name):
            return self.meaning(node.id)
        if isinstance(node, ast.Attribute) and (of := self.meant(node.value)) and not of[1]:
            return self.index.resolve((of[0], node.attr))
        return None

    def edit(self, line: int, column: int, old: str, new: str) -> None:
        """Renames what stands at a place."""
        if self.within is not None:
            self.within[old] = new
        elif self.lines[line - 1][column : column + len(old.encode())] == old.encode():
            self.edits.add((line, column, old, new))
        else:
            raise AssertionError((self.module.path, line, column, old))

    def new_of(self, name: str) -> str | None:
        """The new name of what a name stands for here."""
        found = self.meaning(name)
        return self.table.names.get(found) if found else None

    def visit_Name(self, node: ast.Name) -> None:
        if new := self.new_of(node.id):
            self.edit(node.lineno, node.col_offset, node.id, new)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        found = self.meant(node)
        new = self.table.names.get(found) if found else self.attributes.get(node.attr)
        if found is None and (owner := self.meant(node.value)) and not owner[1]:
            new = None  # of a module that is not ours
        if new and node.end_lineno is not None and node.end_col_offset is not None:
            self.edit(node.end_lineno, node.end_col_offset - len(node.attr.encode()), node.attr, new)
        self.visit(node.value)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias, meant in import_of(node):
            found = self.index.resolve(meant)
            new = self.table.names.get(found) if found else None
            if not new or not found:
                continue
            self.edit(alias.lineno, alias.col_offset, alias.name, new)
            if alias.asname == alias.name:  # handed on
                self.edit(alias.lineno, (alias.end_col_offset or 0) - len(alias.name), alias.name, new)
            elif alias.asname:
                line = self.lines[alias.lineno - 1]
                gap = line[alias.col_offset + len(alias.name) : alias.end_col_offset].decode()
                self.edits.add((alias.lineno, alias.col_offset + len(alias.name), gap, ""))

    def _define(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, new: str) -> None:
        line = self.lines[node.lineno - 1]
        found = re.compile(rb"(?:class|def)\s+").search(line, node.col_offset)
        if found:
            self.edit(node.lineno, found.end(), node.name, new)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if new := (not self.scopes and self.table.names.get((self.module.name, node.name))) or None:
            self._define(node, new)
            self.keep_kind(node)
        for each in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit_typed(each)
        self.scopes.append((True, bound_in(node.body)))
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                if attribute := self.attributes.get(statement.name):
                    self._define(statement, attribute)
            elif isinstance(statement, ast.AnnAssign | ast.Assign):
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    if isinstance(target, ast.Name) and (attribute := self.attributes.get(target.id)):
                        self.edit(target.lineno, target.col_offset, target.id, attribute)
            self.visit(statement)
        self.scopes.pop()

    def keep_kind(self, node: ast.ClassDef) -> None:
        """An event that gets another name keeps its kind."""
        if not self.index.is_event(self.module.name, node):
            return
        for statement in node.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == "kind" for target in statement.targets
            ):
                return
        kind = re.sub("(?<=[a-z])(?=[A-Z])", "_", node.name).lower()
        first = node.body[0]
        self.edits.add((first.end_lineno or 0, first.end_col_offset or 0, "", f'\n\n    kind = "{kind}"'))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        if not isinstance(node, ast.Lambda):
            for each in node.decorator_list:
                self.visit(each)
            if node.returns:
                self.visit_typed(node.returns)
        for arg in every:
            if arg and arg.annotation:
                self.visit_typed(arg.annotation)
        for default in (*given.defaults, *given.kw_defaults):
            if default:
                self.visit(default)
        scope: Scope = {arg.arg: None for arg in every if arg}
        if isinstance(node, ast.Lambda):
            self.scopes.append((False, scope))
            self.visit(node.body)
        else:
            self.scopes.append((False, {**bound_in(node.body), **scope}))
            for statement in node.body:
                self.visit(statement)
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if not self.scopes and (new := self.table.names.get((self.module.name, node.name))):
            self._define(node, new)
        self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        if not self.scopes and (new := self.table.names.get((self.module.name, node.name))):
            self._define(node, new)
        self.function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.function(node)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        scope: Scope = {
            name.id: None for each in node.generators for name in ast.walk(each.target) if isinstance(name, ast.Name)
        }
        self.scopes.append((False, scope))
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = comprehension
    visit_SetComp = comprehension
    visit_DictComp = comprehension
    visit_GeneratorExp = comprehension

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit_typed(node.annotation)
        self.visit(node.target)
        if node.value:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if self.meant(node.func) in self.table.owners:
            for keyword in node.keywords:
                if keyword.arg and (new := self.attributes.get(keyword.arg)):
                    self.edit(keyword.lineno, keyword.col_offset, keyword.arg, new)
        last = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if last in {"setattr", "getattr", "object", "delattr"} and len(node.args) > 1:
            owner, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found = self.meant(owner)
                new = None
                if found and not found[1]:
                    meant = self.index.resolve((found[0], name.value))
                    new = self.table.names.get(meant) if meant else None
                elif not found or found[1]:
                    new = self.attributes.get(name.value)
                if new:
                    self.edit(name.lineno, name.col_offset + 1, name.value, new)
        if last in {"cast", "TypeVar"}:
            for each in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.visit_typed(each)
        else:
            self.generic_visit(node)

    def visit_typed(self, node: ast.expr) -> None:
        """An expression whose texts may be types."""
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.lineno == each.end_lineno:
                source = self.lines[each.lineno - 1][each.col_offset : each.end_col_offset].decode()
                for word in re.finditer(r"(?<![\w.])[A-Za-z_]\w*", source):
                    if new := self.new_of(word[0]):
                        self.edit(each.lineno, each.col_offset + len(source[: word.start()].encode()), word[0], new)
        self.visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            for each in ast.walk(node.value):
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and (new := self.new_of(each.value)):
                    self.edit(each.lineno, each.col_offset + 1, each.value, new)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if self.within is not None:
            self.generic_visit(node)
            return
        self.within = {}
        self.generic_visit(node)
        if self.within:
            self.inside.append((node, self.within))
        self.within = None

    def check_free(self) -> None:
        """Tells of a new name that stands for something else in this module already."""
        used = {node.id for node in ast.walk(self.module.tree) if isinstance(node, ast.Name)}
        used |= {node.arg for node in ast.walk(self.module.tree) if isinstance(node, ast.arg)}
        gone = set(self.local) - set(self.local.values())
        for name, new in self.local.items():
            if name != new and new not in gone and (new in self.module.names or new in used):
                self.table.passed.append(f"{self.module.path}: {name} → {new}, which stands there already")


def rename_in_braces(source: str, names: Mapping[str, str]) -> str:
    """An f-string's source with names within braces replaced."""
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(source):
        if sign in "{}":
            part = source[start:place]
            parts.append(pattern.sub(lambda found: names[found[1]], part) if depth > 0 else part)
            depth += 1 if sign == "{" else -1
            start = place
    return "".join([*parts, source[start:]])


MENTION: Final = re.compile(
    r"(?P<role>:(?:class|func|meth|data|attr|exc|obj):`~?!?)(?P<told>[\w.]+)|(?P<ticks>`+)(?P<code>[A-Za-z_][\w.]*)"
)


SPEAKS: Final = re.compile(r"[a-z][A-Z]|_[a-z]")
"""What a name has that cannot be an English word."""


def mentions(text: str, names: Mapping[str, str], words: Mapping[str, str], attributes: Mapping[str, str]) -> str:
    """A comment, docstring or page with the names that it mentions replaced.

    Args:
        text: the text.
        names: what the names of the module are now.
        words: what names are now that stand for one thing, wherever they are read.
        attributes: what methods are called now.
    """
    telling = {name: new for name, new in {**words, **names}.items() if SPEAKS.search(name)}

    def new_path(dotted: str, known: Mapping[str, str]) -> str:
        parts = dotted.split(".")
        for place, part in enumerate(parts):
            if part in known and (place == 0 or parts[0] == "hydra"):
                parts[place] = known[part]
            elif part in attributes and place > 0:
                parts[place] = attributes[part]
        return ".".join(parts)

    def replaced(found: re.Match[str]) -> str:
        if found["role"]:
            return found["role"] + new_path(found["told"], {**words, **names})
        return found["ticks"] + new_path(found["code"], {**telling, **names})

    text = MENTION.sub(replaced, text)
    if telling:
        text = re.sub(
            r"(?<![\w./`-])(" + "|".join(map(re.escape, telling)) + r")(?![\w`]|\.py|\.md)",
            lambda found: telling[found[1]],
            text,
        )
    return text


def rewrite_python(module: Module, index: Index, table: Table) -> str:
    """The text of a module with everything renamed that it uses or mentions."""
    finder = Finder(module, index, table)
    finder.visit(module.tree)
    finder.check_free()
    data = module.text.encode()
    starts = [0]
    for raw in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(raw))
    edits = {(starts[line - 1] + column, len(old.encode()), new) for line, column, old, new in finder.edits}
    for node, names in finder.inside:
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        edits.add((begin, end - begin, rename_in_braces(data[begin:end].decode(), names)))
    for place, length, new in sorted(edits, reverse=True):
        data = data[:place] + new.encode() + data[place + length :]
    text = data.decode()
    given = {node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)}
    names = {name: new for name, new in finder.local.items() if name not in given}
    words = {name: new for name, new in table.words.items() if name not in module.names and name not in given}
    code = {  # code in texts: programs that tests start
        match[0] for match in re.finditer(r"from (hydra[\w.]*) import ([\w, ]+)", text)
    }
    pieces: list[str] = []
    last = 0
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    docs = {
        (node.body[0].lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    } | {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for token in tokenize.generate_tokens(StringIO(text).readline):
        is_doc = token.type == tokenize.STRING and token.start[0] in docs
        if token.type == tokenize.COMMENT or is_doc:
            new = mentions(token.string, names, words, finder.attributes)
        elif token.type == tokenize.STRING and "import" in token.string and code:
            new = in_code(token.string, index, table)
        else:
            continue
        begin = begins[token.start[0] - 1] + token.start[1]
        end = begins[token.end[0] - 1] + token.end[1]
        pieces += [text[last:begin], new]
        last = end
    return dotted("".join([*pieces, text[last:]]), index, table)


def in_code(text: str, index: Index, table: Table) -> str:
    """Code within a text, with the names renamed that it imports."""
    names = {}
    for found in re.finditer(r"from (hydra[\w.]*) import \(?([\w, \n]+)", text):
        for name in re.findall(r"\w+", found[2]):
            meant = index.resolve((found[1], name))
            if meant and meant in table.names:
                names[name] = table.names[meant]
    if not names:
        return text
    return re.sub(r"\b(" + "|".join(names) + r")\b", lambda found: names[found[1]], text)


def dotted(text: str, index: Index, table: Table) -> str:
    """A text whose full names (with a dot or a colon before the last part) are the new ones."""

    def replaced(found: re.Match[str]) -> str:
        module, sign, name, rest = found.groups()
        meant = index.resolve((module, name))
        new = table.names.get(meant) if meant else None
        return f"{module}{sign}{new}{rest}" if new else found[0]

    return re.sub(r"\b(hydra(?:\.[a-z_0-9]+)+)([.:])(\w+)()(?![\w/])", replaced, text)


def rewrite_page(text: str, index: Index, table: Table) -> str:
    """A page with everything renamed that it mentions."""
    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    for place, part in enumerate(parts):
        parts[place] = in_code(part, index, table) if place % 2 else mentions(part, {}, table.words, {})
    return dotted("".join(parts), index, table)


def main(path: str) -> None:
    """Carries out the table of this file."""
    index = Index()
    table = table_of(Path(path).read_text(), index)
    python = {module.path: module for module in index.modules.values()}
    for file in tracked():
        if file in python:
            old, new = python[file].text, rewrite_python(python[file], index, table)
        elif file.suffix in TEXTS:
            old = file.read_text()
            new = rewrite_page(old, index, table) if file.suffix == ".md" else dotted(old, index, table)
        else:
            continue
        if new != old:
            file.write_text(new)
    sys.stderr.writelines(f"{line}\n" for line in table.passed)


if __name__ == "__main__":
    main(*sys.argv[1:])
