"""Whether a row measured the clients instead of the system: what their own code can do at most, beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra.model import Role

NEAR: Final = 0.9
"""From this part of its ceiling on, a figure is the generator's."""
CLIENTS_SHARE: Final = 0.5
"""The part of a host's CPU from which on clients, and not servers or others, used it up."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What so many clients of one role can do together on one host without a system, messages/s.

    ``language`` is what their loops are written in: ``python`` or ``native``.
    """

    language: str
    role: Role
    clients: int
    message_size: int
    pps: float


def ceiling(measured: Iterable[Ceiling], language: str, role: Role, clients: int, message_size: int) -> float | None:
    """The ceiling of so many clients with messages of this size; None where none was measured.

    Between those that were measured it is interpolated, sizes and counts on logarithmic scales; beyond them it is that
    of the nearest.
    """
    sizes: dict[int, list[Ceiling]] = {}
    for each in measured:
        if (each.language, each.role) == (language, role):
            sizes.setdefault(each.clients, []).append(each)
    if not sizes or clients < 1 or message_size < 1:
        return None
    of_counts = {count: _between(its, lambda c: c.message_size, message_size) for count, its in sizes.items()}
    points = [Ceiling(language, role, count, message_size, pps) for count, pps in of_counts.items()]
    return _between(points, lambda c: c.clients, clients)


def _between(points: Sequence[Ceiling], at: Callable[[Ceiling], int], where: int) -> float:
    ordered = sorted(points, key=at)
    found = np.interp(np.log(where), np.log([at(p) for p in ordered]), np.log([p.pps for p in ordered]))
    return float(np.exp(found))


def limited(
    reached: Iterable[tuple[float | None, float | None]], host_pct: float | None, clients_share: float, busy_pct: float
) -> bool | None:
    """Whether the generator is what was measured; None: nothing says so, and no ceiling says that it was not.

    Args:
        reached: figures, each with its ceiling.
        host_pct: mean CPU use of a host with clients.
        clients_share: the part of its CPU (0 to 1) that clients used.
        busy_pct: from which use on it has none left.
    """
    known = [(figure, most) for figure, most in reached if figure is not None and most is not None]
    near = any(figure >= NEAR * most for figure, most in known)
    if near or ((host_pct or 0.0) >= busy_pct and clients_share >= CLIENTS_SHARE):
        return True
    return False if known else None
