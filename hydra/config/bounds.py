"""The least and the most that a scenario or a cluster file may ask for.

The model says what can be; these say what makes sense, so that a slip of the finger is refused before anything starts.
They are no part of the model, because runs that earlier versions stored must still be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

_INT32: Final = 2**31 - 1
_DAY_S: Final = 86_400
_RATE: Final = (1e-6, 1e9)
"""Messages/s: clients take a rate as a fraction with a denominator of at most 10⁶, and count in ns."""

BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "publishers": (1, 10_000),
    "warmup_s": (0, 3600),
    "warmup_max_s": (0, 3600),
    "drain_max_s": (0, _DAY_S),
    "ready_timeout_s": (0, _DAY_S),
    "publisher_memory_mb": (0, 1e9),
    "sweep.clients": (1, 1_000_000),
    "sweep.duration_s": (0.001, _DAY_S),
    "sweep.points.clients": (0, 1_000_000),
    "sweep.points.publishers": (1, 10_000),
    "sweep.points.duration_s": (0.001, _DAY_S),
    "sweep.repeat": (1, 10_000),
    "sweep.search.start_rate": _RATE,
    "sweep.search.floor_rate": _RATE,
    "sweep.search.gain_target": (0, 1),
    "sweep.search.stall_doublings": (1, 64),
    "sweep.search.fresh_steps": (0, 100),
    "sweep.search.max_doublings": (1, 64),
    "sweep.search.width": (1, 1000),
    "sweep.search.reconnect_rate": (0.001, 100),
    "sweep.search.sndhwms": (0, _INT32),
    "settings.rate": _RATE,
    "settings.burst": (1, 1_000_000),
    "settings.messages": (1, 1e15),
    "settings.receive_rate": _RATE,
    "settings.reconnect_rate": (0.001, 100),
    "server.count": (1, 1000),
    "native.clients_per_process": (1, 100_000),
    **{
        f"{role}.demand.{field}": bounds
        for role in ("publisher", "subscriber", "server")
        for field, bounds in {
            "base_cpus": (0, 1e6),
            "base_mem": (0, 1e12),
            "cpus_per_client": (0, 1e6),
            "mem_per_client": (0, 1e12),
            "ports": (0, 65_535),
        }.items()
    },
    "max_group": (1, 1_000_000),
    "fork_window": (1, 1_000_000),
    "respawns": (0, 1_000_000),
}
"""By dotted key; sizes in bytes, times in seconds, rates per second. The elements of a list are bounded one by one."""


def out_of_bounds(
    noun: object, key: str = "", bounds: Mapping[str, tuple[float, float]] = BOUNDS
) -> Iterator[tuple[str, str]]:
    """(dotted key, what is wrong) of every number of a noun that is out of its bounds.

    Args:
        noun: a dataclass of the model, or a value in one.
        key: where it stands.
        bounds: least and most by dotted key.
    """
    if is_dataclass(noun):
        for field in fields(noun):
            yield from out_of_bounds(getattr(noun, field.name), f"{key}.{field.name}" if key else field.name, bounds)
    elif isinstance(noun, tuple):
        for index, value in enumerate(noun):
            for inner, what in out_of_bounds(value, key, bounds):
                # Tables of a list have keys of their own, and numbers of a list do not.
                yield f"{key}.{index}{inner.removeprefix(key)}" if is_dataclass(value) else inner, what
    elif key in bounds and isinstance(noun, int | float):
        least, most = bounds[key]
        if not least <= noun <= most:
            yield key, f"must be {_plain(least)} to {_plain(most)}, not {_plain(noun)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:g}"
