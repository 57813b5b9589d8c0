"""Reads run directories as the sides of a comparison, with the time series of their steps for its plots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.analysis.compared_runs import ComparedRow, ComparedRun, RowRepeat, RowSlice
from hydra.config import plugins
from hydra.config.fields import field_of, own_tables, shared_table
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import RunDirectoryError, UsageError
from hydra.events.run_events import SystemFact
from hydra.measure.column import POINT, REASON, STATUS
from hydra.measure.event_recovery import latency_of_span
from hydra.measure.machine_facts import compared_facts
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import AVG_RX, AVG_TX, CLIENTS
from hydra.model import (
    PUBLISHERS,
    SKIPPED_BY,
    USER,
    Figure,
    Scenario,
    TimeSeriesFacts,
    TimeSeriesInterval,
    names_of,
    setting_of,
    value_of,
    with_values,
)
from hydra.report.figure_texts import at_most
from hydra.report.row_warnings import warnings_of
from hydra.report.run_setup import stored_setup
from hydra.store.database import CLIENTS_KEY, ENDED_KEY, RunStore
from hydra.store.interleaved_record import folders_of, given_apart, took_turns
from hydra.store.run_folders import is_experiment
from hydra.store.stored_scenario import stored_scenario
from hydra.sweep import Row, plan_of, rows_of, texts_of
from hydra.sweep.cleanness import why_not_clean

_NOT_COMPARED: Final = re.compile(r"description|.*\bdemand\b.*")
"""Keys of a scenario that are not compared: their differences are shown elsewhere, or follow from other keys."""
_ADDRESS: Final = re.compile(r":\d+\b")


def load_sides(folders: Sequence[Path]) -> tuple[list[ComparedRun], bool]:
    """Reads the runs to compare; returns the sides, and whether the runs were interleaved.

    Args:
        folders: run directories, or folders of runs that were measured together.

    Raises:
        UsageError: there are fewer than two runs, or a run is named twice.
        RunDirectoryError: a run cannot be read.
    """
    if alone := next((folder for folder in folders if is_experiment(folder)), None):
        raise UsageError(
            f"{alone} is an experiment of several runs", "compare two folders of this folder: each is a run"
        )
    runs = folders_of(folders)
    if len(runs) < 2:
        raise UsageError(
            "there are fewer than two runs to compare",
            "name two run directories, or the folder of interleaved runs",
        )
    names = _names(runs)
    sides: list[ComparedRun] = []
    first: dict[object, str] = {}
    apart = given_apart(runs)
    for run, name, machines in zip(runs, names, _machines(runs), strict=True):
        side, identity = _load(run, name, apart.get(run, {}), machines)
        if (twice := first.setdefault(identity, name)) != name:
            raise UsageError(f"{twice} and {name} are the same run", "compare this run with another run")
        sides.append(side)
    if are_publishers(sides):
        sides = [replace(side, primary=(AVG_TX, *side.primary)) for side in sides]
    return sides, took_turns(runs)


def are_publishers(sides: Sequence[ComparedRun]) -> bool:
    """Whether the runs compare publishers at rate ``max``: only settings of publishers differ, or none has subscribers.

    Their result is the rate sent. That received may be limited by the subscribers, which are equal.
    """
    if any(AVG_RX not in side.primary[:1] for side in sides):
        return False
    rows = [row for side in sides for row in side.rows]
    if rows and not any(row.settings.get(CLIENTS) for row in rows):
        return True
    keys = {key for side in sides for key in side.apart}
    return bool(keys) and len({side.system for side in sides}) == 1 and all(_obeyed(sides[0].system, k) for k in keys)


def _obeyed(system: str, key: str) -> bool:
    """Whether only publishers obey a dotted key."""
    table = key.rpartition(".")[0]
    spec = plugins.systems().get(system)
    own = field_of(key, own_tables(spec).get(table)) if spec else None
    found = own or field_of(key, shared_table(table))
    return found is not None and setting_of(found).of_publishers


def _machines(runs: Sequence[Path]) -> list[Mapping[str, object]]:
    """The compared facts of the machines of each run; none if a run has no record of them."""
    records = []
    for run in runs:
        with RunStore.open(run) as store:
            records.append(store.machines())
    return compared_facts(records) if all(records) else [{} for _ in runs]


def _names(runs: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that distinguish the runs.

    Raises:
        UsageError: a run is named twice.
    """
    resolved = [run.resolve() for run in runs]
    if len(set(resolved)) < len(resolved):
        twice = next(run for run in resolved if resolved.count(run) > 1)
        raise UsageError(f"{twice} is named twice", "name two different runs")
    longest = max(len(run.parts) for run in resolved)
    for length in range(1, longest + 1):
        names = ["/".join(run.parts[-length:]) for run in resolved]
        if len(set(names)) == len(names):
            return names
    return [str(run) for run in resolved]


def _guarantees(resolved: ResolvedScenario) -> str:
    """What the system acknowledges and keeps, with each combination of settings that its rows have."""
    scenario = resolved.scenario
    varied = [[(name, value) for value in scenario.values_of(name)] for name in scenario.sweep.crossed]
    of_rows = (with_values(scenario.settings, dict(values)) for values in product(*varied))
    texts = {resolved.system.delivery(scenario, settings).guarantees for settings in of_rows}
    return " or ".join(sorted(filter(None, texts)))


def _load(run: Path, name: str, apart: Mapping[str, str], machines: Mapping[str, object]) -> tuple[ComparedRun, object]:
    """A side, and an identity of its run that stays the same when the run directory is copied."""
    with RunStore.open(run) as store:
        metadata, results, events = store.metadata(), store.results(), store.events()
        with store.reading():
            resolved = stored_scenario(metadata["scenario"])
            scenario = resolved.scenario
            setup = stored_setup(store, results)
            rows, repeats = _played(run, resolved, results)
        slices = slices_of(store, results, scenario.sweep.varied)
        system_facts = {e.data.fields["name"]: e.data.fields["value"] for e in events if e.kind == SystemFact.kind}
        # Addresses and names that each run makes for itself always differ, and their differences mean nothing.
        its_own = str(metadata.get("name") or run.name)
        facts = {name: text for name, text in system_facts.items() if its_own not in text and not _ADDRESS.search(text)}
        began = tuple(store.window_ns(result.epoch) for result in results[:1])
    side = ComparedRun(
        name=name,
        directory=str(run),
        system=scenario.system,
        rows=[_row(scenario, row, rows, its, slices) for row, its in zip(rows, repeats, strict=True)],
        columns=resolved.columns,
        searches=texts_of(scenario).searched,
        varied=scenario.sweep.varied,
        primary=rows_of(scenario).primary,
        facts=_facts(metadata, scenario, facts, machines),
        apart=apart,
        guarantees=_guarantees(resolved),
        setup=setup,
    )
    return side, (metadata.get("began"), metadata.get("name"), began) if results else run.resolve()


def _played(run: Path, resolved: ResolvedScenario, results: list[StepResult]) -> tuple[list[Row], list[list[Row]]]:
    """The rows of a run, and the rows of each row's repeats."""
    sweep = resolved.sweep
    try:
        return sweep.rows(results), sweep.repeats(results)
    except ValueError as e:
        raise RunDirectoryError(
            f"the steps of {run} are not those that its scenario asks for: {e}",
            "compare the run with the version of Hydra that made it",
        ) from e


def _row(
    scenario: Scenario, row: Row, rows: Sequence[Row], repeats: Sequence[Row], slices: SlicesOfRows
) -> ComparedRow:
    settings: dict[str, Figure] = {name: value_of(scenario.settings, name) for name in names_of(scenario.settings)}
    for name in scenario.sweep.decided:
        del settings[name]
    settings |= {name: row.get(name) for name in scenario.sweep.varied}
    settings |= {
        POINT: row.get(POINT),
        CLIENTS: row.get(CLIENTS),
        PUBLISHERS: row.get(PUBLISHERS) or scenario.publishers,
    }
    notes = [str(warning) for warning in warnings_of(row, scenario, rows)]
    its_slices = slices.get(key_of_row(row, scenario.sweep.varied), [])
    return ComparedRow(settings, [_repeat(each) for each in repeats], row, notes, why_not_clean(row), its_slices)


def _repeat(row: Row) -> RowRepeat:
    if row[STATUS] != "ok":
        reason = str(row.get(REASON) or row[STATUS])
        return RowRepeat({}, problem=reason, passed_over=row[STATUS] == "partial" or row.get(SKIPPED_BY) == USER)
    return RowRepeat(row, frozenset(name for name in row if at_most(row, name) is not None))


def _facts(
    metadata: Mapping[str, Any], scenario: Scenario, system: Mapping[str, str], machines: Mapping[str, object]
) -> dict[str, object]:
    """Facts that can differ between runs: scenario, machines, and the versions that clients and servers reported."""
    settings = {**msgspec.to_builtins(scenario), "sweep": plan_of(scenario).facts}
    for table in ("settings", "native"):
        # A scenario file has the system's own keys in the same table.
        own = settings[table].pop("system")
        settings[table] |= own
    libraries: dict[str, str] = {}
    for client in metadata.get(CLIENTS_KEY, ()):
        versions = ", ".join(f"{name} {version}" for name, version in client["versions"].items())
        before = libraries.get(client["role"])
        libraries[client["role"]] = f"{before}; {versions}" if before and versions not in before else versions
    return {
        **_without(settings),
        "libraries": libraries,
        "servers": dict(system),
        "machines": machines,
        **{key: metadata.get(key) for key in ("host", "versions", "limits", "master", "cluster")},
        "ended": metadata.get(ENDED_KEY) or "unfinished",
    }


def _without(table: Mapping[str, Any], key: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in table.items():
        dotted = f"{key}.{name}" if key else name
        if _NOT_COMPARED.fullmatch(dotted):
            continue
        found[name] = _without(value, dotted) if isinstance(value, Mapping) else value
    return found


SlicesOfRows = Mapping[tuple[Figure, ...], list[list[RowSlice]]]
"""The slices of each step, by the key of its row (:func:`key_of_row`)."""


def slices_of(store: RunStore, results: Sequence[StepResult], varied: Sequence[str]) -> SlicesOfRows:
    """The slices of all steps whose time series was stored, within the window of the step.

    Args:
        store: the store of the run.
        results: the steps of the run.
        varied: the settings that vary between the rows.
    """
    found: dict[tuple[Figure, ...], list[list[RowSlice]]] = {}
    kept = set(store.time_series_epochs())
    for result in results:
        plan = result.plan
        course = store.course(result.epoch) if result.status == "ok" and result.epoch in kept else None
        if course is not None:
            key = (plan.point or None, plan.clients, plan.publishers, *(plan.value(n) for n in varied))
            _, facts, intervals = course
            within = [_slice(facts, interval) for interval in intervals if interval.begin_s < facts.duration_s]
            found.setdefault(key, []).append(within)
    return found


def key_of_row(row: Row, varied: Sequence[str]) -> tuple[Figure, ...]:
    """The key of a row in the result of :func:`slices_of`."""
    return (row.get(POINT) or None, row[CLIENTS], row.get(PUBLISHERS), *(row.get(name) for name in varied))


def _slice(facts: TimeSeriesFacts, interval: TimeSeriesInterval) -> RowSlice:
    width_s = min(facts.interval_s, facts.duration_s - interval.begin_s)
    return RowSlice(interval.begin_s, interval.received / width_s, latency_of_span([interval]).p99_us)
