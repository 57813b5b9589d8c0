"""Lists with a limited number of entries in a message: further entries are joined, not dropped. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from hydra.model import PublisherReport, SequenceRange
from hydra.wire.messages import MAX_MESSAGE_BYTES
from hydra.wire.report_validation import MAX_ABSENT, MAX_UNACKNOWLEDGED_RANGES

MAX_FINISH_RANGES_BYTES: Final = MAX_MESSAGE_BYTES // 2
"""The most bytes of the unacknowledged ranges in one ``finish``; the other half is for ids and end offsets."""


def join_beyond(ranges: Sequence[SequenceRange], most: int) -> tuple[list[SequenceRange], bool]:
    """At most ``most`` ranges (1 or more), and whether the last ones had to be joined into one.

    Subscribers do not expect messages between joined ranges, and count them as extra if they arrive.
    """
    if len(ranges) <= most:
        return list(ranges), False
    return [*ranges[: most - 1], (ranges[most - 1][0], ranges[-1][1])], True


def add_absence(absent: list[tuple[int, int]], begin_ns: int, end_ns: int) -> None:
    """Adds the next interval in which a subscriber was disconnected.

    If the list is full, the interval is joined to the last one, and the time between the two counts as disconnected.
    """
    end_ns = max(begin_ns, end_ns)
    if len(absent) < MAX_ABSENT:
        absent.append((begin_ns, end_ns))
    else:
        absent[-1] = (absent[-1][0], end_ns)


def fit_unacknowledged(reports: Mapping[int, PublisherReport]) -> dict[int, PublisherReport]:
    """The publishers' reports, with their unacknowledged ranges limited so that all of them fit into one ``finish``.

    Clients ignore a longer message. Reports with joined ranges are marked.
    """
    most = MAX_UNACKNOWLEDGED_RANGES
    while True:
        bounded = {p: join_beyond(r.unacknowledged, most) for p, r in reports.items()}
        if most == 1 or sum(len(msgspec.json.encode(r)) for r, _ in bounded.values()) <= MAX_FINISH_RANGES_BYTES:
            break
        most //= 2
    return {
        p: replace(reports[p], unacknowledged=ranges, unacknowledged_joined=joined or reports[p].unacknowledged_joined)
        for p, (ranges, joined) in bounded.items()
    }
