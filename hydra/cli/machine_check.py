"""The machines in ``hydra check``: their records, what uses their CPU now, and what would change their figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from hydra.config.machine_judgement import Judgement, judged, judged_others
from hydra.measure.disturbance import PROCESS_FILES, descendants, named, processes_of, used_by_others
from hydra.measure.machine_facts import RECORD_FILES, Texts, facts_of, group_files, record_of
from hydra.model import MachineRecord
from hydra.options.engine_choice import SelectedEngine
from hydra.run.own_machine import MachineReading, OwnMachine

_LEAST_S: Final = 0.5
"""The least time over which the CPU time of other processes is measured; it is counted in ticks of 10 ms."""
_UPTIME: Final = "/proc/uptime"
_READER: Final = "/proc/self/stat"
_MOMENT: Final = (*PROCESS_FILES, _UPTIME, _READER)
"""The files of a reading on another host: processes, the time, and the process that reads, a child of the shell."""


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

    def judgements(self, buffers: Mapping[str, int]) -> Sequence[Judgement]:
        """What a user should know or change before measuring; for ``buffers`` see :func:`judged`."""
        return [*judged_others(self.others_pct, self.by), *judged(self.record, buffers)]

    def as_json(self, buffers: Mapping[str, int]) -> Mapping[str, object]:
        """The machine and its judgements for JSON; for ``buffers`` see :func:`judged`."""
        return {
            "facts": self.facts,
            "others_pct": self.others_pct,
            "others": dict(self.by),
            "judgements": [asdict(judgement) for judgement in self.judgements(buffers)],
        }

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
    used = used_by_others(first.processes or {}, last.processes or {}, first.own | last.own)
    cpu_s = max((last.time_ns - first.time_ns) / 1e9, _LEAST_S) * len(record.cpus or (0,))
    # Processes are not all read at the same moment.
    others_pct = min(100 * sum(used.values()) / cpu_s, 100.0)
    return CheckedMachine(record, round(others_pct, 1), dict(named(used, cpu_s)))


def checked_hosts(engine: SelectedEngine) -> dict[str, CheckedMachine]:
    """The hosts of an engine by name; none if the engine cannot read their files before a run.

    Raises:
        UsageError, ClusterError: the hosts cannot be used, or do not reply.
    """
    if (read := engine.spec.checks.texts) is None:
        return {}
    records = {name: texts for name, (texts,) in read(engine.master, engine.settings, [RECORD_FILES]).items()}
    groups = dict.fromkeys(path for texts in records.values() for path in group_files(texts))
    moments = read(engine.master, engine.settings, [(*_MOMENT, *groups), _MOMENT])
    return {
        name: checked(_reading({**records[name], **first}), _reading(last)) for name, (first, last) in moments.items()
    }


def _reading(texts: Texts) -> MachineReading:
    """The reading of another host: only the shell that makes it, with its children, is Hydra's there."""
    processes = processes_of(texts)
    uptime_s, *_ = texts.get(_UPTIME, "0").split()
    reader = texts.get(_READER, "").rpartition(") ")[2].split()
    own = frozenset(descendants(processes, map(int, reader[1:2])))
    return MachineReading(int(float(uptime_s) * 1e9), texts, processes, own)
