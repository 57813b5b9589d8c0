"""Warnings of a row about slow clients, and about rates that were not steady."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import counted, duration, number
from hydra.events.warnings import HydraWarning
from hydra.measure.column import STATUS, Differences, Unsteadiness
from hydra.report.row_context import RowContext, RowWarning
from hydra.store.stored_scenario import held_by
from hydra.sweep import rows_of
from hydra.sweep.cleanness import unjudged


class SlowClientsWithoutEffect(RowWarning):
    """Slow subscribers that never delayed other clients, and the settings that would show an effect.

    Attributes:
        sent_pps, read_pps: messages/s that were sent to each slow subscriber, and that it read; None: unknown.
        duration_s: length of a step in seconds.
        queue: messages that the system's queues hold for one subscriber; None: not known, or there is no limit.
        queues: the settings with this limit.
        kernel: further messages that the kernel's buffers hold, at most.
    """

    kind = "slow_not_felt"

    sent_pps: float | None = None
    read_pps: float | None = None
    duration_s: float = 0.0
    queue: float | None = None
    queues: str = ""
    kernel: float = 0.0

    @property
    def text(self) -> str:
        text = (
            "slow: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the "
            "publisher nor other subscribers"
        )
        if not self._is_known:
            return text
        if self._behind_pps <= 0:
            read, sent = number(self.read_pps), number(self.sent_pps)
            return f"{text}: each slow subscriber reads {read}/s, and at most {sent}/s was sent to it"
        more = f", and the kernel's buffers up to {_about(self.kernel)} more" if self.kernel else ""
        hold = "" if self.queue is None else f"; {self.queues} hold {number(self.queue)} messages{more}"
        behind = _about(self._behind_pps * self.duration_s)
        return f"{text}: the backlog of each slow subscriber grows by {behind} messages in a step{hold}"

    @property
    def remedy(self) -> str:
        longer = "use longer steps, or a lower sweep.search.slow_share"
        if not self._is_known:
            return longer
        if self._behind_pps <= 0:
            return "lower sweep.search.slow_share"
        if self.queue is None:
            return f"set a limit: {self.queues}" if self.queues else longer
        held, left = self.queue + self.kernel, self._behind_pps * self.duration_s - self.kernel
        smaller = f", or {self.queues} of {_about(left)} messages in all" if 1 <= left < self.queue else ""
        return (
            f"to see an effect, use steps of at least {duration(held / self._behind_pps)}, a rate of at least "
            f"{_about(float(self.read_pps or 0) + held / self.duration_s)}/s{smaller}"
        )

    @property
    def _is_known(self) -> bool:
        return self.sent_pps is not None and self.read_pps is not None and self.duration_s > 0

    @property
    def _behind_pps(self) -> float:
        return float(self.sent_pps or 0) - float(self.read_pps or 0)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        rates = rows_of(about.scenario).slow_rates(about.row)
        if rates is None or about.row.get("slow_cohort_felt") is not False:
            return []
        held = held_by(about.scenario)
        found = cls(
            *rates,
            duration_s=about.scenario.sweep.duration_s,
            queue=held.queue if held else None,
            queues=held.queues if held else "",
            kernel=held.kernel if held else 0.0,
        )
        return [found]


def _about(messages: float) -> str:
    """A number of messages, rounded to two significant digits."""
    return number(float(f"{messages:.2g}"))


_NAMED_SECONDS: Final = 3
"""A warning names this number of the largest differences: a row of an hour can have hundreds."""


class UnsteadyRow(RowWarning):
    """A row whose seconds are not alike, so its figures are means of different loads or states.

    ``seconds`` holds how they differ; for a row with repeats, only whether the first repeat was slow.
    """

    kind = "not_steady"

    seconds: Sequence[Unsteadiness]

    @property
    def remedy(self) -> str:
        if any(each.kind == "stop" for each in self.seconds):
            return "find out what stopped the servers, the network or the hosts; the report plots the seconds"
        return "use longer steps, or a longer warm-up (warmup_max_s); the report plots the seconds"

    @property
    def text(self) -> str:
        how = f": {_largest(self.seconds)}" if self.seconds else " in at least one of its repeats"
        return f"not steady{how}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.figures.passing.steady is False:
            differences = about.figures.passing.unsteady
            yield cls(differences.found if isinstance(differences, Differences) else ())


def _largest(seconds: Sequence[Unsteadiness]) -> str:
    """The largest differences in the order of time, and the number of the others."""
    most = sorted(seconds, key=lambda each: (each.for_s, abs(each.by)), reverse=True)[:_NAMED_SECONDS]
    left = len(seconds) - len(most)
    others = f", and {counted(left, 'other difference')}" if left else ""
    return ", ".join(_differs(each) for each in seconds if each in most) + others


def _differs(found: Unsteadiness) -> str:
    """How seconds of a row differ from the others."""
    by = f"{number(100 * abs(found.by))} % {'less' if found.by < 0 else 'more'} was received"
    if found.kind == "stop":
        return f"nothing was received for about {number(found.for_s)} s from second {found.at_s} on"
    if found.kind == "short":
        return f"{by} in second {found.at_s} than was due"
    if found.kind == "beginning":
        return f"{by} in the first {found.at_s} s than later"
    if found.kind == "first":
        return f"{by} in the first repeat than in the others"
    if found.kind == "change":
        return f"{by} from second {found.at_s} on than before"
    return f"{by} in second {found.at_s} than in the median second"


class NotJudged(RowWarning):
    """A row of which it is unknown whether it is clean."""

    level = Level.LOSS
    template = "{what}"
    remedy = "measure the row again; if its messages have no header, this stays unknown"
    what: str

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        if about.row.get(STATUS) != "ok" or about.figures.loss.client_loss_high_pct is not None:
            return []
        return map(cls, unjudged(about.figures))
