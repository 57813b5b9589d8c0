"""Attributes and resources in the form ``cpus:4;mem:15000``, and the arithmetic of resources. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hydra.events.value_formatting import counted
from hydra.model import Demand, Launch, Resources

_DECIMALS: Final = 6
"""Decimals of amounts: with rounding, adding and subtracting the same amounts returns the original."""

_NAME: Final = re.compile(r"[A-Za-z0-9_./-]+")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_RANGE: Final = re.compile(r"(\d+)\s*-\s*(\d+)")
_SCALARS: Final = ("cpus", "mem", "disk")
_HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """The resources that one group takes from an agent: CPUs, memory in MiB, and a number of ports."""

    cpus: float = 0.0
    mem: float = 0.0
    ports: int = 0

    def __str__(self) -> str:
        return amounts(self.cpus, self.mem, self.ports or None)


def amounts(cpus: float, mem: float, ports: int | None = None) -> str:
    """An amount as text for people, ``cpus 3.2, mem 5000 MiB``; without ``ports`` if it is None."""
    text = f"cpus {_number(cpus)}, mem {_number(mem)} MiB"
    return text if ports is None else f"{text}, ports {ports}"


def parse_attributes(text: str) -> dict[str, str]:
    """The attributes in ``group:cpu4-mem16;rack:r1``, each value kept as text.

    Scalars, ranges and sets are compared as text by Marathon's operators, so they stay text here.

    Raises:
        ValueError: a part is not ``name:value``, or a name occurs twice.
    """
    found: dict[str, str] = {}
    for name, value in _pairs(text, "an attribute", "group:cpu4-mem16"):
        if name in found:
            raise ValueError(f"attribute {name!r} stands twice in {text!r}")
        found[name] = value
    return found


def parse_resources(text: str) -> Resources:
    """The resources in ``cpus:4;mem:15000;disk:1000;ports:[31000-32000,33000-33100]``; memory and disk in MiB.

    Raises:
        ValueError: an unknown resource, one given twice, or a malformed amount; the text shows the right form.
    """
    scalars: dict[str, float] = {}
    ports: tuple[tuple[int, int], ...] | None = None
    for name, value in _pairs(text, "a resource", "cpus:4"):
        if name in scalars or (name == "ports" and ports is not None):
            raise ValueError(f"resource {name!r} stands twice in {text!r}")
        if name == "ports":
            ports = _parse_ports(value)
        elif name in _SCALARS:
            if not _NUMBER.fullmatch(value):
                raise ValueError(f"resource {name} must be a number such as {name}:4, not {value!r}")
            scalars[name] = float(value)
        else:
            raise ValueError(f"unknown resource {name!r} in {text!r}: known are cpus, mem, disk and ports")
    return Resources(ports=ports or (), **scalars)


def format_resources(resources: Resources) -> str:
    """Resources as text, the inverse of ``parse_resources``; amounts of 0 are left out."""
    parts = [f"{name}:{_number(getattr(resources, name))}" for name in _SCALARS if getattr(resources, name)]
    if resources.ports:
        parts.append(f"ports:[{','.join(f'{first}-{last}' for first, last in resources.ports)}]")
    return ";".join(parts)


def need_of(demand: Demand, count: int) -> ResourceNeed:
    """The need of a group of ``count`` clients."""
    return ResourceNeed(
        cpus=round(demand.base_cpus + count * demand.cpus_per_client, _DECIMALS),
        mem=round(demand.base_mem + count * demand.mem_per_client, _DECIMALS),
        ports=demand.ports,
    )


def fits(need: ResourceNeed, free: Resources) -> bool:
    """Whether the free resources meet the need."""
    return (
        round(need.cpus - free.cpus, _DECIMALS) <= 0
        and round(need.mem - free.mem, _DECIMALS) <= 0
        and (need.ports == 0 or need.ports <= port_count(free))
    )


def take(free: Resources, need: ResourceNeed) -> tuple[Resources, tuple[int, ...]]:
    """Takes the need from the free resources; returns the rest and the ports taken.

    Raises:
        ValueError: the need does not fit.
    """
    if not fits(need, free):
        raise ValueError(f"{need} does not fit into {format_resources(free)!r}")
    ports, left = take_ports(free, need.ports)
    cpus, mem = (max(0.0, round(amount, _DECIMALS)) for amount in (left.cpus - need.cpus, left.mem - need.mem))
    return replace(left, cpus=cpus, mem=mem), ports


def taken_by(launch: Launch) -> Resources:
    """The resources of a launched group, to be added back when the group ends."""
    need = need_of(launch.group.demand, launch.group.count)
    return Resources(cpus=need.cpus, mem=need.mem, ports=_coalesce((port, port) for port in launch.ports))


def take_ports(free: Resources, count: int) -> tuple[tuple[int, ...], Resources]:
    """The ``count`` lowest free ports, and the resources without them.

    Raises:
        ValueError: fewer ports are free.
    """
    if count == 0:
        return (), free
    if count > port_count(free):
        raise ValueError(f"{counted(count, 'port is', 'ports are')} needed and {port_count(free)} free")
    taken: list[int] = []
    left: list[tuple[int, int]] = []
    for first, last in free.ports:
        here = min(count - len(taken), last - first + 1)
        taken.extend(range(first, first + here))
        if first + here <= last:
            left.append((first + here, last))
    return tuple(taken), replace(free, ports=tuple(left))


def port_count(resources: Resources) -> int:
    """The number of ports in the ranges."""
    return sum(last - first + 1 for first, last in resources.ports)


def add(left: Resources, right: Resources) -> Resources:
    """The sum of both; port ranges that touch or overlap become one."""
    both = {name: round(getattr(left, name) + getattr(right, name), _DECIMALS) for name in _SCALARS}
    return Resources(ports=_coalesce((*left.ports, *right.ports)), **both)


def subtract(left: Resources, right: Resources) -> Resources:
    """The first amount without the second.

    Raises:
        ValueError: the second amount has more of a resource, or a port that the first does not have.
    """
    remaining = {name: round(getattr(left, name) - getattr(right, name), _DECIMALS) for name in _SCALARS}
    short = [name for name, amount in remaining.items() if amount < 0]
    for first, last in right.ports:
        if not any(low <= first and last <= high for low, high in left.ports):
            short.append(f"ports {first}-{last}")
    if short:
        raise ValueError(
            f"cannot take {format_resources(right)!r} from {format_resources(left)!r}: too little of {', '.join(short)}"
        )
    return Resources(ports=without(left.ports, right.ports), **remaining)


def without(ranges: Iterable[tuple[int, int]], used: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges of ports without other ranges, sorted; ports outside the first ones are ignored."""
    for low, high in used:
        ranges = [
            part
            for first, last in ranges
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if part[0] <= part[1]
        ]
    return tuple(sorted(ranges))


def _pairs(text: str, kind: str, example: str) -> Iterable[tuple[str, str]]:
    for part in text.split(";"):
        if not part.strip():  # a trailing or doubled semicolon is accepted
            continue
        name, colon, value = (piece.strip() for piece in part.partition(":"))
        if not (colon and value and _NAME.fullmatch(name)):
            raise ValueError(f"{part.strip()!r} is not {kind} of the form name:value, as in {example!r}")
        yield name, value


def _parse_ports(value: str) -> tuple[tuple[int, int], ...]:
    remedy = f"ports must be ranges such as ports:[31000-32000,33000-33100], not {value!r}"
    if not (value.startswith("[") and value.endswith("]")):
        raise ValueError(remedy)
    ranges: list[tuple[int, int]] = []
    for part in value[1:-1].split(","):
        match = _RANGE.fullmatch(part.strip())
        if not match:
            raise ValueError(remedy)
        first, last = int(match[1]), int(match[2])
        if not 1 <= first <= last <= _HIGHEST_PORT:
            raise ValueError(f"the port range {part.strip()} must rise and lie in 1-{_HIGHEST_PORT}")
        ranges.append((first, last))
    return _coalesce(ranges)


def _coalesce(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _number(amount: float) -> str:
    return f"{amount:.{_DECIMALS}f}".rstrip("0").rstrip(".")
