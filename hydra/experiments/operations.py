"""The functions that expressions of an experiment's file can call. Pure.

Functions of a package's own stand in its modules, and in the table ``functions`` of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from hydra.events.value_formatting import counted
from hydra.experiments.measured_rows import Measured
from hydra.experiments.partition_formula import finite, needed, partition_plan
from hydra.model import Figure, number

Row = Mapping[str, Figure]

_SLOWEST: Final = 2_000
"""Records/s of a slow publisher, by which a step's length is an upper bound."""
_LEAST_S: Final = 60.0
_DAY_S: Final = 86_400.0


def numbers(rows: Iterable[Row], name: str) -> list[float]:
    """A figure of each row that has it."""
    return [value for row in rows if (value := number(row.get(name))) is not None]


def total(rows: Iterable[Row], name: str) -> float | None:
    """The sum of a figure over clients or lines; None if none has it."""
    found = numbers(rows, name)
    return sum(found) if found else None


def mean(rows: Iterable[Row], name: str) -> float | None:
    """The mean of a figure over clients, lines or runs; None if none has it."""
    found = numbers(rows, name)
    return sum(found) / len(found) if found else None


def least(rows: Iterable[Row], name: str) -> float | None:
    """The lowest figure; None if no row has it."""
    return min(numbers(rows, name), default=None)


def most(rows: Iterable[Row], name: str) -> float | None:
    """The highest figure; None if no row has it."""
    return max(numbers(rows, name), default=None)


def mean_of(servers: Mapping[str, Row], names: Sequence[str]) -> float | None:
    """The mean over servers of the sum of these figures; None if no server reported any of them."""
    sums = [sum(found) for server in servers.values() if (found := _reported(server, names))]
    return sum(sums) / len(sums) if sums else None


def _reported(server: Row, names: Sequence[str]) -> list[float]:
    return [float(value) for name in names if isinstance(value := server.get(name), int | float)]


def first(*values: object) -> object:
    """The first value that is known."""
    return next((value for value in values if value is not None), None)


def ms(us: Figure) -> float | None:
    """Microseconds as milliseconds."""
    found = number(us)
    return None if found is None else found / 1000


def known(value: object) -> bool:
    """Whether a value is known."""
    return value is not None


def time_for(records: int, publishers: int) -> float:
    """Seconds that certainly suffice for ``records`` of each publisher; the step ends when they are sent."""
    return min(_LEAST_S + records * publishers / _SLOWEST, _DAY_S)


def rates(rows: Sequence[Measured], scenario: str, role: str) -> list[float]:
    """The records/s of all clients of a role together, in each run of a published scenario."""
    found = [total(getattr(row, role), "records_per_sec") for row in rows if row.scenario == scenario]
    return [rate for rate in found if rate]


def placed(clients: Sequence[Row]) -> str:
    """The agents on which clients ran."""
    agents = Counter(str(client.get("agent")) for client in clients)
    if all(count == 1 for count in agents.values()):
        return "each on its own agent"
    return "several on an agent: " + ", ".join(f"{agent} {n}" for agent, n in sorted(agents.items()))


def replace(text: str, old: str, new: str) -> str:
    """The text with other characters."""
    return text.replace(old, new)


OPERATIONS: Final[Mapping[str, Callable[..., object]]] = {
    **{each.__name__: each for each in (counted, finite, first, known, least, mean, mean_of, most, ms)},
    **{each.__name__: each for each in (needed, number, partition_plan, placed, rates, replace, time_for, total)},
    "count": len,
    "max": max,
    "min": min,
    "range": range,
    "round": round,
    "text": str,
}
"""The functions of expressions by name, except ``records``, ``option`` and ``at``, which depend on the run."""
