"""The load of a stage on the messages' way: its busiest thread, and what its connections waited for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra.events.value_formatting import number

BUSY_PCT: Final = 90.0
"""A thread with at least this demand for a core, in % of the time, could do no more; sampling loses the rest."""
STARVED_PCT: Final = 60.0
STARVED_RATIO: Final = 20.0
"""A thread that waits for a core for at least this share of the time, and this many times as long as it runs, is
starved of CPU. The share is low because the kernel counts a wait when it ends, and long waits of a quota may lack."""
CROWDED_PCT: Final = 10.0
"""A thread that waited for this share of the time for a core that others used might have done more on an idle host."""


@dataclass(frozen=True, slots=True)
class BusyWorker:
    """The thread of several processes with the highest demand for CPU, with shares of the time in %.

    Attributes:
        name: of the thread.
        run_pct: it ran.
        wait_pct: it waited to run, for a core or for its quota.
        quota_pct: the quota of its control group was used up.
    """

    name: str
    run_pct: float
    wait_pct: float
    quota_pct: float = 0.0

    @property
    def wanted_pct(self) -> float:
        """The share of the time in % in which it ran or waited to run; the kernel may not count waits for a quota."""
        return self.run_pct + max(self.wait_pct, self.quota_pct)

    @property
    def crowded(self) -> bool:
        """Whether it waited for a core that others used, and more than for its own quota.

        The kernel counts less time without quota than a thread waits for it (about four fifths).
        """
        return self.wait_pct - self.quota_pct >= max(CROWDED_PCT, self.quota_pct)

    @property
    def busy(self) -> bool:
        """Whether it could do no more work."""
        return self.at_work or self.starved

    @property
    def at_work(self) -> bool:
        """Whether it ran or waited for a core all the time; otherwise it might have had no work."""
        return self.wanted_pct >= BUSY_PCT

    @property
    def starved(self) -> bool:
        """Whether it hardly ever got a core when it had work, as under a small quota."""
        return self.wait_pct >= STARVED_PCT and self.wait_pct >= STARVED_RATIO * self.run_pct

    def __str__(self) -> str:
        waited = f", waited {self.wait_pct:.0f} % for CPU" if self.wait_pct >= 1 else ""
        stopped = f", stopped {self.quota_pct:.0f} % by its quota" if self.quota_pct >= 1 else ""
        return f"{self.name} ran {self.run_pct:.0f} %{waited}{stopped}"


@dataclass(frozen=True, slots=True)
class TcpWaits:
    """What the outgoing TCP connections of several processes waited for, over the window.

    ``reader`` and ``network`` are shares (0 to 1) of the connections' time.
    """

    connections: float
    reader: float
    network: float
    unsent_bytes: float

    def __str__(self) -> str:
        return (
            f"{number(self.connections)} connections waited {100 * self.reader:.0f} % for their reader, "
            f"{100 * self.network:.0f} % for the network, {number(self.unsent_bytes / 1e6)} MB unsent"
        )
