"""What an agent has: amounts by resource and role, as Mesos' own ``--resources`` declares them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
Amount = int | frozenset[int]
"""Thousandths of a scalar, or a set of ports."""
Pool = dict[tuple[str, str], Amount]
"""(name, role) → amount."""

_PART = re.compile(r"(\w+)(?:\((.+?)\))?:(.+)")


def parse(text: str) -> Pool:
    pool: Pool = {}
    for part in text.split(";"):
        name, role, value = _PART.fullmatch(part.strip()).groups()  # type: ignore[union-attr]
        if value.startswith("["):
            spans = (span.partition("-") for span in value[1:-1].split(","))
            amount: Amount = frozenset(p for first, _, last in spans for p in range(int(first), int(last) + 1))
        else:
            amount = round(float(value) * 1000)
        pool[name, role or "*"] = amount
    return pool


def attributes(text: str) -> list[Json]:
    found: list[Json] = []
    for part in filter(None, text.split(";")):
        name, _, value = part.partition(":")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            found.append({"name": name, "type": "SCALAR", "scalar": {"value": float(value)}})
        elif value.startswith("["):
            found.append({"name": name, "type": "RANGES", "ranges": {"range": _spans_of_text(value)}})
        else:
            found.append({"name": name, "type": "TEXT", "text": {"value": value}})
    return found


def _spans_of_text(value: str) -> list[Json]:
    pairs = (span.partition("-") for span in value[1:-1].split(","))
    return [{"begin": int(first), "end": int(last)} for first, _, last in pairs]


def spans(ports: Iterable[int]) -> list[Json]:
    found: list[Json] = []
    for port in sorted(ports):
        if found and found[-1]["end"] == port - 1:
            found[-1]["end"] = port
        else:
            found.append({"begin": port, "end": port})
    return found


def plus(left: Pool, right: Pool) -> Pool:
    return {key: _plus(left.get(key), right.get(key)) for key in left | right}


def _plus(left: Amount | None, right: Amount | None) -> Amount:
    if left is None or right is None:
        found = right if left is None else left
        assert found is not None
        return found
    if isinstance(left, frozenset):
        assert isinstance(right, frozenset)
        assert not left & right, f"ports {left & right} twice"
        return left | right
    assert isinstance(right, int)
    return left + right


def minus(left: Pool, right: Pool) -> Pool | None:
    """None if the right holds something that the left has not."""
    rest = dict(left)
    for key, amount in right.items():
        have = rest.get(key)
        if isinstance(amount, frozenset):
            if not isinstance(have, frozenset) or not amount <= have:
                return None
            rest[key] = have - amount
        else:
            if not isinstance(have, int) or amount > have:
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
    pool: Pool = {}
    for part in parts:
        role = part.get("role") or next((r["role"] for r in part.get("reservations", ())), "*")
        key = (part["name"], role)
        if part["type"] == "SCALAR":
            pool = plus(pool, {key: round(part["scalar"]["value"] * 1000)})
        else:
            ports = frozenset(p for r in part["ranges"]["range"] for p in range(r["begin"], r["end"] + 1))
            pool = plus(pool, {key: ports})
    return pool


def words(pool: Pool, role: str) -> str:
    """As error messages have it."""
    parts = []
    for (name, _), amount in sorted(pool.items(), key=_order):
        if isinstance(amount, frozenset):
            value = "[" + ", ".join(f"{s['begin']}-{s['end']}" for s in spans(amount)) + "]"
        else:
            value = f"{amount / 1000:g}"
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
        found["ports"] = "[" + ", ".join(f"{s['begin']}-{s['end']}" for s in spans(ports)) + "]"
    return found
