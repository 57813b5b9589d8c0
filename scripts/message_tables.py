"""The messages of the control protocol as a page shows them: from their classes, and the columns of a batch."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from hydra.model import Histogram, ProcessUsage, SequenceRange, SharedSettings, SubscriberReport
from hydra.model.batch_columns import BATCH_COLUMNS, BatchColumn
from hydra.wire.messages import FromClient, FromController, SystemObject

NAMED: Final = {
    Histogram: "histogram",
    SharedSettings: "settings",
    SystemObject: "system",
    list[SequenceRange]: "ranges",
    str: "string",
    bool: "boolean",
    NoneType: "null",
    Any: "value",
}
"""Types that the page explains under these names."""
_OF_CONNECTION: Final = ("ids", "seq")
"""Fields that all messages of a direction have, which the page explains once."""
_RELAYS: Final = {
    "own": "",
    "pass": "A relay passes it on.",
    "gather": "A relay combines equal ones into one for many clients.",
    "merge": "",
}
_ENTRY: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n        .*)*)", re.MULTILINE)
_LARGEST: Final = 2**63 - 1


MESSAGES: Final = {"from clients": FromClient, "from the controller": FromController}
COLUMNS: Final = "columns of a batch"


class Section(NamedTuple):
    """A text, and a table that follows it: its first row is the head; there may be none."""

    text: str
    rows: list[tuple[str, ...]]


def sections(name: str) -> Iterator[Section]:
    """What the page has between the marks of this name.

    Raises:
        KeyError: there is no such name.
    """
    if name == COLUMNS:
        yield columns()
        for text, rows in _with_parts(SubscriberReport, "*subscriber report*", {ProcessUsage}):
            # Columns have a value for every field, so there are no defaults.
            default = rows[0].index("default") if "default" in rows[0] else None
            yield Section(text, [tuple(cell for at, cell in enumerate(row) if at != default) for row in rows])
        return
    shown: set[type] = set()
    for kind in get_args(MESSAGES[name]):
        yield from _with_parts(kind, f"**`{kind.__struct_config__.tag}`**", shown)


def columns() -> Section:
    """The columns of a batch; those side by side that share all but their names share a row."""
    rows = []
    for (items, text), its in groupby(BATCH_COLUMNS, lambda column: (_items(column), _meaning(column))):
        names = [f"`{column.name}`" for column in its]
        rows.append((", ".join(names), f"{items} each" if len(names) > 1 else items, text))
    return Section("", [("column", "items", "meaning"), *rows])


def _meaning(column: BatchColumn) -> str:
    """The text of a column; of one with choices, the numbers that stand for them."""
    words = [f"{n} {str(choice).lower()}" for n, choice in enumerate(column.choices)]
    return ", ".join(words) or column.text


def _items(column: BatchColumn) -> str:
    """The number of items of a column in words."""
    if column.of == "together":
        return "2 or 0" if column.name.endswith("_bounds") else "2 for each bucket"
    if column.lengths:
        return f"{column.width} for each" if column.items != "byte" else f"the sum of `{column.lengths}` in bytes"
    count = {"client": "n", "ledger": "L"}[column.of]
    count = count if column.width == 1 else f"{column.width} · {count}, or 0"
    return f"{count} fractions" if column.items == "fraction" else count


def _with_parts(kind: Any, heading: str, shown: set[type]) -> Iterator[Section]:
    """The section of a message or of a part of one, and those of its parts, each once."""
    shown.add(kind)
    parts: list[type] = []
    texts = _texts(kind)
    cells = [(name, _said(hint, name, parts), default, texts.get(name, "")) for name, hint, default in _fields(kind)]
    same = groupby(cells, lambda row: row[1:])
    table: list[tuple[str, ...]] = [(", ".join(f"`{row[0]}`" for row in rows), *about) for about, rows in same]
    table.insert(0, ("field", "type", "default", "meaning"))
    if not any(row[2] for row in table[1:]):
        table = [(*row[:2], *row[3:]) for row in table]
    yield Section(f"{heading}: {_about(kind)}", table if cells else [])
    for part in parts:
        if part not in shown:
            yield from _with_parts(part, f"*{_words(part)}*", shown)


def _about(kind: Any) -> str:
    """The docstring of a class up to its fields, and what relays do with the message."""
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")[0].split())
    whole = f"{text} {_RELAYS[getattr(kind, 'relay', 'own')]}".strip().replace("``", "`")
    return whole if whole[1:2].isupper() else whole[0].lower() + whole[1:]


def _texts(kind: type) -> dict[str, str]:
    """What the docstring says of each field, in Markdown."""
    entries = [
        entry
        for each in kind.__mro__
        for entry in _ENTRY.findall(inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")[2])
    ]
    plain = [(names, " ".join(text.replace("``", "`").split()).removesuffix(".")) for names, text in entries]
    return {name: text for names, text in reversed(plain) for name in names.split(", ")}


def _fields(kind: Any) -> Iterator[tuple[str, Any, str]]:
    """The name, type and default of each field; "" if it has none."""
    hints = get_type_hints(kind, include_extras=True)
    missing = (dataclasses.MISSING, msgspec.NODEFAULT)
    own = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else msgspec.structs.fields(kind)
    for field in own:
        if field.name in _OF_CONNECTION and issubclass(kind, msgspec.Struct):
            continue
        made = field.default if field.default not in missing else field.default_factory
        yield field.name, hints[field.name], "" if made in missing else _default(made() if callable(made) else made)


def _default(value: object) -> str:
    if value is msgspec.UNSET:
        return "absent"
    if value in ([], Histogram()):
        return "empty"
    text = f"{value:g}" if isinstance(value, float) else msgspec.json.encode(value).decode()
    return f"`{text}`" if isinstance(value, str) else text


def _said(hint: Any, name: str, parts: list[type]) -> str:
    """A type as the page names it; classes with a section of their own are added to ``parts``."""
    if hint in NAMED:
        return NAMED[hint]
    origin, within = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limit = next((each for each in within[1:] if isinstance(each, msgspec.Meta)), None)
        if limit is not None:
            return limit.title or _limited(within[0], limit, name, parts)
        return next((each for each in within[1:] if isinstance(each, str)), "") or _said(within[0], name, parts)
    if origin in (Union, UnionType):
        kinds = [each for each in within if each not in (NoneType, msgspec.UnsetType)]
        return " or ".join([_said(each, name, parts) for each in kinds] + ["null"] * (NoneType in within))
    if origin is Literal:
        return ", ".join(f'`"{word}"`' for word in within)
    if origin is list:
        return f"array of {_said(within[0], name, parts)}"
    if origin is dict:
        return f"map of {_said(within[1], name, parts)}"
    if origin is tuple or hasattr(hint, "_fields"):
        items = within or get_type_hints(hint).values()
        return f"[{', '.join(_said(each, name, parts) for each in items)}]"
    if hint is float:
        return "seconds" if name.endswith("_s") else "fraction"
    if hint is int:
        return "ns" if name.endswith("_ns") else "bytes" if name.endswith("bytes") else "count"
    parts.append(hint)
    return f"*{_words(hint)}*"


def _limited(hint: Any, limit: msgspec.Meta, name: str, parts: list[type]) -> str:
    """A type with limits that have no name."""
    if limit.max_length is not None:
        return f"{_said(hint, name, parts)}, at most {limit.max_length:,}"
    kind = "integer" if hint is int else "fraction"
    if limit.le is not None and limit.ge == limit.le:
        return f"{kind}, {limit.ge}"
    if limit.le is None or limit.le == _LARGEST:
        return f"{kind} ≥ {limit.ge:g}" if limit.le is None else f"{kind} {limit.ge} … 2⁶³ − 1"
    if limit.gt is not None:
        return f"{kind} above {limit.gt:g}, at most {limit.le:,.0f}"
    most = "2³² − 1" if limit.le == 2**32 - 1 else f"{limit.le:,}"
    return f"{kind} {f'{limit.ge:,}'.replace('-', '−')} … {most}"


def _words(kind: type) -> str:
    """The name of a class in words: ``LedgerCounts`` is "ledger counts"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
