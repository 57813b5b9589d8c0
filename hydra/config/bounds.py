"""The least and the most that a scenario or a cluster file may ask for.

The model says what can be; the bounds of a field (``hydra.model.Setting``) say what makes sense, so that a slip of the
finger is refused before anything starts. The model does not check them, because runs that earlier versions stored must
still be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

from hydra.model import Setting, setting_of


def out_of_bounds(
    noun: object, key: str = "", bounds: Mapping[str, tuple[float, float]] | None = None, of: Field[Any] | None = None
) -> Iterator[tuple[str, str]]:
    """(dotted key, what is wrong) of every number of a noun that is out of its bounds.

    Args:
        noun: a dataclass of the model, or a value in one. The elements of a list are bounded one by one.
        key: where it stands.
        bounds: least and most by dotted key, which go before those of a field.
        of: the field whose value it is.
    """
    if is_dataclass(noun):
        for each in fields(noun):
            inside = f"{key}.{each.name}" if key else each.name
            yield from out_of_bounds(getattr(noun, each.name), inside, bounds, each)
    elif isinstance(noun, tuple):
        for index, value in enumerate(noun):
            for inner, what in out_of_bounds(value, key, bounds, of):
                # Tables of a list have keys of their own, and numbers of a list do not.
                yield f"{key}.{index}{inner.removeprefix(key)}" if is_dataclass(value) else inner, what
    elif isinstance(noun, int | float):
        known = setting_of(of) if of else Setting()
        least, most = (bounds or {}).get(key, (known.least, known.most))
        if not least <= noun <= most:
            yield key, f"must be {_plain(least)} to {_plain(most)}, not {_plain(noun)}"


def _plain(number: float) -> str:
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else f"{number:g}"
