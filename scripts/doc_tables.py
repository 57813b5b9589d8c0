#!/usr/bin/env python3
"""Writes the tables of ``docs/`` and README that are made from the code, between their marks.

| mark | table |
|---|---|
| `columns: NAME` | columns of rows, from their records: those that all systems have, or that a system adds |
| `settings: SYSTEM TABLE NAME…` | fields of a table of scenarios, all if none are named; SYSTEM is `all` or a system |
| `events: NAME` | warnings and events, from their classes |
| `files: PATH…` | files and packages of `hydra/`, with the first sentences of their docstrings |
| `exit codes: all` | the exit codes of `hydra`, from `hydra/errors.py` |
| `messages: NAME` | the messages of the control protocol in one direction, or the columns of a batch |
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from itertools import groupby
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from hydra.config import plugins
from hydra.config.fields import own_tables, shared_table
from hydra.config.needs import as_keys, needs_of
from hydra.errors import EXIT_CODES
from hydra.events import group_events, run_events  # noqa: F401  # they register their events
from hydra.events.event import Event
from hydra.events.value_formatting import counted
from hydra.events.warnings import HydraWarning
from hydra.measure.column import BATCH, Column
from hydra.measure.step_result import step_columns
from hydra.measure.traffic_columns import PUBLISHED
from hydra.model import Scenario, Setting, SweepSpec, flag_names, setting_of
from hydra.report.row_context import RowWarning
from hydra.report.row_warnings import OF_FIGURES, OF_STATUS
from hydra.sweep import NAMES, kinds
from hydra.sweep.held_columns import WALL_S, series_columns
from hydra.sweep.points import SweepPoint
from hydra.sweep.search_columns import FAILED, LENGTH, published, side_columns
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.sweep.search_warnings import SearchWarning
from hydra.system import SystemSpec

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
PACKAGE: Final = ROOT / "hydra"
LADDERS: Final[tuple[SearchSeries, ...]] = ("loss", "reconnecting", "slow")
SERIES: Final[tuple[SearchSeries, ...]] = ("max_rate", "nodrop", "loss", "reconnecting", "slow")
_PART: Final = re.compile(
    r"(<!-- (columns|settings|events|files|exit codes|messages):\s([^>]+) -->\n).*?(<!-- end -->\n)", re.DOTALL
)
_DERIVED: Final = {
    ("Scenario", "name"): "the name of the file",
    **{("SweepSpec", name): "unset" for name in ("held", "search")},
}
"""Defaults that no field has: they are set when the file is read."""
_WORDS: Final = 3
"""A literal with fewer is a part of a text."""
_ENTRY: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n        .*)*)", re.MULTILINE)


def pages() -> list[Path]:
    """The pages that have such tables."""
    every = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    return [path for path in every if _PART.search(path.read_text(encoding="utf-8"))]


def renewed(page: str) -> str:
    """The page with its tables made again.

    Raises:
        KeyError: it names a table that there is not.
    """
    kinds = {
        "columns": columns_table,
        "settings": settings_table,
        "events": events_table,
        "files": files_table,
        "exit codes": codes_table,
        "messages": messages_text,
    }
    return _PART.sub(lambda part: part[1] + kinds[part[2]](part[3]) + part[4], page)


def marks() -> list[str]:
    """What the marks of all pages name, each with its kind."""
    texts = (path.read_text(encoding="utf-8") for path in pages())
    return [f"{found[2]}: {found[3]}" for text in texts for found in _PART.finditer(text)]


# --- columns ---------------------------------------------------------------------------------------------------------


@cache
def columns() -> Mapping[str, list[Column]]:
    """The columns of every system's rows, by the name of their table, and those that each system adds, by its name."""
    names = {column.name for column in PUBLISHED}
    every = {column.name: column for series in SERIES for column in side_columns("<series>", series)}
    held = {column.name: column for series in LADDERS for column in series_columns("<series>", series)}
    held = {name: column for name, column in held.items() if name not in every or column != every[name]}
    added = {spec.identity.name: spec.published.columns for spec in systems()}
    own = {name: [*([] if each.batch == BATCH else [each.batch]), *each.reported] for name, each in added.items()}
    return {
        "published": [*PUBLISHED],
        "searched": [*published(SearchSpec(series=(*SearchSpec().series, "nodrop")))[1:]],
        "step": [column for column in step_columns() if column.name not in names],
        "beside": [*every.values(), LENGTH, FAILED],
        "held": [*held.values(), WALL_S],
        **{name: added for name, added in own.items() if added},
    }


def systems() -> list[SystemSpec]:
    """The systems that have a page."""
    return [spec for spec in plugins.systems().values() if (DOCS / f"{spec.identity.name}.md").exists()]


def columns_table(name: str) -> str:
    """The table of columns of this name; columns side by side that share all but their name share a line."""
    same = groupby(columns()[name], lambda c: (c.unit, c.help, c.repeats))
    rows = [(", ".join(f"`{column.name}`" for column in its), *about) for about, its in same]
    return _table(("in `table.csv`", "unit", "definition", "repeated"), rows)


# --- files -----------------------------------------------------------------------------------------------------------


def files_table(paths: str) -> str:
    """The table of these files and packages.

    Raises:
        FileNotFoundError: one does not exist.
    """
    return _table(("file", "subject"), [(f"`{path}`", _subject(PACKAGE / path)) for path in paths.split()])


def _subject(path: Path) -> str:
    """The first sentence of a docstring, in Markdown and without its full stop."""
    file = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.split(r"\.(?: |$)", _plain(text.partition("\n\n")[0]))[0].replace("|", "\\|")


def _plain(text: str) -> str:
    """A docstring's text in Markdown, in one line."""
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", " ".join(text.replace("``", "`").split()))


# --- settings --------------------------------------------------------------------------------------------------------


def tables_of(system: str) -> Mapping[str, type]:
    """The dataclasses of the tables of a scenario: of all systems, or what one system adds; the sweep's is its base."""
    if system != "all":
        return own_tables(plugins.system(system))
    shared = {name: shared_table(name) for name in ("settings", "native", "sweep.held", "sweep.search")}
    known = {name: noun for name, noun in shared.items() if noun is not None}
    return {"top": Scenario, "sweep": SweepSpec, "sweep.points": SweepPoint, **known}


def settings_table(mark: str) -> str:
    """The settings that a mark names, each with its flag, default, values and meaning."""
    system, table, *names = mark.split()
    noun = tables_of(system)[table]
    known = fields_of(noun)
    rows = []
    for listed, text in meanings(noun).items():
        its = [known[name] for name in listed if not names or name in names]
        if its:
            cells = zip(*(_setting(noun, each, system, table) for each in its), strict=True)
            rows.append([*(", ".join(dict.fromkeys(filter(None, cell))) for cell in cells), text])
    whole = [["key", "flag", "default", "values", "needs", "meaning"], *rows]
    # A column that is empty in all rows is left out.
    used = [any(column[1:]) for column in zip(*whole, strict=True)]
    head, *others = ([cell for cell, use in zip(row, used, strict=True) if use] for row in whole)
    return _table(head, others)


def fields_of(noun: type) -> Mapping[str, Field[Any]]:
    """The fields of a table by name."""
    if noun is not SweepSpec:
        return {each.name: each for each in fields(noun)}
    known = {each.name: each for kind in kinds() for each in fields(kind.spec) if each.name == kind.key}
    known |= {each.name: each for each in fields(SweepSpec)}
    return {name: known[name] for name in NAMES}


def meanings(noun: type) -> dict[tuple[str, ...], str]:
    """What the docstring of a table says of its fields: names that share a text, and the text in Markdown."""
    nouns = (SweepSpec, *(kind.spec for kind in kinds())) if noun is SweepSpec else noun.__mro__
    described = [inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")[2] for each in nouns]
    entries = [entry for text in described for entry in _ENTRY.findall(text)]
    plain = {names: " ".join(text.replace("``", "`").split()).removesuffix(".") for names, text in entries}
    return {tuple(names.split(", ")): text for names, text in plain.items()}


def _setting(noun: type, field: Field[Any], system: str, table: str) -> tuple[str, str, str, str, str]:
    """A setting's name, flag, default, possible values, and what it needs."""
    about = setting_of(field)
    flag = ", ".join(f"`{name}`" for names in flag_names(field) for name in names.split("/"))
    spec = None if system == "all" else plugins.system(system)
    needs = " and ".join(f"`{as_keys(need)}`" for need in needs_of(spec, table, field))
    default = _DERIVED.get((noun.__name__, field.name)) or _default(field)
    values = _values(_hints(noun)[field.name], about)
    possible = (_installed(field.name) if noun is Scenario else "") or values
    return f"`{field.name}`", flag, default, possible, needs


def _hints(noun: type) -> dict[str, Any]:
    nouns = (*(kind.spec for kind in kinds()), SweepSpec) if noun is SweepSpec else (noun,)
    return {name: hint for each in nouns for name, hint in get_type_hints(each).items()}


def _installed(name: str) -> str:
    """The values of a key that depend on the systems that are installed; "" for other keys."""
    if name == "system":
        return ", ".join(f"`{_toml(spec.identity.name)}`" for spec in systems())
    identities = (spec.identity for spec in systems())
    theirs = (f"{each.name}: {', '.join(f'`{_toml(name)}`' for name in each.implementations)}" for each in identities)
    return "; ".join(theirs) if name == "client" else ""


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "empty" if field.default_factory is not MISSING else "required"
    return "unset" if field.default is None else f"`{_toml(field.default)}`"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, tuple) else str(value)


def _values(hint: Any, about: Setting) -> str:
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    if get_origin(hint) is Literal:
        return ", ".join(f"`{_toml(word)}`" for word in get_args(hint))
    if bool in kinds:
        return "`true`, `false`"
    words = [f"`{_toml(word)}`" for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    least, most = (_bound(bound) for bound in (about.least, about.most))
    above, below = (f"{word} {_bound(bound)}" for word, bound in (("above", about.above), ("below", about.below)))
    bounds = " – ".join(text for text in (least, above, most, below) if text[-1:].isdigit())
    return ", ".join(filter(None, [bounds, *words]))


def _bound(number: float) -> str:
    """A bound as text; "" for infinity."""
    if not isfinite(number):
        return ""
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


# --- warnings and events ---------------------------------------------------------------------------------------------


def events(name: str) -> list[type[Event]]:
    """The warnings of a ``run``, ``row`` or ``search``, or all other events as ``routine``."""
    importlib.import_module("hydra.sweep.held_warnings")  # a class registers itself when its module is loaded
    groups = {"row": RowWarning, "search": SearchWarning, "run": HydraWarning, "routine": Event}
    stated = [
        kind
        # (Classes register in the order in which their modules are imported.)
        for kind in ([*OF_STATUS, *OF_FIGURES] if name == "row" else sorted(Event.kinds.values(), key=_module))
        if not inspect.isabstract(kind) and (hasattr(kind, "template") or kind.text is not Event.text)
    ]
    return [kind for kind in stated if next(key for key, base in groups.items() if issubclass(kind, base)) == name]


def _module(kind: type) -> str:
    return kind.__module__


def events_table(name: str) -> str:
    """The table of these events, with an anchor for each; what stands for a value is ``…``."""
    head = ("kind", "level", "when", "text", "what to do")
    rows = []
    for kind in events(name):
        text = "sentence" if hasattr(kind, "sentence") else "text" if kind.text is not Event.text else "template"
        cells = (_texts(kind, text), _texts(kind, "remedy"))
        rows.append((f'<a id="{kind.kind}"></a>`{kind.kind}`', kind.level, _when(kind), *map(_either, cells)))
    width = 4 if name == "routine" else 5
    return _table(head[:width], (row[:width] for row in rows))


def _when(kind: type[Event]) -> str:
    """The first sentence of its docstring, up to what it says of fields, in Markdown."""
    return re.split(r"; |\. |\.$", _plain(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]))[0]


def _either(texts: list[str]) -> str:
    """Texts as one cell: those that are a part of another are left out."""
    whole = [
        text for text in texts if len(text.split()) >= _WORDS and text[0] not in " ,;:" and re.search("[a-z]", text)
    ] or texts
    shown = (
        re.sub("…+", "…", text).strip().replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;") for text in whole
    )
    return "; or: ".join(shown)


def _texts(kind: type, name: str) -> list[str]:
    """The texts that an attribute or property of a class can have; what stands for a value is ``…``."""
    value = inspect.getattr_static(kind, name)
    if isinstance(value, str):
        # Of a count with its noun the noun stays: {clients:client|clients}.
        return [re.sub(r"\{[^}|]*(?:\|([^}]*))?\}", lambda m: f"… {m[1]}" if m[1] else "…", value)] if value else []
    return list(dict.fromkeys(filter(None, _of_function(value.fget, kind)))) or ([] if value is Event.remedy else ["…"])


def _of_function(function: Callable[..., Any], kind: type) -> Iterator[str]:
    """The literals of a function, and of what it uses of its module and its class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    known = function.__globals__
    formatted = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    document = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(_part(part, known, kind) for part in node.values)
        elif id(node) in formatted | document:
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name):
            used = known.get(node.id)
            if isinstance(used, str):
                yield used
            elif inspect.isfunction(used) and used.__module__ == function.__module__:
                yield from _of_function(used, kind)
        elif isinstance(node, ast.Attribute):
            used = inspect.getattr_static(kind, node.attr, None)
            if isinstance(used, property) and used.fget is not None:
                yield from _of_function(used.fget, kind)


def _part(part: ast.expr, known: Mapping[str, Any], kind: type) -> str:
    """A part of a formatted literal: a constant of its module or class is known, any other value is ``…``."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    value = part.value if isinstance(part, ast.FormattedValue) else part
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == counted.__name__:
        nouns = [str(each.value) for each in value.args[1:] if isinstance(each, ast.Constant)]
        return f"… {nouns[1] if len(nouns) > 1 else f'{nouns[0]}s'}"
    name = value.id if isinstance(value, ast.Name) else ""
    used = inspect.getattr_static(kind, value.attr, None) if isinstance(value, ast.Attribute) else known.get(name)
    return used if isinstance(used, str) else "…"


# --- exit codes ------------------------------------------------------------------------------------------------------


def codes_table(name: str) -> str:
    """The table of the exit codes; there is only one, ``all``."""
    return _table(("code", "meaning"), [(str(code), meaning) for code, meaning in {"all": EXIT_CODES}[name].items()])


# --- messages --------------------------------------------------------------------------------------------------------


def messages_text(name: str) -> str:
    """The messages of this name, each with its table, or the columns of a batch."""
    script = runpy.run_path(str(ROOT / "scripts" / "message_tables.py"))
    return "\n".join(_section(text, rows) for text, rows in script["sections"](name))


def _section(text: str, rows: list[tuple[str, ...]]) -> str:
    return (f"{text}\n" if text else "") + ("\n" if text and rows else "") + (_table(rows[0], rows[1:]) if rows else "")


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(head), *map(list, rows)]
    cells.insert(1, ["---"] * len(cells[0]))
    return "".join(f"|{'|'.join(row)}|\n" if row[0] == "---" else f"| {' | '.join(row)} |\n" for row in cells)


if __name__ == "__main__":
    for path in pages():
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
