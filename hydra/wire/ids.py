"""Clients' ids as messages write them: numbers, and pairs for runs of two or more. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_IDS: Final = 1_000_000
"""Ids that one message names at most: a pair is short, whatever it stands for."""

Written = list[int | tuple[int, int]]
Items = Sequence[int | Sequence[int]]
"""As they come out of a message, unchecked."""


def written(ids: Sequence[int]) -> Written:
    """These ids, ascending, with every run as (first, last)."""
    if len(ids) < 2:
        return list(ids)
    runs: Written = []
    ordered = sorted(set(ids))
    first = last = ordered[0]
    for client in [*ordered[1:], None]:
        if client is not None and client == last + 1:
            last = client
            continue
        runs.append(first if first == last else (first, last))
        if client is not None:
            first = last = client
    return runs


def runs(items: Items, most: int = MOST_IDS) -> list[tuple[int, int]]:
    """The ids that are written so, as first and last of each run.

    Raises:
        ValueError: they do not rise, or are more than ``most``.
    """
    found: list[tuple[int, int]] = []
    count, highest = 0, -1
    for item in items:
        first, last = (item, item) if isinstance(item, int) else item
        if not highest < first <= last:
            raise ValueError(f"ids do not rise at {first}")
        count += last - first + 1
        if count > most:
            raise ValueError(f"more than {most} ids")
        found.append((first, last))
        highest = last
    return found


def read(items: Items, most: int = MOST_IDS) -> list[int]:
    """The ids that are written so; errors as in :func:`runs`."""
    return [client for first, last in runs(items, most) for client in range(first, last + 1)]
