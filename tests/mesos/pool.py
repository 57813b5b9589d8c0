"""What an agent has: amounts by resource and role, as Mesos' own ``--resources`` declares them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any

Json = dict[str, Any]
Amount = Any
"""Thousandths of a scalar (int), or a set of ports (frozenset): both can be compared and subtracted."""
Pool = dict[tuple[str, str], Amount]
"""(name, role) → amount."""

_PART = re.compile(r"(\w+)(?:\((.+?)\))?:(.+)")


def parse(text: str) -> Pool:
    pool: Pool = {}
    for part in text.split(";"):
        name, role, value = _PART.fullmatch(part.strip()).groups()  # type: ignore[union-attr]
        pool[name, role or "*"] = _numbers(value) if value.startswith("[") else round(float(value) * 1000)
    return pool


def attributes(text: str) -> list[Json]:
    found: list[Json] = []
    for part in filter(None, text.split(";")):
        name, _, value = part.partition(":")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            found.append({"name": name, "type": "SCALAR", "scalar": {"value": float(value)}})
        elif value.startswith("["):
            found.append({"name": name, "type": "RANGES", "ranges": {"range": spans(_numbers(value))}})
        else:
            found.append({"name": name, "type": "TEXT", "text": {"value": value}})
    return found


def _numbers(ranges: str) -> frozenset[int]:
    """Those in ranges as a command line has them."""
    pairs = (span.partition("-") for span in ranges[1:-1].split(","))
    return frozenset(n for first, _, last in pairs for n in range(int(first), int(last) + 1))


def spans(ports: Iterable[int]) -> list[Json]:
    found: list[Json] = []
    for port in sorted(ports):
        if found and found[-1]["end"] == port - 1:
            found[-1]["end"] = port
        else:
            found.append({"begin": port, "end": port})
    return found


def ranges(found: Iterable[Json]) -> str:
    """Spans as a command line has them."""
    return "[" + ", ".join(f"{span['begin']}-{span['end']}" for span in found) + "]"


def plus(left: Pool, right: Pool) -> Pool:
    found = dict(left)
    for key, amount in right.items():
        have = found.get(key, type(amount)())
        if isinstance(amount, frozenset):
            assert not have & amount, f"ports {have & amount} twice"
        found[key] = have | amount if isinstance(amount, frozenset) else have + amount
    return found


def total(pools: Iterable[Pool]) -> Pool:
    return reduce(plus, pools, {})


def minus(left: Pool, right: Pool) -> Pool | None:
    """None if the right holds something that the left has not."""
    rest = dict(left)
    for key, amount in right.items():
        have = rest.get(key)
        if have is None or not amount <= have:
            return None
        rest[key] = have - amount
    return {key: amount for key, amount in rest.items() if amount}


def _order(item: tuple[tuple[str, str], Amount]) -> tuple[int, str]:
    """The one in which Mesos lists them."""
    name, role = item[0]
    return ("ports", "cpus", "mem", "disk").index(name), role


def messages(pool: Pool, *, allocated: str, multi_role: bool) -> list[Json]:
    """As an offer has it. A framework without MULTI_ROLE sees the role of each resource, and no allocation."""
    found = []
    for (name, role), amount in sorted(pool.items(), key=_order):
        part: Json = {"name": name}
        if isinstance(amount, frozenset):
            part |= {"type": "RANGES", "ranges": {"range": spans(amount)}}
        else:
            part |= {"type": "SCALAR", "scalar": {"value": amount / 1000}}
        if multi_role:
            part["allocation_info"] = {"role": allocated}
            if role != "*":
                part["reservations"] = [{"type": "STATIC", "role": role}]
        else:
            part["role"] = role
        found.append(part)
    return found


def read(parts: Iterable[Json]) -> Pool:
    """What a task asks for."""
    pools: list[Pool] = []
    for part in parts:
        role = part.get("role") or next((r["role"] for r in part.get("reservations", ())), "*")
        if part["type"] == "SCALAR":
            amount: Amount = round(part["scalar"]["value"] * 1000)
        else:
            amount = frozenset(p for r in part["ranges"]["range"] for p in range(r["begin"], r["end"] + 1))
        pools.append({(part["name"], role): amount})
    return total(pools)


def words(pool: Pool, role: str) -> str:
    """As error messages have it."""
    parts = []
    for (name, _), amount in sorted(pool.items(), key=_order):
        value = ranges(spans(amount)) if isinstance(amount, frozenset) else f"{amount / 1000:g}"
        parts.append(f"{name}(allocated: {role}):{value}")
    return "; ".join(parts)


def plain(pool: Pool) -> Json:
    """As /slaves and /state have it: the sum over roles, disk, mem, gpus and cpus always there."""
    found: Json = {"disk": 0.0, "mem": 0.0, "gpus": 0.0, "cpus": 0.0}
    ports: frozenset[int] = frozenset()
    for (name, _), amount in pool.items():
        if isinstance(amount, frozenset):
            ports |= amount
        else:
            found[name] = found.get(name, 0.0) + amount / 1000
    if ports:
        found["ports"] = ranges(spans(ports))
    return found
