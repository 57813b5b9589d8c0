"""Reports of many clients as columns: one list for each field, with the value of each client in turn. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from hydra.model import PublisherReport, SubscriberReport

B = TypeVar("B", PublisherReport, SubscriberReport)


def columns(bodies: Sequence[PublisherReport] | Sequence[SubscriberReport]) -> dict[str, list[Any]]:
    """The bodies, at least one, as columns in the order of their fields."""
    return {field.name: [getattr(body, field.name) for body in bodies] for field in fields(bodies[0])}


def rows(kind: type[B], found: Mapping[str, Sequence[Any]], count: int) -> list[B]:
    """So many bodies out of columns; a column that is missing holds defaults.

    Raises:
        ValueError: a column is unknown, is not so long, or holds something else than such values.
    """
    known = {field.name for field in fields(kind)}
    for name, values in found.items():
        if name not in known:
            raise ValueError(f"an unknown column: {name}")
        if len(values) != count:
            raise ValueError(f"the column {name} has {len(values)} values for {count} clients")
    try:
        return [msgspec.convert({name: values[i] for name, values in found.items()}, kind) for i in range(count)]
    except msgspec.ValidationError as e:
        raise ValueError(str(e)) from None
