"""The columns that experiments share, with the expressions of their figures; a file can define them otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.config.experiment_file import ColumnEntry
from hydra.experiments.measured_rows import QUALITY
from hydra.measure.column import Column
from hydra.system.experiment import MARKING

_TO_ACK: Final = "time from send to acknowledgement"
COMMON: Final[Mapping[str, ColumnEntry]] = {
    "records_per_sec": ColumnEntry(
        "records/s",
        "sum over all clients",
        "records/s",
        "none",
        value="total(publishers, 'records_per_sec')",
    ),
    "mb_per_sec": ColumnEntry(
        "MB/s",
        "sum over all clients; a MB is 2^20 bytes, as in the documents",
        "MB/s",
        value="total(publishers, 'mb_per_sec')",
    ),
    "records_per_batch": ColumnEntry("records", "mean records in a batch that was sent", "records/batch"),
    "avg_latency_ms": ColumnEntry(
        "ms", f"mean {_TO_ACK}", "avg latency, ms", value="mean(publishers, 'avg_latency_ms')"
    ),
    "max_latency_ms": ColumnEntry(
        "ms", f"longest {_TO_ACK}", "max latency, ms", value="mean(publishers, 'max_latency_ms')"
    ),
    **{
        f"{name}_ms": ColumnEntry(
            "ms", f"{title} of the {_TO_ACK}", f"{title}, ms", value=f"mean(publishers, '{name}_ms')"
        )
        for name, title in (("p50", "50th"), ("p95", "95th"), ("p99", "99th"), ("p99_9", "99.9th"))
    },
    "broker": ColumnEntry("text", "its name", value="server"),
}
GROUPS: Final = {"*quality": QUALITY, "*marks": MARKING}
"""Columns that stand together, by the name that a file has for them."""
_QUALITY: Final = {column.name: column for column in QUALITY}


def columns_of(names: tuple[str, ...], defined: Mapping[str, ColumnEntry]) -> dict[str, Column]:
    """The columns of a table by the names of their entries in a file, which has these definitions."""
    columns: dict[str, Column] = {}
    for name in names:
        if name in GROUPS:
            columns |= {column.name: column for column in GROUPS[name]}
        elif name in _QUALITY and name not in defined:
            columns[name] = _QUALITY[name]
        else:
            of = defined.get(name) or COMMON[name]
            columns[name] = Column(of.name or name, of.unit, of.help, of.heading, of.digits, axis=of.axis)
    return columns


def is_known(name: str, defined: Mapping[str, ColumnEntry]) -> bool:
    """Whether a table of a file with these definitions can have this column."""
    return name in GROUPS or name in _QUALITY or name in COMMON or name in defined
