"""What happened on the hosts of a row beside its messages, in short: why a clean row may still mislead. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hydra.events.value_formatting import counted
from hydra.measure.column import POINT, values_of
from hydra.measure.disturbance import Disturbance, Disturbances
from hydra.measure.host_columns import DISTURBED, HOST_CPU, HOST_OTHERS, Hosts
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.model import Figure
from hydra.sweep.interface import Row

HOST_FACTS: Final = (HOST_CPU, HOST_OTHERS, DISTURBED)
"""The columns of a step that the row of a search has, too."""
_FOUND: Final[Mapping[str, str]] = {
    "throttled": "the CPU was slowed down",
    "frequencies_mhz": "the frequency of the cores fell",
    "swapped_bytes": "memory was swapped out",
    "changed": "the machine changed",
    "clock_jumps": "a clock jumped",
}
"""The fields of a disturbance beside other processes, and what each means."""


def host_trouble(row: Mapping[str, Figure]) -> str:
    """What the hosts of a row lacked, or what disturbed them; "" if nothing is known to have happened.

    A row has a warning about its hosts if and only if this is not empty.
    """
    return ", ".join(_troubles(Hosts.of_row(row)))


def host_trouble_in_short(rows: Sequence[Mapping[str, Figure]]) -> str:
    """How many rows had trouble on their hosts, and the first of them with it; "" if none had."""
    found = [(row, trouble) for row in rows if (trouble := host_trouble(row))]
    if not found:
        return ""
    row, trouble = found[0]
    if len(rows) == 1:
        return trouble
    return f"{len(found)} of {len(rows)} rows: {row.get(POINT) or counted(row.get(CLIENTS), 'subscriber')}: {trouble}"


def disturbances_of(hosts: Hosts) -> list[Disturbance]:
    """What disturbed a row, for each host on which something did, of all its repeats."""
    return [each for found in values_of(hosts.disturbed) if isinstance(found, Disturbances) for each in found.hosts]


def others_of(hosts: Hosts) -> float:
    """The CPU of a host that processes outside the run used, in %: of the worst repeat if they are named."""
    named = max((each.others_pct for each in disturbances_of(hosts)), default=0.0)
    return named or hosts.host_others_pct or 0.0


def _troubles(hosts: Hosts) -> Iterator[str]:
    if (hosts.host_cpu_mean_pct or 0.0) >= BUSY_HOST_PCT:
        yield "a host had no CPU left"
    if (others := others_of(hosts)) >= OTHERS_PCT:
        yield f"other processes used {others:.0f} % of a host's CPU"
    disturbances = disturbances_of(hosts)
    yield from (text for field, text in _FOUND.items() if any(getattr(each, field) for each in disturbances))


def deciding(steps: Sequence[StepResult], limiting: StepResult | None, figure: float | None) -> list[StepResult]:
    """The steps at both sides of a searched rate: the limiting one, and the fastest one below it that passed.

    Args:
        steps: the measured steps of the search.
        limiting: the step at the lowest rate of those with losses; None: there is none.
        figure: the searched rate, messages/s; None: it was not found, so any step may have passed.
    """
    passed = [
        step
        for step in steps
        if step.figures.passing.passed and (figure is None or float(step.plan.settings.rate) <= figure)
    ]
    best = max(passed, key=lambda step: float(step.plan.settings.rate), default=None)
    return [step for step in (limiting, best) if step is not None]


def add_host_facts(row: Row, steps: Iterable[StepResult]) -> None:
    """Adds what the hosts did in these steps to what the row has: the highest use, and all that disturbed them."""
    for step in steps:
        before, hosts = Hosts.of_row(row), step.figures.hosts
        used = {
            HOST_CPU: (before.host_cpu_mean_pct, hosts.host_cpu_mean_pct),
            HOST_OTHERS: (before.host_others_pct, hosts.host_others_pct),
        }
        row |= {name: max((value for value in both if value is not None), default=None) for name, both in used.items()}
        found = dict.fromkeys([*disturbances_of(before), *disturbances_of(hosts)])
        row[DISTURBED] = Disturbances(tuple(found)) if found else None
