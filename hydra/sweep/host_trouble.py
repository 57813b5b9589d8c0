"""What happened on the hosts of a row beside its messages, in short: why a clean row may still mislead. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hydra.events.value_formatting import counted
from hydra.measure.column_names import CLIENTS, DISTURBED, HOST_CPU, HOST_OTHERS, POINT
from hydra.measure.disturbance import Disturbance, decode_disturbances
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.model import Figure
from hydra.model import number as number_of

_FOUND: Final[Mapping[str, str]] = {
    "throttled": "the CPU was slowed down",
    "frequencies_mhz": "the frequency of the cores fell",
    "swapped_bytes": "memory was swapped out",
    "changed": "the machine changed",
    "clock_jumps": "a clock jumped",
}
"""The fields of a disturbance beside other processes, and what each means."""


def host_trouble(row: Mapping[str, Figure]) -> str:
    """What the hosts of a row lacked, or what disturbed them; "" if nothing is known to have happened.

    A row has a warning about its hosts if and only if this is not empty.
    """
    return ", ".join(_troubles(row))


def host_trouble_in_short(rows: Sequence[Mapping[str, Figure]]) -> str:
    """How many rows had trouble on their hosts, and the first of them with it; "" if none had."""
    found = [(row, trouble) for row in rows if (trouble := host_trouble(row))]
    if not found:
        return ""
    row, trouble = found[0]
    if len(rows) == 1:
        return trouble
    return f"{len(found)} of {len(rows)} rows: {row.get(POINT) or counted(row.get(CLIENTS), 'client')}: {trouble}"


def others_of(row: Mapping[str, Figure], disturbances: Sequence[Disturbance]) -> float:
    """The CPU of a host that processes outside the run used, in %: of the worst repeat if they are named."""
    named = max((each.others_pct for each in disturbances), default=0.0)
    return named or number_of(row.get(HOST_OTHERS)) or 0.0


def _troubles(row: Mapping[str, Figure]) -> Iterator[str]:
    disturbances = decode_disturbances(str(row.get(DISTURBED) or ""))
    if (number_of(row.get(HOST_CPU)) or 0.0) >= BUSY_HOST_PCT:
        yield "a host had no CPU left"
    if (others := others_of(row, disturbances)) >= OTHERS_PCT:
        yield f"other processes used {others:.0f} % of a host's CPU"
    yield from (text for field, text in _FOUND.items() if any(getattr(each, field) for each in disturbances))
