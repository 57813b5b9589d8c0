"""The machine in ``hydra check``: its record, what uses its CPU now, and what would change its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.config.machine_judgement import Judgement, judged, judged_others
from hydra.measure.disturbance import named
from hydra.measure.machine_facts import facts_of
from hydra.measure.machine_texts import RECORD_FILES, record_of
from hydra.measure.other_processes import used_by_others
from hydra.model import MachineRecord
from hydra.run.own_machine import MachineReading, OwnMachine

_LEAST_S: Final = 0.5
"""The least time over which the CPU time of other processes is measured; it is counted in ticks of 10 ms."""


@dataclass(frozen=True, slots=True)
class CheckedMachine:
    """The machine as ``hydra check`` found it.

    Attributes:
        record: the record of the machine.
        others_pct: the CPU of all cores that other processes used during the check, in %.
        by: the part of each of them in %, by name.
    """

    record: MachineRecord
    others_pct: float
    by: Mapping[str, float]

    @property
    def judgements(self) -> Sequence[Judgement]:
        """What a user should know or change before measuring."""
        return [*judged_others(self.others_pct, self.by), *judged(self.record)]

    @property
    def facts(self) -> dict[str, str]:
        """The facts as texts by name, with what uses the CPU."""
        by = ", ".join(f"{name} {pct:g} %" for name, pct in self.by.items())
        others = f"{self.others_pct:.1f} % of the CPU{f' ({by})' if by else ''}"
        return {**facts_of(self.record), "others": others}


class MachineCheck:
    """Checks this machine; what other processes use is measured from the creation of the object on.

    Args:
        own: reads this machine.
        sleep: waits for a number of seconds.

    Attributes:
        record: the record of the machine.
    """

    def __init__(self, own: OwnMachine | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._own = own or OwnMachine()
        self._sleep = sleep
        self._first = self._own.read(RECORD_FILES)
        self.record = record_of(self._first.texts)

    def end(self) -> CheckedMachine:
        """The result, half a second after the start at the earliest."""
        since_s = (time.monotonic_ns() - self._first.time_ns) / 1e9
        if since_s < _LEAST_S:
            self._sleep(_LEAST_S - since_s)
        return checked(self._first, self._own.read(()))


def checked(first: MachineReading, last: MachineReading) -> CheckedMachine:
    """The machine between two readings, of which the first has the files of the record."""
    record = record_of(first.texts)
    used = used_by_others(first.processes or {}, last.processes or {}, first.ours | last.ours)
    cpu_s = (last.time_ns - first.time_ns) / 1e9 * len(record.cpus or (0,))
    return CheckedMachine(record, round(100 * sum(used.values()) / cpu_s, 1), dict(named(used, cpu_s)))
