"""How the subscribers of a step connected, and how they came back, from their reports. Pure.

A subscriber that was never let in, or never came back, is part of every percentile: it ranks above all others. A
percentile whose rank falls on such a subscriber is unknown, never that of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

from hydra.model import Rate
from hydra.model.system_reports import CONNECTION, ConnectionReport, Disconnection
from hydra.wire.buckets import rank_of

Moment = Literal["connected", "ready", "first_message"]
Phase = Literal["tcp", "tls", "login"]
_MOMENTS: Final[Mapping[Moment, str]] = {"connected": "connected_us", "ready": "ready_us", "first_message": "first_us"}
"""The field of a report with the time of each moment, since the subscriber was due to connect."""


@dataclass(frozen=True, slots=True)
class ConnectFacts:
    """What the controller knows of how the subscribers of a step connected.

    Attributes:
        rate: the subscribers that were due to connect per second; None: they kept their connections.
        others: the connections of publishers and of Hydra itself with the servers; None: not known.
        server_cpu_s: CPU seconds of a server on the controller's host while subscribers connected; None: not known.
        down_ns: when the only server was killed in the step, ns on the step's clock.
        losses_known: whether the subscribers reveal disconnections.
    """

    rate: Rate | None = None
    others: int | None = None
    server_cpu_s: float | None = None
    down_ns: Sequence[int] = ()
    losses_known: bool = True


def ranked(values: Iterable[float], count: int, percent: float) -> float | None:
    """The nearest-rank percentile of ``count`` values, of which those not given are larger than all; None: one of them.

    Args:
        values: the known values.
        count: the number of all values.
        percent: above 0, up to 100.
    """
    known = sorted(values)
    rank = rank_of(percent, count)
    return known[rank - 1] if rank <= len(known) else None


def _ranked_ms(values_us: Iterable[float | None], count: int, percent: float) -> float | None:
    """The percentile in ms; None also if no value is known."""
    known = [value for value in values_us if value is not None]
    value_us = ranked(known, count, percent) if known else None
    return None if value_us is None else value_us / 1000


def reports_of(systems: Iterable[Mapping[str, Any] | None]) -> list[ConnectionReport]:
    """The reports of connections in the ``system`` objects of subscribers; invalid ones are left out."""
    found = []
    for system in systems:
        if system is not None and CONNECTION in system:
            try:
                found.append(msgspec.convert(system[CONNECTION], ConnectionReport))
            except msgspec.ValidationError:
                continue
    return found


@dataclass(frozen=True)
class Connections:
    """How the subscribers of a step connected, and came back after disconnections.

    Attributes:
        facts: what the controller knows; None: the step did not measure connecting.
        reports: those of the subscribers that reported.
        count: the number of all subscribers, also those that are dead or silent.
        planned: whether a cohort explains disconnections.
    """

    facts: ConnectFacts | None
    reports: Sequence[ConnectionReport]
    count: int
    planned: bool = False

    @property
    def measured(self) -> bool:
        """Whether the step measured how subscribers connect."""
        return self.facts is not None and self.facts.rate is not None

    @cached_property
    def ready(self) -> list[ConnectionReport]:
        """The reports of the subscribers that were let in."""
        return [r for r in self.reports if r.ready_us is not None]

    @property
    def achieved(self) -> float | None:
        """The subscribers/s that became ready; None: fewer than two did."""
        if len(self.ready) < 2:
            return None
        first_ns = min(r.due_ns for r in self.reports)
        last_ns = max(r.due_ns + 1000 * (r.ready_us or 0) for r in self.ready)
        return (len(self.ready) - 1) * 1e9 / (last_ns - first_ns) if last_ns > first_ns else None

    @property
    def never(self) -> int:
        """The number of subscribers that were not let in."""
        return self.count - len(self.ready)

    def moment_ms(self, moment: Moment, percent: float) -> float | None:
        """A percentile, over all subscribers, of the time until a moment."""
        return _ranked_ms((getattr(r, _MOMENTS[moment]) for r in self.ready), self.count, percent)

    def phase_ms(self, phase: Phase, percent: float) -> float | None:
        """A percentile, over the subscribers that were let in, of the duration of a phase of connecting."""
        return _ranked_ms((getattr(r, f"{phase}_us") for r in self.ready), len(self.ready), percent)

    def lag_ms(self, percent: float) -> float | None:
        """A percentile, over all subscribers, of the time until the first attempt began."""
        return _ranked_ms((r.lag_us for r in self.reports), self.count, percent)

    @property
    def refused(self) -> int:
        """The number of attempts that the server or the network refused."""
        return sum(r.refused for r in self.reports)

    @property
    def timed_out(self) -> int:
        """The number of attempts that failed at their time limit."""
        return sum(r.timed_out for r in self.reports)

    @cached_property
    def local(self) -> Counter[str]:
        """The attempts that failed at a limit of the subscriber's host, by the limit."""
        found: Counter[str] = Counter()
        for each in self.reports:
            found.update(each.local)
        return found

    @property
    def local_why(self) -> str | None:
        """The limit that most of them reached; None: none was."""
        return max(self.local, key=lambda name: self.local[name], default=None)

    @property
    def shut_out(self) -> bool:
        """Whether a limit of their own host, and nothing else, kept subscribers from connecting."""
        return self.measured and bool(self.local) and not self.refused and not self.timed_out

    @cached_property
    def lost(self) -> list[Disconnection]:
        """The disconnections that no cohort planned."""
        return [each for r in self.reports for each in r.disconnections]

    @property
    def counted(self) -> bool:
        """Whether disconnections are shown: if the step did not measure connecting, only if there was one."""
        return self.facts.losses_known if self.facts is not None else not self.planned and bool(self.lost)

    @property
    def disconnected(self) -> bool:
        """Whether, besides, there was one, or the only server was killed."""
        return self.counted and bool(self.lost or self._down_ns)

    @property
    def _down_ns(self) -> Sequence[int]:
        return self.facts.down_ns if self.facts else ()

    @property
    def _unreported(self) -> int:
        # The end of the server disconnected these subscribers, too, and none of them reported a return.
        return self.count - len(self.reports) if self._down_ns else 0

    def back_ms(self, percent: float) -> float | None:
        """A percentile, over all disconnections, of the time until the subscriber was connected again."""
        back_us = [
            (back_ns - self._since(lost_ns, before_ns)) / 1000
            for r in self.reports
            for before_ns, (lost_ns, back_ns, _) in zip(
                [0, *(ns for ns, *_ in r.disconnections)], r.disconnections, strict=False
            )
            if back_ns
        ]
        return _ranked_ms(back_us, len(self.lost) + self._unreported, percent)

    @property
    def mean_attempts(self) -> float | None:
        """The mean number of attempts to connect again; None: there was no disconnection."""
        return sum(attempts for *_, attempts in self.lost) / len(self.lost) if self.lost else None

    @property
    def never_back(self) -> int:
        """The number of subscribers that never came back."""
        return self._unreported + sum(1 for r in self.reports if r.disconnections and not r.disconnections[-1][1])

    def _since(self, lost_ns: int, before_ns: int) -> int:
        """The time from which a disconnection counts: the end of a server that caused it, else the disconnection.

        Args:
            lost_ns: when the connection was lost.
            before_ns: when the subscriber had lost one before; 0: never. An end causes only the first loss after it.
        """
        return max((down_ns for down_ns in self._down_ns if before_ns < down_ns <= lost_ns), default=lost_ns)
