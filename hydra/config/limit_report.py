"""Which rows of a scenario fit this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hydra.config.machine_limits import Machine
from hydra.config.resolved import ResolvedScenario
from hydra.config.resource_needs import Needs, needs
from hydra.config.shortages import Shortage, shortages
from hydra.model import ClusterSpec, Scenario


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One size of the deployment against the machine."""

    publishers: int
    clients: int
    needs: Needs
    shortages: list[Shortage]

    @property
    def fits(self) -> bool:
        """Whether nothing grave is missing."""
        return not any(s.grave for s in self.shortages)


Size = tuple[int, int]
"""Publishers and subscribers."""


def check_row(
    resolved: ResolvedScenario,
    cluster: ClusterSpec,
    machine: Machine,
    size: Size,
    running: Size | None = None,
    stored_bytes: int = 0,
) -> RowCheck:
    """What this size of the scenario's deployment lacks.

    Args:
        resolved: what is run.
        cluster: where.
        machine: as it is now.
        size: what runs in the row.
        running: what runs already beside the run's servers; what these and it use is not free any more. None: nothing.
        stored_bytes: what the run's servers have on the disk already; it is deleted before the same space is needed.
    """
    machine = replace(machine, disk_available_bytes=machine.disk_available_bytes + stored_bytes)
    needed = _needs(resolved, cluster, size)
    taken = _needs(resolved, cluster, running) if running is not None else None
    return RowCheck(*size, needed, shortages(machine, needed, taken))


def _needs(resolved: ResolvedScenario, cluster: ClusterSpec, size: Size) -> Needs:
    scenario, (publishers, clients) = resolved.scenario, size
    # Growing step by step launches groups for each growth; each agent carries at least one of them.
    growths = sum(1 for count in scenario.sweep.counts if count <= clients) or 1
    most = cluster.most_in_group(scenario.native.clients_per_process)
    subscriber_groups = max(-(-clients // most), min(len(cluster.agents) * growths, clients))
    return needs(resolved, clients, subscriber_groups + publishers, cluster.fork_window, publishers)


def check_all(resolved: ResolvedScenario, cluster: ClusterSpec, machine: Machine) -> list[RowCheck]:
    """Every size that the scenario's deployment has, ascending."""
    return [check_row(resolved, cluster, machine, size) for size in resolved.scenario.sizes]


def checked_line(scenario: Scenario, name: str, file: Path, *, named: bool) -> str:
    """Says which scenario was checked.

    Args:
        scenario: with what its user replaced.
        name: as a command line has it.
        file: where it stands.
        named: whether somebody named it.
    """
    about = f": {scenario.description}" if scenario.description else ""
    usual = "" if named else "; no scenario was named, so this is the usual one: hydra check SCENARIO checks another"
    return f"Scenario {name} ({file}){about}; clients: {scenario.client}{usual}"


def needs_line(row: RowCheck) -> dict[str, str | float]:
    """A row for a table of what is needed."""
    missing = ", ".join(s.what for s in row.shortages if s.grave)
    return {
        "clients": row.clients,
        "publishers": row.publishers,
        "processes": row.needs.processes,
        "threads": row.needs.threads,
        "open files (one process)": row.needs.files,
        "local ports": row.needs.ports,
        "memory (GB)": row.needs.memory_bytes / 1e9,
        "disk (GB)": row.needs.disk_bytes / 1e9,
        "fits": "yes" if row.fits else f"no: {missing}",
    }
