"""``hydra check``: whether a scenario fits this machine, or a cluster elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from hydra.config.cluster import load_cluster
from hydra.config.places import scenario_path
from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE
from hydra.model import ClusterSpec, Scenario
from hydra.run.engines import Chosen, choose


def check_scenario(scenario: str, replaced: Mapping[str, object], flags: Mapping[str, Any], *, named: bool) -> int:
    """Prints what a scenario needs and what is missing; the exit code.

    Where groups run on this machine, it is this machine's limits. Elsewhere it is what placement says of the cluster's
    agents as they are now; nothing is said of this machine then, which has the controller only, or nothing at all.

    Args:
        scenario: its name or path.
        replaced: what the command replaces in it, by dotted key.
        flags: ``master``, ``config`` and those of the engines.
        named: whether somebody named the scenario.

    Raises:
        ConfigError: the cluster file, or the scenario, cannot be used.
        UsageError, ClusterError: the master is none, or does not answer.
    """
    loaded, cluster = load_scenario(scenario, replaced), load_cluster(flags["config"])
    engine = choose(flags["master"], flags["config"], flags)
    # What is refused so far is refused within the time that these take to import.
    from hydra.limits.report import checked_line
    from hydra.results.fitted import fitted, terminal_width
    from hydra.run.launcher import system_for

    width = terminal_width()
    is_local = engine.spec.is_local
    system_for(loaded, is_local=is_local).program("subscriber")
    about = checked_line(loaded, scenario, scenario_path(scenario), named=named)
    fits, text, lines = _here(loaded, cluster, width) if is_local else _elsewhere(loaded, cluster, engine, width)
    click.echo(f"{fitted(about, width)}\n\n{text}")
    for line in lines:
        click.echo(fitted(line, width))
    # An engine may take its time, or fail: what is known is shown by then.
    for line in engine.spec.check(engine.master, engine.settings) if engine.spec.check else ():
        click.echo(fitted(line, width))
    return EXIT_GOOD if fits else EXIT_INCOMPLETE


def _here(scenario: Scenario, cluster: ClusterSpec, width: int | None) -> tuple[bool, str, list[str]]:
    """Whether every row fits this machine, a table, and a line for each shortage."""
    from hydra.client.processes import raise_open_files
    from hydra.limits.machine import read
    from hydra.limits.report import check_all, needs_line
    from hydra.results.fitted import tabled

    raise_open_files()
    rows = check_all(scenario, cluster, read())
    text = tabled([needs_line(row) for row in rows], width, floats=".1f")
    # The largest row asks for the most: its lines mend the others too.
    return all(row.fits for row in rows), text, [str(shortage) for shortage in rows[-1].shortages]


def _elsewhere(
    scenario: Scenario, cluster: ClusterSpec, engine: Chosen, width: int | None
) -> tuple[bool, str, list[str]]:
    """Whether every row can be placed on a cluster, its agents and the rows as tables, and why some cannot."""
    from hydra.results.fitted import tabled
    from hydra.run.agents import agent_rows, alike
    from hydra.run.placing import rows_on

    agents = engine.agents(cluster.agents)
    rows, refused = rows_on(scenario, cluster, agents)
    text = (
        f"{tabled(agent_rows(agents, scenario, alike(agents, scenario)), width)}\n\n{tabled(rows, width, floats='.1f')}"
    )
    # Those between meet what the smallest and the largest meet.
    return not refused, text, [*refused[:1], *refused[1:][-1:]]
