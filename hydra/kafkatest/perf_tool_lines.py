"""The lines in which Kafka's own performance tools print figures: parses them, and writes them for any client. Pure.

Scripts read these lines by regular expressions, so every digit must be at the place where the tools print it.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hydra.model import Figure, number

CONSUMER_HEADER: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
"""The line that ConsumerPerformance writes above its figures."""
_NUMBER: Final = r"(NaN|Infinity|-?[\d.]+(?:E[-+]?\d+)?)"
_WINDOW: Final = re.compile(rf"(\d+) records sent, {_NUMBER} records/sec .* max latency\.$")
_SUMMARY: Final = re.compile(
    rf"(\d+) records sent, {_NUMBER} records/sec \({_NUMBER} MB/sec\), {_NUMBER} ms avg latency, "
    rf"{_NUMBER} ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th\.$"
)
_PRODUCER: Final = (
    *("records", "records_per_sec", "mb_per_sec", "avg_latency_ms", "max_latency_ms"),
    *("p50_ms", "p95_ms", "p99_ms", "p99_9_ms"),
)
_METRIC: Final = re.compile(rf"producer-metrics:([a-z-]+):\S+\s+: {_NUMBER}$")
_TIME: Final = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3})"
_CONSUMED: Final = re.compile(rf"{_TIME}, {_TIME}, " + ", ".join([_NUMBER] * 8) + "$")
_CONSUMER: Final = (
    *("mb_consumed", "mb_per_sec", "messages", "records_per_sec"),
    *("rebalance_ms", "fetch_ms", "fetch_mb_per_sec", "fetch_records_per_sec"),
)
_WHOLE: Final = frozenset({"records", "messages", "rebalance_ms", "fetch_ms", "p50_ms", "p95_ms", "p99_ms", "p99_9_ms"})
_TIMED_OUT: Final = re.compile(r"WARNING: Exiting before consuming .*timeout \((\d+) ms\)")
_THROWN: Final = re.compile(r"(?:Exception in thread \S+ )?(?:[\w$]+\.)+(\w+(?:Exception|Error)): (.+)")
_LOGGED: Final = re.compile(r"[\d:.]+ (?:WARN|ERROR|FATAL) \S+ (.+)")


@dataclass
class ProducerOutput:
    """What ProducerPerformance has written so far.

    Attributes:
        records: the number of records in its progress lines.
        first_line_s: the seconds from its first record to its first progress line; 0 before that line.
        figures: the figures of its last line by name, without those that are no number; empty before that line.
        metrics: the metrics of its producer, by Kafka's names.
        complaint: the first exception that it printed, or the last line of its log if it printed none.
    """

    records: int = 0
    first_line_s: float = 0.0
    figures: dict[str, int | float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    complaint: str = ""

    def read(self, line: str) -> None:
        """Takes one line."""
        if found := _SUMMARY.match(line):
            self.figures = _figures(_PRODUCER, found.groups())
        elif found := _WINDOW.match(line):
            if not self.records and 0 < float(found[2]) < math.inf:
                self.first_line_s = int(found[1]) / float(found[2])
            self.records += int(found[1])
        elif found := _METRIC.match(line):
            self.metrics |= _figures([found[1]], [found[2]])
        else:
            self.complaint = _complaint(self.complaint, line)


@dataclass
class ConsumerOutput:
    """What ConsumerPerformance has written so far.

    Attributes:
        figures: the figures of its line by name, as above.
        began_ns, ended_ns: its beginning and end, ns since 1970, if the tool runs with UTC as its time zone.
        waited_ms: how long it has waited in vain for more records before it ended; 0 if it has read all.
        complaint: as above.
    """

    figures: dict[str, int | float] = field(default_factory=dict)
    began_ns: int = 0
    ended_ns: int = 0
    waited_ms: int = 0
    complaint: str = ""

    def read(self, line: str) -> None:
        """Takes one line."""
        if found := _CONSUMED.match(line):
            began, ended, *rest = found.groups()
            self.figures, self.began_ns, self.ended_ns = _figures(_CONSUMER, rest), _ns(began), _ns(ended)
        elif found := _TIMED_OUT.match(line):
            self.waited_ms = int(found[1])
        else:
            self.complaint = _complaint(self.complaint, line)


def _figures(names: Iterable[str], values: Iterable[str]) -> dict[str, int | float]:
    found = {name: float(value) for name, value in zip(names, values, strict=True)}
    return {name: int(v) if name in _WHOLE else v for name, v in found.items() if math.isfinite(v)}


def _ns(text: str) -> int:
    moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S:%f").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000) * 1_000_000


def _complaint(before: str, line: str) -> str:
    """The first exception, or before one the last line of the log."""
    if found := _THROWN.match(line):
        return before if before.startswith("threw ") else f"threw {found[1]}: {found[2]}"
    found = _LOGGED.match(line)
    return found[1] if found and not before.startswith("threw ") else before


def producer_line(figures: Mapping[str, Figure]) -> str:
    """The last line of ProducerPerformance.

    Args:
        figures: a publisher's figures by name (``PUBLISHER_FIGURES``). Unknown figures are NaN or 0, as the tool prints
            them if no record was acknowledged.
    """
    return (
        f"{_whole(figures, 'records')} records sent, {_part(figures, 'records_per_sec'):.6f} records/sec "
        f"({_part(figures, 'mb_per_sec'):.2f} MB/sec), "
        f"{_text(_part(figures, 'avg_latency_ms', math.nan))} ms avg latency, "
        f"{_part(figures, 'max_latency_ms'):.2f} ms max latency, {_whole(figures, 'p50_ms')} ms 50th, "
        f"{_whole(figures, 'p95_ms')} ms 95th, {_whole(figures, 'p99_ms')} ms 99th, "
        f"{_whole(figures, 'p99_9_ms')} ms 99.9th."
    )


def consumer_line(figures: Mapping[str, Figure], start_ns: int) -> str:
    """The line of ConsumerPerformance.

    Args:
        figures: a subscriber's figures by name (``SUBSCRIBER_FIGURES``).
        start_ns: when it began, ns since 1970; the line has the local time of this machine.
    """
    rebalance_ms, fetch_ms = _whole(figures, "rebalance_ms"), _whole(figures, "fetch_ms")
    end_ns = start_ns + (rebalance_ms + fetch_ms) * 1_000_000
    return (
        f"{_time(start_ns)}, {_time(end_ns)}, {_part(figures, 'mb_consumed'):.4f}, {_part(figures, 'mb_per_sec'):.4f}, "
        f"{_whole(figures, 'messages')}, {_part(figures, 'records_per_sec'):.4f}, {rebalance_ms}, {fetch_ms}, "
        f"{_part(figures, 'fetch_mb_per_sec'):.4f}, {_part(figures, 'fetch_records_per_sec'):.4f}"
    )


def tool_lines(producers: Sequence[Mapping[str, Figure]], consumers: Sequence[Mapping[str, Figure]]) -> list[str]:
    """The lines that the tools would print for each producer and consumer of a measured row."""
    lines = [*map(producer_line, producers), *([CONSUMER_HEADER] if consumers else [])]
    return lines + [consumer_line(its, round(number(its.get("began_ns")) or 0)) for its in consumers]


def _part(figures: Mapping[str, Figure], name: str, unknown: float = 0.0) -> float:
    known = number(figures.get(name))
    return unknown if known is None else known


def _whole(figures: Mapping[str, Figure], name: str) -> int:
    return round(_part(figures, name))


def _text(value: float) -> str:
    """A number with two decimals; Java writes NaN as ``NaN``."""
    return "NaN" if math.isnan(value) else f"{value:.2f}"


def _time(ns: int) -> str:
    seconds, rest_ns = divmod(ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}:{rest_ns // 1_000_000:03d}"
