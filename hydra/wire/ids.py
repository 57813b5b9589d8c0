"""Clients' ids as messages write them: numbers, and pairs for runs of two or more. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_IDS: Final = 1_000_000
"""Ids that one message names at most: a pair is short, whatever it stands for."""

Written = list[int | tuple[int, int]]


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


def read(items: Sequence[int | Sequence[int]], most: int = MOST_IDS) -> list[int]:
    """The ids that are written so.

    Raises:
        ValueError: they do not rise, or are more than ``most``.
    """
    ids: list[int] = []
    for item in items:
        first, last = (item, item) if isinstance(item, int) else item
        if first > last or (ids and first <= ids[-1]):
            raise ValueError(f"ids do not rise at {first}")
        if len(ids) + last - first >= most:
            raise ValueError(f"more than {most} ids")
        ids.extend(range(first, last + 1))
    return ids
