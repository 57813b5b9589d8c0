"""The warnings of busy, shared and disturbed hosts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from hydra.events.value_formatting import counted, series_text
from hydra.events.warnings import HydraWarning
from hydra.measure.disturbance import Disturbance
from hydra.measure.host_columns import GENERATOR_LIMITED
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.report.row_context import FEWER, QUIET, RowContext, RowWarning
from hydra.store.stored_scenario import is_native
from hydra.sweep import Row
from hydra.sweep.cleanness import answers, others_of

_MAIN_CAUSE: Final = 1 / 2
"""The least share of the used CPU at which other processes are the main cause of a busy host."""
_MORE_HOSTS: Final = "use more hosts"
_LARGE: Final = 1 / 4
"""The least share of the used CPU at which the first remedy of a busy host is to end other processes."""


def _limited_series(row: Row) -> list[str]:
    """See :func:`hydra.sweep.held_warnings.limited_by_clients`, which a row without a searched rate does not import."""
    if not answers(row):
        return []
    from hydra.sweep.held_warnings import limited_by_clients

    return limited_by_clients(row)


class HostBusy(RowWarning):
    """A host with no CPU time left: it limited the row.

    Attributes:
        mean_pct: the part of the CPU that was used.
        others_pct: the part that other processes used; None: unknown or small.
        named: whether another warning of the row names these processes and their CPU.
        searched: whether the row is of a search, whose number of clients is the question.
    """

    mean_pct: float
    others_pct: float | None = None
    named: bool = False
    searched: bool = False

    @property
    def text(self) -> str:
        unnamed = self.others_pct is not None and not self.named
        others = f", about {self.others_pct:.0f} % by other processes" if unnamed else ""
        return f"a host had no CPU left: {self.mean_pct:.0f} % of the time of all cores was used{others}"

    @property
    def remedy(self) -> str:
        share, fewer = (self.others_pct or 0.0) / self.mean_pct, _MORE_HOSTS if self.searched else FEWER
        if share < _LARGE:
            return fewer
        if self.named:
            return f"if it stays busy without the other processes, {fewer}"
        return QUIET if share >= _MAIN_CAUSE else f"{QUIET}; if it stays busy, {fewer}"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        hosts = about.figures.hosts
        others, mean = others_of(hosts), hosts.host_cpu_mean_pct or 0.0
        if mean < BUSY_HOST_PCT or _limited_series(about.row):
            return
        named = any(each.others_pct for each in about.disturbances)
        yield cls(mean, others if others >= OTHERS_PCT else None, named, bool(answers(about.row)))


class HostShared(RowWarning):
    """A host with CPU time left, which other processes used as well."""

    template = "other processes used about {others_pct:.0f} % of a host's CPU"
    remedy = QUIET
    others_pct: float

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        hosts = about.figures.hosts
        others = hosts.host_others_pct or 0.0
        shared = others >= OTHERS_PCT and (hosts.host_cpu_mean_pct or 0.0) < BUSY_HOST_PCT
        # The warning about a disturbed row names these processes.
        return [cls(others)] if shared and not any(each.others_pct for each in about.disturbances) else []


class RowDisturbed(RowWarning):
    """A row in which others used the CPU of a host, memory was swapped out, the machine changed, or its clock jumped.

    ``hosts`` has an object for each host on which something did, with the fields of the column ``disturbed``; in a row
    with repeats, one for each repeat that differs.
    """

    hosts: Sequence[Disturbance]

    @property
    def text(self) -> str:
        return f"disturbed: {'; '.join(filter(None, map(_disturbed, _by_host(self.hosts))))}"

    @property
    def remedy(self) -> str:
        remedies = {
            QUIET: any(each.others_pct for each in self.hosts),
            "cool the CPU, or raise the CPU quota of the control group": any(each.throttled for each in self.hosts),
            "look at temperature and power limit, or switch boost off (hydra check)": any(
                each.frequencies_mhz for each in self.hosts
            ),
            "end what uses the memory of that host, or start fewer clients there": any(
                each.swapped_bytes for each in self.hosts
            ),
            "change the machine only between runs": any(each.changed for each in self.hosts),
            "measure when the host is not suspended, nor moved to other hardware": any(
                each.clock_jumps for each in self.hosts
            ),
        }
        return "; ".join(text for text, needed in remedies.items() if needed)

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        return [cls(found)] if (found := about.disturbances) else []


def _by_host(hosts: Sequence[Disturbance]) -> list[list[Disturbance]]:
    """The disturbances of each host, with the most CPU of others first."""
    found: dict[str, list[Disturbance]] = defaultdict(list)
    for each in hosts:
        found[each.host].append(each)
    return [sorted(its, key=lambda each: -each.others_pct) for its in found.values()]


def _disturbed(repeats: Sequence[Disturbance]) -> str:
    """What disturbed the repeats of a row on one host."""
    worst, parts = repeats[0], []
    most = " at most" if len(repeats) > 1 else ""
    if worst.others_pct:
        names = ", ".join(f"{name} {pct:.0f} %" for name, pct in worst.by if pct >= 1)
        parts.append(f"processes outside the run used{most} {worst.others_pct:.0f} % of the CPU ({names})")
    if throttled := max(each.throttled for each in repeats):
        parts.append(f"the CPU was slowed down{most} {counted(throttled, 'time')}")
    if falls := [each.frequencies_mhz for each in repeats if each.frequencies_mhz]:
        low, high = min(falls, key=lambda each: each[0] / each[1])
        parts.append(f"the frequency of the fastest core fell{most} from {high:.0f} to {low:.0f} MHz under load")
    if swapped := max(each.swapped_bytes for each in repeats):
        parts.append(f"the used swap space grew{most} by {swapped / 1e6:.1f} MB")
    changed = dict.fromkeys(change for each in repeats for change in each.changed)
    parts += [f"{change.fact} was {change.before} and is {change.after}" for change in changed]
    if jumps := max(each.clock_jumps for each in repeats):
        parts.append(f"the clock jumped{most} {counted(jumps, 'time')}")
    return f"on {worst.host}, {', '.join(parts)}"


class GeneratorLimited(RowWarning):
    """A row that the clients limited.

    Attributes:
        searches: the searched rates that they limited; empty: no search.
        native: whether the clients are native.
    """

    searches: Sequence[str] = ()
    native: bool = False

    @property
    def remedy(self) -> str:
        hosts = _MORE_HOSTS if self.searches else "use fewer clients per host, or more hosts"
        return hosts if self.native else f"use native clients, {hosts.removeprefix('use ')}"

    @property
    def text(self) -> str:
        which = f"{', '.join(map(series_text, self.searches))}: " if self.searches else ""
        return f"{which}generator-limited: the clients limited the measured rate, not the system"

    @classmethod
    def found_in(cls, about: RowContext) -> Iterable[HydraWarning]:
        ends = f"_{GENERATOR_LIMITED}"
        limited = [f"_{column}" for column, value in about.row.items() if value is True]
        searches = [each.removesuffix(ends).removeprefix("_") for each in limited if each.endswith(ends)]
        if known := _limited_series(about.row):
            busy = (about.figures.hosts.host_cpu_mean_pct or 0.0) >= BUSY_HOST_PCT
            searches = [] if busy else [each for each in searches if each not in known]
        return [cls(list(filter(None, searches)), is_native(about.scenario))] if searches else []
