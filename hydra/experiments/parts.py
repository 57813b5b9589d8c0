"""The parts of an experiment, each a scenario of listed points, made from its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hydra.config.experiment_file import WARM_UP, ExperimentFile, PartEntry, scenario_name
from hydra.errors import ConfigError
from hydra.experiments.expression import Scope, combinations, parsed, text_of, value_of
from hydra.experiments.scope import scope_of
from hydra.system.experiment import ExperimentOptions, ExperimentPart, PartResult

_STEP_S = 60.0
"""The duration of a point that sets none."""


def parts_of(file: ExperimentFile, order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentPart]:
    """All parts that are known after those that are done."""
    scope = scope_of(file, order, done)
    return [
        _part(file, entry, {**scope, **chosen})
        for entry in file.parts
        if not entry.needs or parsed(entry.needs).value(scope) is not None
        for chosen in combinations(entry.each, scope)
    ]


def next_part(file: ExperimentFile, order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentPart | None:
    """The first part that is not done yet; None if all are."""
    finished = {each.part.name for each in done}
    return next((part for part in parts_of(file, order, done) if part.name not in finished), None)


def _part(file: ExperimentFile, entry: PartEntry, scope: Scope) -> ExperimentPart:
    # One publisher by default: otherwise a point would have as many as the point with the most.
    settings = {"publishers": 1, **file.settings, **entry.settings}
    points = [
        _point({**settings, **point}, {**scope, **chosen})
        for series in entry.series
        for chosen in combinations(series.each, scope)
        for point in series.points
    ]
    name = text_of(entry.name, scope)
    if not points or "/" in name or name.startswith("."):
        refusal = f"the name of a part is that of its folder, not {name!r}" if points else f"part {name} has no points"
        raise ConfigError(refusal, "correct the experiment's file")
    names = [scenario_name(str(point["name"])) for point in points]
    described = {**scope, "scenarios": ", ".join(dict.fromkeys(name for name in names if name != WARM_UP))}
    own = value_of({**file.scenario, **entry.scenario}, scope)
    scenario = {
        "system": file.system,
        "table": "fixed",
        "description": f"{file.source}: {text_of(entry.about, described)}",
        "publishers": max(map(_publishers, points)),
        "warmup_s": 0.0,
        "sweep": {"duration_s": _STEP_S, "points": points},
    }
    return ExperimentPart(name, {**scenario, **(own if isinstance(own, Mapping) else {})})


def _publishers(point: Mapping[str, object]) -> int:
    count = point.get("publishers", 1)
    if not isinstance(count, int):
        raise ConfigError(f"publishers of {point['name']} must be a whole number, not {count!r}", "correct the file")
    return count


def _point(settings: Mapping[str, object], scope: Scope) -> dict[str, object]:
    """A point; its expressions can name its other settings, those that are values and those before."""
    is_written = {name: isinstance(value, str) and value.startswith("=") for name, value in settings.items()}
    point = {name: value for name, value in settings.items() if not is_written[name]}
    point["name"] = text_of(str(settings["name"]), scope)
    for name, written in settings.items():
        if is_written[name]:
            point[name] = value_of(written, {**scope, **point})
    return {name: point[name] for name in settings if point[name] is not None}
