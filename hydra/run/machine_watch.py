"""The machines of a run: their records, and what disturbs the run on them."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hydra.control.clock_offset import HostKey
from hydra.control.controller import Controller
from hydra.measure.disturbance import (
    FREQUENCY_BYTES,
    FREQUENCY_FILES,
    HEAT_FILES,
    PROCESS_FILES,
    FrequencySeries,
    descendants,
    processes_of,
    throttle_count,
    used_by_others,
)
from hydra.measure.machine_facts import (
    FILE_BYTES,
    MEMORY_FILE,
    RECORD_FILES,
    Texts,
    changes,
    group_files,
    record_of,
    swap_used_bytes,
)
from hydra.model import MachineActivity, MachineRecord, format_cpus
from hydra.run.own_machine import MachineReading, OwnMachine
from hydra.wire.messages import Hello, KernelTexts

_FIRST_WITHIN_S: Final = 2.0
"""The longest wait for the record of other hosts; the record of a host that has not answered is not known."""
_LAST_WITHIN_S: Final = 0.5
_EVERY_NS: Final = 1_000_000_000
_OF_A_ROLE: Final = 8
"""The most relays or servers of a role whose CPUs are read: all of a role have the same ones."""
_MOST_GROUPS: Final = 128
"""The most files of control groups that are read on other hosts; a command has a limited number of patterns."""


@dataclass(slots=True)
class _WatchedHost:
    """A host of the run: its name and record, and its readings.

    ``before`` is the reading at the end of the last stored step, or at the start; ``ended`` that at the end of the last
    observed step. ``too_many`` is whether the texts of its processes exceed what one answer contains.
    """

    name: str
    record: MachineRecord
    before: MachineReading | None = None
    ended: MachineReading | None = None
    first: MachineReading | None = None
    last: MachineReading | None = None
    frequency: FrequencySeries = field(default_factory=FrequencySeries)
    too_many: bool = False


class MachineWatch:
    """Looks at every host of a run; the first reading of this host is made at once.

    Args:
        own: reads this host.

    Attributes:
        records: the record of each known host, by its name.
    """

    def __init__(self, own: OwnMachine | None = None) -> None:
        self.records: dict[str, MachineRecord] = {}
        self._own = own or OwnMachine()
        began = self._own.read(RECORD_FILES)
        name = platform.node()
        self._here = _WatchedHost(name, record_of(began.texts), before=began)
        self.records[name] = self._here.record
        self._others: dict[HostKey, _WatchedHost] = {}
        self._seen: set[HostKey] = set()
        self._groups: dict[str, None] = {}
        self._servers: Sequence[int] = ()
        self._questions: tuple[int, int] | None = None
        self._frequency: int | None = None
        self._next_ns = 0

    @property
    def own(self) -> MachineRecord:
        """The record of this host."""
        return self._here.record

    def others(self, controller: Controller) -> list[tuple[str, MachineRecord, frozenset[str]]]:
        """The name and the record of each other host, and the roles of its groups."""
        return [
            (host.name, host.record, frozenset(hello.role for hello in self._relays(controller, key)))
            for key, host in self._others.items()
        ]

    def of_agents(self, controller: Controller) -> dict[str, str]:
        """The name of each agent's host; agents of one host have the same one."""
        found: dict[str, str] = {}
        names = {controller.roster.own: self._here.name, **{key: host.name for key, host in self._others.items()}}
        for hello in controller.roster.hellos():
            key = (hello.boot_id, hello.time_namespace)
            if key not in names:
                names[key] = _name(controller, key)
            found[hello.agent] = names[key]
        return found

    def look(self, controller: Controller) -> bool:
        """Reads the records of hosts that are new; returns whether there are any."""
        new = [host for host in controller.roster.looks.hosts() if host not in self._seen]
        if not new:
            return False
        self._seen.update(new)
        texts = self._texts(controller, new, RECORD_FILES)
        for host in texts:
            self._groups |= dict.fromkeys(group_files(texts[host].texts))
        more = self._texts(controller, texts, self._group_files)
        for host in texts:
            both = {**texts[host].texts, **(more[host].texts if host in more else {})}
            name = _name(controller, host)
            self._others[host] = _WatchedHost(name, record_of(both))
            self.records[name] = self._others[host].record
        return True

    def begin(self, controller: Controller, servers: Sequence[int] = ()) -> None:
        """Begins to observe a step; ``servers`` are the processes of servers on this host that are no groups."""
        self._servers = servers
        for question in self._questions or ():
            controller.roster.looks.end(question)  # of a step that failed
        self._take_frequencies(controller)
        self._ask(controller, (MEMORY_FILE, *HEAT_FILES, *self._group_files))
        self._here.first, self._here.frequency = (
            self._own.read((MEMORY_FILE,), self._own_groups(controller), servers),
            FrequencySeries(),
        )
        for host in self._others.values():
            host.first, host.frequency = None, FrequencySeries()
        self._next_ns = 0

    def sample(self, controller: Controller) -> None:
        """Reads the frequencies if that is due; called a few times a second during the window."""
        now_ns = time.monotonic_ns()
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + _EVERY_NS
        if self._here.record.governor is not None:
            self._here.frequency.add(self._own.frequency_texts())
        if shown := [key for key, host in self._others.items() if host.record.governor is not None]:
            self._take_frequencies(controller)
            self._frequency = controller.roster.looks.ask(shown, FREQUENCY_FILES, FREQUENCY_BYTES, now_ns)

    def end(self, controller: Controller) -> None:
        """Ends the observation at the end of the window; the answers of other hosts may still be on their way."""
        files = (*RECORD_FILES, *_status_files(self._relays(controller, None)))
        self._here.last = self._own.read(files, self._own_groups(controller), self._servers)
        self._take_frequencies(controller)
        for host, reading in self._taken(controller):
            host.first = reading
        status = _status_files(hello for key in self._others for hello in self._relays(controller, key))
        self._ask(controller, (*RECORD_FILES, *HEAT_FILES, *self._group_files, *status))

    def activities(self, controller: Controller) -> dict[str, MachineActivity]:
        """What happened on each host during the step, by its name; without hosts that have not answered."""
        if (numbers := self._questions) is not None:
            controller.wait_until(lambda: all(map(controller.roster.looks.answered, numbers)), _LAST_WITHIN_S)
        for host, reading in self._taken(controller):
            host.last = reading
        found = {}
        for key, host in [(None, self._here), *self._others.items()]:
            if host.first is not None and host.last is not None:
                found[host.name] = _activity(host, host.first, host.last, self._relays(controller, key))
            host.ended, host.first, host.last = host.last, None, None
        return found

    def step_stored(self) -> None:
        """Records that the observed step was stored: what follows, warm-ups included, comes before the next one."""
        for host in (self._here, *self._others.values()):
            host.before = host.ended or host.before

    # --- other hosts -------------------------------------------------------------------------------------------------

    @property
    def _group_files(self) -> tuple[str, ...]:
        """The files of the control groups of all other hosts."""
        return tuple(self._groups)[:_MOST_GROUPS]

    def _texts(
        self, controller: Controller, hosts: Iterable[HostKey], files: Sequence[str]
    ) -> Mapping[HostKey, KernelTexts]:
        """The texts of these files on each of these hosts that answers in time."""
        looks = controller.roster.looks
        number = looks.ask(hosts, files, FILE_BYTES, time.monotonic_ns())
        controller.wait_until(lambda: looks.answered(number), _FIRST_WITHIN_S)
        return looks.end(number)

    def _ask(self, controller: Controller, files: Sequence[str]) -> None:
        """Asks all other hosts for these files, and for their processes unless a host has too many for one answer."""
        now_ns = time.monotonic_ns()
        few = [key for key, host in self._others.items() if not host.too_many]
        looks = controller.roster.looks
        self._questions = (
            looks.ask(self._others, files, FILE_BYTES, now_ns),
            looks.ask(few, PROCESS_FILES, FILE_BYTES, now_ns),
        )

    def _taken(self, controller: Controller) -> Iterable[tuple[_WatchedHost, MachineReading]]:
        """Ends the present questions: the readings of the hosts that have answered."""
        if self._questions is None:
            return
        answers, listed = (controller.roster.looks.end(question) for question in self._questions)
        self._questions = None
        for key, answer in answers.items():
            if (host := self._others.get(key)) is not None and answer.complete:
                its = listed.get(key)
                host.too_many |= its is not None and not its.complete
                yield host, _reading(answer, None if host.too_many else its, self._relays(controller, key))

    def _take_frequencies(self, controller: Controller) -> None:
        if self._frequency is None:
            return
        for key, answer in controller.roster.looks.end(self._frequency).items():
            if (host := self._others.get(key)) is not None:
                host.frequency.add(answer.texts)
        self._frequency = None

    def _own_groups(self, controller: Controller) -> dict[int, str]:
        """The relays and servers of this host by their process id, with the names of their groups."""
        return {hello.pid: hello.group for hello in self._relays(controller, None)}

    def _relays(self, controller: Controller, host: HostKey | None) -> list[Hello]:
        """The hellos of the relays and servers on a host; None: on this host."""
        key = controller.roster.own if host is None else host
        return [hello for hello in controller.roster.hellos() if (hello.boot_id, hello.time_namespace) == key]


def _name(controller: Controller, host: HostKey) -> str:
    """The name of another host: its first agent, or process group."""
    hellos = (h for h in controller.roster.hellos() if (h.boot_id, h.time_namespace) == host)
    return min(hello.agent or hello.group for hello in hellos)


def _status_files(relays: Iterable[Hello]) -> tuple[str, ...]:
    """The files that show on which CPUs some relays and servers of each role may run."""
    of_role: dict[str, list[str]] = {}
    for hello in relays:
        of_role.setdefault(hello.role, []).append(f"/proc/{hello.pid}/status")
    return tuple(path for paths in of_role.values() for path in paths[:_OF_A_ROLE])


def _reading(answer: KernelTexts, listed: KernelTexts | None, relays: Sequence[Hello]) -> MachineReading:
    """The reading of another host, where servers and the parents of relays are the run's, with all descendants.

    Args:
        answer: the texts of all files but those of processes.
        listed: the texts of the processes; None if they are not known.
        relays: the relays and servers of the host.
    """
    if listed is None:
        return MachineReading(answer.time_ns, answer.texts, None, frozenset())
    processes = processes_of(listed.texts)
    servers = [hello.pid for hello in relays if hello.role == "server"]
    parents = [processes[hello.pid].parent for hello in relays if hello.role != "server" and hello.pid in processes]
    own = frozenset(descendants(processes, (*servers, *parents)))
    return MachineReading(listed.time_ns, answer.texts, processes, own)


def _activity(
    host: _WatchedHost, first: MachineReading, last: MachineReading, relays: Sequence[Hello]
) -> MachineActivity:
    """What happened on a host between two readings."""
    slowed, swapped = (_growth(count(first.texts), count(last.texts)) for count in (throttle_count, swap_used_bytes))
    seconds, others = _between(first, last)
    before_s, earlier = (0.0, None) if host.before is None else _between(host.before, first)
    return MachineActivity(
        seconds=seconds,
        cpus=len(host.record.cpus or ()),
        others=others,
        before_s=before_s,
        before=earlier,
        frequencies_mhz=tuple(host.frequency.mhz),
        busiest_core_pct=tuple(host.frequency.busiest_pct),
        throttled=slowed,
        swapped_bytes=swapped or 0,
        changed=changes(host.record, record_of(last.texts)),
        pinned=_allowed(last.texts, relays),
    )


def _growth(before: int | None, after: int | None) -> int | None:
    """By how much a number grew; None: not known."""
    return None if before is None or after is None else max(after - before, 0)


def _between(first: MachineReading, last: MachineReading) -> tuple[float, dict[str, float] | None]:
    """The seconds between two readings, and what others used in them; None if that is not known."""
    seconds = (last.time_ns - first.time_ns) / 1e9
    if first.processes is None or last.processes is None:
        return seconds, None
    used = used_by_others(first.processes, last.processes, first.own | last.own)
    return seconds, {name: round(used_s, 2) for name, used_s in used.items()}


def _allowed(texts: Texts, relays: Iterable[Hello]) -> dict[str, str]:
    """The CPUs on which the groups of each role may run, from the status of their relays and servers."""
    found: dict[str, set[str]] = {}
    for hello in relays:
        status = texts.get(f"/proc/{hello.pid}/status", "")
        allowed = record_of({"/proc/self/status": status}).allowed
        if allowed is not None:
            found.setdefault(hello.role, set()).add(format_cpus(allowed))
    return {role: " / ".join(sorted(lists)) for role, lists in found.items()}
