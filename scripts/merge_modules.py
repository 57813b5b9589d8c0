#!/usr/bin/env python3
"""Merges modules of hydra into one, and rewrites whatever names them, as ``rename_modules.py`` does.

    python -m scripts.merge_modules TABLE

TABLE is TOML. Each of its tables is called after the module that is made, which may be new, without the leading
``hydra.``::

    ["run.step_start"]
    from = "step_start step_timing store.lock"   # without a dot: of the same package. The order is that of the texts
    text = "The module's sentence."              # what further paragraphs the modules have is kept below it
    rename = { "step_timing._total" = "_total_s" }  # what two of them define, or import from two places
    drop = "lock.Json"                           # what another one defines, or imports, under the same name
    lead = { "lock" = "A lock is a file." }      # before the first of the further paragraphs of a module

A module that is not there is passed over, so that the same table can be applied to other branches; of one that is left
alone the table makes a move. Nothing is used before it is defined: what a module needs as it is imported goes first.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from textwrap import wrap
from typing import Final, cast

from scripts.rename_modules import ROOT, path_of, rewrite, tracked

COMMENT: Final = re.compile(r'"""(?:.*?)"""|#[^\n]*', re.DOTALL)
BRACES: Final = re.compile(r"(?<![\w./-])((?:[\w-]+/)+)(\w*)\{([\w,]+)\}\.py")
LISTED: Final = re.compile(r'(\bof\(\s*"(hydra[\w.]*)",\s*")([\w ]+)(")')
"""Modules of a package as words, in the tables of ``tests/test_layering.py``."""
TWICE: Final = re.compile(r"(`[\w/.{},]+\.py`)(?:, \1)+(?!\w)")


class UnclearError(Exception):
    """What a person has to decide."""


Scope = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)
Edit = tuple[int, int, str]
"""From, to (in bytes), and what stands there then."""


@dataclass(frozen=True)
class Merge:
    """What one table says, of the modules that are there."""

    target: str
    sources: Sequence[str]
    text: str | None
    renamed: Mapping[str, Mapping[str, str]]
    """Module → old → new of its names."""
    dropped: Mapping[str, set[str]]
    """Module → names that another one of them has."""
    leads: Mapping[str, str]
    """Module → what its further paragraphs begin with."""


def merges(table: str) -> Iterator[Merge]:
    """The merges that a table asks for, of modules that are there."""
    for name, row in tomllib.loads(table).items():
        package = name.rpartition(".")[0]

        def full(word: str, package: str = package) -> str:
            return f"hydra.{word}" if "." in word else f"hydra.{package}.{word}"

        sources = [module for module in map(full, row["from"].split()) if path_of(module).is_file()]
        target = f"hydra.{name}"
        if path_of(target).is_file() and target not in sources:
            raise UnclearError(f"{target} is there already, and is none of what becomes of it")
        renamed: dict[str, dict[str, str]] = {}
        for old, new in row.get("rename", {}).items():
            module, _, local = old.rpartition(".")
            renamed.setdefault(full(module), {})[local] = new
        dropped: dict[str, set[str]] = {}
        for word in row.get("drop", "").split():
            dropped.setdefault(full(word.rpartition(".")[0]), set()).add(word.rpartition(".")[2])
        if sources and sources != [target]:
            leads = {full(word): text for word, text in row.get("lead", {}).items()}
            yield Merge(target, sources, row.get("text"), renamed, dropped, leads)


# Names


def bound(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that statements bind in the scope in which they stand."""
    names: set[str] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
                continue
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(node.id)
            case ast.ExceptHandler(name=str()) | ast.MatchAs(name=str()) | ast.MatchStar(name=str()):
                names.add(str(node.name))
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case _:
                pass
        todo.extend(ast.iter_child_nodes(node))
    return names


def of_scope(node: Scope) -> set[str]:
    """The names that a function or a comprehension binds."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            spec = node.args
            every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg)
            return {arg.arg for arg in every if arg} | bound(node.body if isinstance(node.body, list) else [node.body])
        case _:
            return bound([generator.target for generator in node.generators])


def global_names(tree: ast.AST) -> Iterator[tuple[ast.Name, set[str], ast.JoinedStr | None]]:
    """Each name that is looked up in the module; what encloses it binds; the formatted string that it stands in."""

    def visit(
        node: ast.AST, local: set[str], of_class: set[str], text: ast.JoinedStr | None
    ) -> Iterator[tuple[ast.Name, set[str], ast.JoinedStr | None]]:
        if isinstance(node, ast.Name):
            if node.id not in local | of_class:
                yield node, local | of_class, text
            return
        if isinstance(node, ast.JoinedStr):
            text = text or node
        if isinstance(node, Scope):
            inner = local | of_scope(node)
            # Of a function what stands before its body, of a comprehension where it begins, belongs outside.
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                own: list[ast.AST] = [*node.body] if isinstance(node.body, list) else [node.body]
                outside: list[ast.AST] = [child for child in ast.iter_child_nodes(node) if child not in own]
            else:
                outside = [node.generators[0].iter]
                parts = [part for each in node.generators for part in (each.target, each.iter, *each.ifs)]
                own = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.comprehension)]
                own += [part for part in parts if part not in outside]
            for child in outside:
                yield from visit(child, local, of_class, text)
            for child in own:
                yield from visit(child, inner, set(), text)
        elif isinstance(node, ast.ClassDef):
            body = {*map(id, node.body)}
            names = bound(node.body)
            for child in ast.iter_child_nodes(node):
                yield from visit(child, local, names if id(child) in body else of_class, text)
        else:
            for child in ast.iter_child_nodes(node):
                yield from visit(child, local, of_class, text)

    yield from visit(tree, set(), set(), None)


class Text:
    """The text of a module, with the places of its nodes."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.tree = ast.parse(text)
        lengths = [0]
        for line in self.data.splitlines(keepends=True):
            lengths.append(lengths[-1] + len(line))
        self._lines = lengths

    def place(self, line: int, column: int) -> int:
        """The byte at a line (from 1) and a column."""
        return self._lines[line - 1] + column

    def span(self, node: ast.stmt | ast.expr | ast.alias) -> tuple[int, int]:
        """Where a node begins and ends."""
        return (
            self.place(node.lineno, node.col_offset),
            self.place(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text with these places changed."""
        data = self.data
        for start, end, new in sorted(set(edits), reverse=True):
            data = data[:start] + new.encode() + data[end:]
        return data.decode()

    def replaced(self, found: Sequence[tuple[ast.expr, str, str, ast.JoinedStr | None]]) -> Iterator[Edit]:
        """The places of expressions (old text, new text); Python 3.11 hides those in formatted strings."""
        hidden: dict[tuple[int, int, str, str], int] = {}
        for node, old, new, text in found:
            start, end = self.span(node)
            if text is None:
                if self.data[start:end].decode() != old:
                    raise UnclearError(
                        f"line {node.lineno}: {self.data[start:end].decode()!r} is written in a way of its own"
                    )
                yield start, end, new
            else:
                key = (*self.span(text), old, new)
                hidden[key] = hidden.get(key, 0) + 1
        for (start, end, old, new), count in hidden.items():
            segment = self.data[start:end].decode()
            inner = [
                m for m in re.finditer(rf"(?<![\w.'\"]){re.escape(old)}(?!\w)", segment) if "{" in segment[: m.start()]
            ]
            inner = [m for m in inner if segment[: m.start()].count("{") > segment[: m.start()].count("}")]
            if len(inner) != count:
                raise UnclearError(f"{old} in the formatted string {segment} is to be renamed by hand")
            for match in inner:
                at = start + len(segment[: match.start()].encode())
                yield at, at + len(old.encode()), new


def renamed_globals(text: str, names: Mapping[str, str]) -> str:
    """The text whose own names, or what it imports, are called otherwise."""
    source = Text(text)
    clash = {new for new in names.values() if new in bound(source.tree.body)}
    if clash:
        raise UnclearError(f"{sorted(clash)} is there already")
    found = []
    for node, local, string in global_names(source.tree):
        if node.id in names:
            if names[node.id] in local:
                raise UnclearError(f"line {node.lineno}: {names[node.id]} is something else there")
            found.append((node, node.id, names[node.id], string))
    edits = list(source.replaced(found))
    for each in source.tree.body:
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name in names:
            head = re.compile(rb"(?:def|class)\s+").match(source.data, source.span(each)[0])
            if head:
                edits.append((head.end(), head.end() + len(each.name), names[each.name]))
        elif isinstance(each, ast.ImportFrom):
            for alias in each.names:
                if (local_name := alias.asname or alias.name) in names:
                    start, end = source.span(alias)
                    new = names[local_name]
                    edits.append((start, end, alias.name if alias.name == new else f"{alias.name} as {new}"))
    return source.edited(edits)


def aliased(tree: ast.AST, module: str) -> set[str]:
    """The names under which a text has a module."""
    package, _, base = module.rpartition(".")
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == package
        for alias in node.names
        if alias.name == base
    }


def with_renamed_names(text: str, merge: Merge, module: str) -> str:
    """The text of a module after names of the modules that merge are called otherwise."""
    for origin, names in merge.renamed.items():
        for old, new in names.items():
            text = re.sub(rf"\b{re.escape(origin)}\.{old}\b", f"{origin}.{new}", text)
        if origin == module:
            text = renamed_globals(text, names)
            for old, new in names.items():
                text = text.replace(f":`{old}`", f":`{new}`")
            continue
        if origin.rpartition(".")[2] not in text:
            continue
        source = Text(text)
        edits: list[Edit] = []
        local: dict[str, str] = {}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module == origin:
                for alias in node.names:
                    if alias.name in names:
                        start = source.place(alias.lineno, alias.col_offset)
                        edits.append((start, start + len(alias.name), names[alias.name]))
                        if not alias.asname:
                            local[alias.name] = names[alias.name]
        found: list[tuple[ast.expr, str, str, ast.JoinedStr | None]] = [
            (node, node.id, local[node.id], string) for node, _, string in global_names(source.tree) if node.id in local
        ]
        modules = aliased(source.tree, origin)
        for attribute, string in attributes(source.tree):
            base = attribute.value
            if isinstance(base, ast.Name) and base.id in modules and attribute.attr in names:
                whole = f"{base.id}.{attribute.attr}"
                found.append((attribute, whole, f"{base.id}.{names[attribute.attr]}", string))
        text = source.edited([*edits, *source.replaced(found)])
    return text


def attributes(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.JoinedStr | None]]:
    """Each attribute that is asked for, and the formatted string that it stands in."""
    todo: list[tuple[ast.AST, ast.JoinedStr | None]] = [(tree, None)]
    while todo:
        node, string = todo.pop()
        if isinstance(node, ast.Attribute):
            yield node, string
        if isinstance(node, ast.JoinedStr):
            string = string or node
        todo.extend((child, string) for child in ast.iter_child_nodes(node))


# One text of several


def is_types_only(node: ast.stmt) -> bool:
    """Whether it imports or defines what only the types need."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse


def is_main(node: ast.stmt) -> bool:
    """Whether it is what the module does as a program."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def definition(node: ast.stmt) -> set[str]:
    """The names that a statement defines; none of an import."""
    return set() if isinstance(node, ast.Import | ast.ImportFrom) else bound([node])


class Part:
    """One of the modules that merge, after imports name modules where they are now."""

    def __init__(self, module: str, target: str, text: str, faces: Mapping[str, str], dropped: Set[str]) -> None:
        self.module = module
        self.target = target
        self.dropped = dropped
        self.text = Text(self._without_target(self._without_faces(text, faces)))

    def _without_faces(self, text: str, faces: Mapping[str, str]) -> str:
        """The text that asks no package that hands on what the merged module has: it asks where that comes from."""
        source = Text(text)
        edits: list[Edit] = []
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and (face := faces.get(node.module or "")):
                package = Text(face)
                homes = {
                    alias.asname or alias.name: (each.module, alias.name)
                    for each in package.tree.body
                    if isinstance(each, ast.ImportFrom)
                    for alias in each.names
                }
                indent = "\n" + " " * node.col_offset
                lines = []
                for alias in node.names:
                    home, name = homes.get(alias.name, (node.module, alias.name))
                    local = alias.asname or alias.name
                    lines.append(f"from {home} import {name}{f' as {local}' if local != name else ''}")
                edits.append((*source.span(node), indent.join(lines)))
        return source.edited(edits)

    def _without_target(self, text: str) -> str:
        """The text that asks the merged module for nothing: it is part of it."""
        source = Text(text)
        modules = aliased(source.tree, self.target)
        found: list[tuple[ast.expr, str, str, ast.JoinedStr | None]] = []
        scopes = {id(node): local for node, local, _ in global_names(source.tree)}
        for attribute, string in attributes(source.tree):
            base = attribute.value
            if isinstance(base, ast.Name) and base.id in modules:
                if id(base) in scopes and attribute.attr in scopes[id(base)]:
                    raise UnclearError(f"{self.module}:{attribute.lineno}: {attribute.attr} is something else there")
                found.append((attribute, f"{base.id}.{attribute.attr}", attribute.attr, string))
        text = source.edited(list(source.replaced(found)))
        source = Text(text)
        package, _, base_name = self.target.rpartition(".")
        edits: list[Edit] = []
        local: dict[str, str] = {}
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            start, end = source.span(node)
            if node.module == self.target:
                local |= {a.asname: a.name for a in node.names if a.asname and a.asname != a.name}
                edits.append((start, end, ""))
            elif node.module == package and any(alias.name == base_name for alias in node.names):
                left = [ast.unparse(alias) for alias in node.names if alias.name != base_name]
                edits.append((start, end, f"from {package} import {', '.join(left)}" if left else ""))
        text = source.edited(edits)
        return renamed_globals(text, local) if local else text

    @cached_property
    def doc(self) -> str:
        """What the module says of itself."""
        return ast.get_docstring(self.text.tree) or ""

    @cached_property
    def statements(self) -> Sequence[ast.stmt]:
        """Without its docstring."""
        body = self.text.tree.body
        return body[1:] if self.doc else body

    def segments(self, wanted: Callable[[ast.stmt], bool]) -> Iterator[str]:
        """Statements of a kind, with the comments before each of them."""
        lines = self.text.data.decode().splitlines()
        before = (self.text.tree.body[0].end_lineno or 0) if self.doc else 0
        is_dropped = False
        for node in self.statements:
            end = node.end_lineno or node.lineno
            # The text below an assignment goes with it.
            is_dropped = bool(definition(node) & self.dropped) or (is_dropped and isinstance(node, ast.Expr))
            if wanted(node) and not is_dropped:
                yield "\n".join(lines[before:end])
            before = end
        if wanted(self.statements[-1]):
            yield "\n".join(lines[before:])

    @property
    def origins(self) -> Mapping[str, str]:
        """Name → where it comes from, of all names of the module."""
        found: dict[str, str] = {}
        for node in self.statements:
            for inner in cast(ast.If, node).body if is_types_only(node) else [node]:
                if isinstance(inner, ast.ImportFrom):
                    found |= {a.asname or a.name: f"{inner.module}.{a.name}" for a in inner.names}
                elif isinstance(inner, ast.Import):
                    found |= {
                        a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
                        for a in inner.names
                    }
                else:
                    found |= dict.fromkeys(definition(inner) - self.dropped, self.module)
        return found

    @cached_property
    def at_import(self) -> set[str]:
        """The names that are looked up while the module is imported."""
        functions = {n.name: n for n in self.statements if isinstance(n, ast.FunctionDef)}
        found: set[str] = set()
        todo: list[ast.AST] = [n for n in self.statements if not isinstance(n, ast.FunctionDef)]
        todo += [
            each
            for n in functions.values()
            for each in (*n.decorator_list, *n.args.defaults, *n.args.kw_defaults)
            if each
        ]
        while todo:
            node = todo.pop()
            match node:
                case ast.Name(ctx=ast.Load()):
                    if node.id not in found and node.id in functions:
                        todo.extend(functions[node.id].body)
                    found.add(node.id)
                case ast.FunctionDef():
                    todo.extend([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)])
                case ast.AnnAssign():
                    todo.extend([node.target, *([node.value] if node.value else [])])
                case _:
                    todo.extend(ast.iter_child_nodes(node))
        return found


def in_order(parts: Sequence[Part]) -> list[Part]:
    """The parts in the order of the table, but what another one needs as it is imported before it."""
    homes = {name: part.module for part in parts for name, origin in part.origins.items() if origin == part.module}
    needs = {
        part.module: {homes[name] for name in part.at_import - part.origins.keys() if name in homes} for part in parts
    }
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    place = {part.module: number for number, part in enumerate(parts)}
    done: list[Part] = []
    ready = [*sorter.get_ready()]
    while ready:
        ready.sort(key=place.__getitem__)
        module = ready.pop(0)
        done.append(parts[place[module]])
        sorter.done(module)
        ready += sorter.get_ready()
    return done


def clashes(parts: Sequence[Part]) -> Iterator[str]:
    """Names that are two things in what merges."""
    origins: dict[str, tuple[str, str]] = {}
    for part in parts:
        for name, origin in part.origins.items():
            first = origins.setdefault(name, (origin, part.module))
            if first[0] != origin:
                yield f"{name} is {first[0]} in {first[1]} and {origin} in {part.module}"
            if origin == part.module and name in vars(builtins):
                yield f"{name} in {part.module} hides a builtin"
        if "__all__" in part.origins:
            yield f"{part.module} has __all__"
        if any(map(is_main, part.statements)) and part.module != part.target:
            yield f"{part.module} is a program"


def drop_twins(parts: Sequence[Part]) -> None:
    """Leaves the first of assignments that are the same in several modules."""
    seen: set[str] = set()
    for part in parts:
        found = {ast.unparse(n): definition(n) for n in part.statements if isinstance(n, ast.Assign | ast.AnnAssign)}
        part.dropped = {*part.dropped, *(name for text, names in found.items() if text in seen for name in names)}
        seen |= found.keys()


def further(doc: str, lead: str | None) -> str:
    """What a docstring says below its first paragraph, after a sentence that says of what; "" where nothing is said."""
    paragraph, gap, rest = doc.partition("\n\n")[2].partition("\n\n")
    if lead and paragraph:
        paragraph = "\n".join(wrap(f"{lead} {' '.join(paragraph.split())}", 120, break_on_hyphens=False))
    return paragraph + gap + rest


def merged(merge: Merge, texts: Sequence[str], faces: Mapping[str, str]) -> str:
    """The text of the module that is made; ``faces`` are the texts of packages."""
    parts = [
        Part(module, merge.target, text, faces, merge.dropped.get(module, set()))
        for module, text in zip(merge.sources, texts, strict=True)
    ]
    told = [text for part in parts if (text := further(part.doc, merge.leads.get(part.module)))]
    of_target = next((part for part in parts if part.module == merge.target), parts[0])
    doc = "\n\n".join([merge.text or of_target.doc.partition("\n\n")[0], *told])
    parts = in_order(parts)
    drop_twins(parts)
    wrong = list(clashes(parts))
    if wrong:
        raise UnclearError("".join(f"\n  {line}" for line in wrong))

    def is_import(node: ast.stmt) -> bool:
        return isinstance(node, ast.Import | ast.ImportFrom)

    imports: dict[str, None] = {}
    for part in parts:
        imports |= dict.fromkeys(segment.strip("\n") for segment in part.segments(is_import))
    future = [each for each in imports if each.startswith("from __future__")]
    types: dict[str, None] = {}
    runtime = {name for p in parts for n in p.statements if is_import(n) for name in bound([n])}
    for part in parts:
        for inner in (each for node in part.statements if is_types_only(node) for each in cast(ast.If, node).body):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                inner.names = [a for a in inner.names if (a.asname or a.name.split(".")[0]) not in runtime]
                if not inner.names:
                    continue
            types[f"    {ast.unparse(inner)}"] = None
    types = dict.fromkeys(sorted(types, key=lambda line: not line.startswith(("    import ", "    from "))))
    lines = [f'"""{doc}{chr(10) if chr(10) in doc else ""}"""', "", *future, ""]
    lines += [each for each in imports if each not in future]
    if types:
        lines += ["", "if TYPE_CHECKING:", *types]
    for part in parts:
        body = part.segments(lambda n: not is_import(n) and not is_types_only(n) and not is_main(n))
        lines += ["", "", *(segment.rstrip() for segment in body)]
    for part in parts:
        lines += ["", "", *part.segments(is_main)]
    return "\n".join(lines).rstrip() + "\n"


# Whatever names them


def without_files(text: str, moved: Mapping[str, str], bare: Mapping[str, str], kind: str) -> str:
    """The text that lists each file under its name now: in braces, by its name alone, as words of a package."""
    files = {f"{o.replace('.', '/')}.py": f"{n.replace('.', '/')}.py" for o, n in moved.items()}
    files |= {o.removeprefix("hydra/"): n.removeprefix("hydra/") for o, n in files.items()}

    def braces(found: re.Match[str]) -> str:
        paths = [f"{found[1]}{found[2]}{name}.py" for name in found[3].split(",")]
        if not files.keys() & paths:
            return found[0]
        now = dict.fromkeys(files.get(path, path) for path in paths)
        names = [path.removeprefix(found[1]).removesuffix(".py") for path in now]
        return f"{found[1]}{names[0]}.py" if len(names) == 1 else f"{found[1]}{{{','.join(names)}}}.py"

    def words(found: re.Match[str]) -> str:
        modules = [f"{found[2]}.{word}" for word in found[3].split()]
        now = dict.fromkeys(moved.get(module, module) for module in modules)
        return found[1] + " ".join(module.removeprefix(f"{found[2]}.") for module in now) + found[4]

    def alone(text: str) -> str:
        if not bare:
            return text
        names = "|".join(map(re.escape, bare))
        return re.sub(rf"(?<![\w./*-])(?:{names})(?!\w)", lambda found: bare[found[0]], text)

    text = BRACES.sub(braces, text)
    if kind == ".py":
        return COMMENT.sub(lambda found: alone(found[0]), LISTED.sub(words, text))
    return TWICE.sub(r"\1", alone(text)) if kind in {".md", ".cc", ".h"} else text


def ancestors(module: str) -> Iterator[str]:
    """The packages that a module is in, the innermost first."""
    while module := module.rpartition(".")[0]:
        yield module


def main(table: str) -> None:
    """Carries out the table of this file."""
    every = list(merges(Path(table).read_text(encoding="utf-8")))
    moved = {source: merge.target for merge in every for source in merge.sources if source != merge.target}
    double = [source for merge in every for source in merge.sources]
    if len(double) != len(set(double)):
        sys.exit(f"in two places of the table: {sorted({each for each in double if double.count(each) > 1})}")
    names = [path.name for path in tracked()]
    bare = {
        f"{old.rpartition('.')[2]}.py": f"{new.rpartition('.')[2]}.py"
        for old, new in moved.items()
        if names.count(f"{old.rpartition('.')[2]}.py") == 1
    }
    modules = {path_of(source): source for merge in every for source in merge.sources}
    changed: dict[Path, tuple[str, str]] = {}
    for path in tracked():
        if path.name == Path(__file__).name:
            continue
        try:
            before = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        text = before
        if path.suffix == ".py":
            for merge in every:
                try:
                    text = with_renamed_names(text, merge, modules.get(path, ""))
                except UnclearError as e:
                    sys.exit(f"{path}: {e}")
        text = rewrite(without_files(text, moved, bare, path.suffix), moved, path.suffix == ".py")
        if path.suffix == ".md":
            text = TWICE.sub(r"\1", text)
        changed[path] = before, text
    made: dict[str, str] = {}
    unclear: list[str] = []
    for merge in every:
        try:
            packages = ancestors(merge.target)
            faces = {package: changed[path_of(package)][1] for package in packages if path_of(package) in changed}
            made[merge.target] = merged(merge, [changed[path_of(source)][1] for source in merge.sources], faces)
        except UnclearError as e:
            unclear.append(f"{merge.target}: {e}")
    if unclear:
        sys.exit("\n".join(unclear))
    for path, (before, text) in changed.items():
        if text != before:
            path.write_text(text, encoding="utf-8")
    for merge in every:
        largest = max(merge.sources, key=lambda source: (source == merge.target, path_of(source).stat().st_size))
        for source in merge.sources:
            if source != largest:
                subprocess.run(["git", "rm", "-q", "-f", str(path_of(source))], cwd=ROOT, check=True)
        target = ROOT / f"{merge.target.replace('.', '/')}.py"
        if largest != merge.target:
            subprocess.run(["git", "mv", str(path_of(largest)), str(target)], cwd=ROOT, check=True)
        target.write_text(made[merge.target], encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    files = [str(ROOT / f"{target.replace('.', '/')}.py") for target in made]
    subprocess.run([*ruff, "check", "-q", "--fix", "--select", "F401,F811", *files], cwd=ROOT, check=False)
    subprocess.run([*ruff, "check", "-q", "--fix", "--select", "I", "."], cwd=ROOT, check=False)
    subprocess.run([*ruff, "format", "-q", "."], cwd=ROOT, check=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
