"""The warning of slow subscribers that had no effect. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from hydra.events.value_formatting import duration, number
from hydra.events.warnings import HydraWarning
from hydra.report.row_context import RowContext, RowWarning
from hydra.store.system_columns import held_by
from hydra.sweep import kind_of


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
        rates = kind_of(about.scenario).slow_rates(about.row)
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
