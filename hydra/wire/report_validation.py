"""Rules for reports and samples beyond the types of their fields. Pure.

The decoder rejects a report that breaks these rules, so no later code has to expect impossible numbers: negative
counts, ranges that run backwards, buckets that do not exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Final

from hydra.model import (
    BusyThread,
    Histogram,
    HostCounters,
    ProcessUsage,
    PublisherReport,
    SequenceRange,
    TcpConnections,
)
from hydra.model.reports import LARGEST as LARGEST
from hydra.model.reports import MAX_ABSENT as MAX_ABSENT
from hydra.model.reports import MAX_MISSING_RANGES as MAX_MISSING_RANGES
from hydra.wire.buckets import BUCKETS

MAX_UNACKNOWLEDGED_RANGES: Final = 4096
"""Most unacknowledged ranges of one publisher; a publisher with more joins the last ones into one."""
MAX_NAME: Final = 256
"""Most characters in the name of an interface or thread."""

_Body = PublisherReport | ProcessUsage | HostCounters | BusyThread | TcpConnections


def check_report(report: PublisherReport) -> None:
    """Rejects a report that no correct publisher can send.

    Raises:
        ValueError: the text names the first field that is wrong.
    """
    _check_numbers(report)
    _check_numbers(report.usage)
    check_histogram("lag", report.lag)
    check_histogram("ack_latency", report.ack_latency)
    check_ranges("unacknowledged", report.unacknowledged, MAX_UNACKNOWLEDGED_RANGES)


def check_counters(counters: HostCounters) -> None:
    """Rejects counters that no host can have.

    Raises:
        ValueError: the text names the first that is wrong.
    """
    _check_numbers(counters)
    for core in counters.cores:
        for seconds in core:
            _check_number("cores", seconds)
    for name, waited_us in counters.pressure_us.items():
        _check_name(name)
        _check_number(f"pressure_us.{name}", waited_us)
    for name, counts in counters.interfaces.items():
        _check_name(name)
        for count in counts:
            _check_number(f"interfaces.{name}", count)
    for count in counters.tcp:
        _check_number("tcp", count)


def check_connections(connections: TcpConnections) -> None:
    """Rejects impossible counts; errors as in :func:`check_counters`."""
    _check_numbers(connections)


def check_thread(thread: BusyThread) -> None:
    """Rejects an impossible thread; errors as in :func:`check_counters`."""
    _check_numbers(thread)
    _check_name(thread.name)


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME:
        raise ValueError(f"a name of {len(name)} characters, above the limit of {MAX_NAME}")


def _check_numbers(body: _Body) -> None:
    for field in fields(body):
        _check_number(field.name, getattr(body, field.name))


def _check_number(name: str, value: object) -> None:
    """Rejects a number that is negative or too large to be stored."""
    if isinstance(value, int) and not 0 <= value <= LARGEST:
        raise ValueError(f"{name} is {value}, not 0 to {LARGEST}")
    if isinstance(value, float) and not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} is {value}")


def check_ranges(name: str, ranges: Sequence[SequenceRange], most: int) -> None:
    """Rejects more than ``most`` ranges, or such that do not rise; errors as in :func:`check_counters`."""
    if len(ranges) > most:
        raise ValueError(f"{name} has more than {most} ranges")
    last = -1
    for low, high in ranges:
        if not last < low <= high <= LARGEST:
            raise ValueError(f"{name} does not rise at {low} to {high}")
        last = high


def check_histogram(name: str, histogram: Histogram, lowest_us: int = 0, most: int = LARGEST) -> None:
    """Rejects an impossible histogram; errors as in :func:`check_counters`.

    Args:
        name: what the text of an error names.
        histogram: sparse counts.
        lowest_us: below 0 if the latency is between two hosts, whose clocks may differ.
        most: the largest count of a bucket.
    """
    for edge, value_us in (("min_us", histogram.min_us), ("max_us", histogram.max_us)):
        if not lowest_us <= value_us <= LARGEST:
            raise ValueError(f"{name}.{edge} is {value_us}, not {lowest_us} to {LARGEST}")
    lowest = -BUCKETS if lowest_us else 0
    indexes, counts = histogram.counts[::2], histogram.counts[1::2]
    if len(indexes) != len(counts):
        raise ValueError(f"{name} has an index without a count")
    if not indexes:
        return
    if min(counts) < 1 or max(counts) > most:
        raise ValueError(f"{name} has a count that is not 1 to {most}")
    if indexes[0] < lowest or indexes[-1] >= BUCKETS or any(a >= b for a, b in pairwise(indexes)):
        raise ValueError(f"{name} has indexes that do not rise from {lowest} to {BUCKETS - 1}")


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
