"""Measures several runs with one command, their repeats in turn; one folder holds all of them.

A turn is one repeat of one part of the sweep (a client count, or a point); its processes end with it. All runs take a
turn before the next turn begins: repeats of the same number are minutes apart, so slow changes of the machine
affect all of them alike, and each has its own client processes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final, NoReturn

from hydra.analysis.compared_figures import measured_columns
from hydra.analysis.compared_runs import orders
from hydra.cli.chosen_clients import CLIENT, with_default_client
from hydra.cli.compared_sides import COMPARE, ComparedSide
from hydra.cli.measurement import Measurement, Printout, carry_out
from hydra.config.cluster import load_cluster
from hydra.config.resolved_scenario import ResolvedCommand, ResolvedScenario
from hydra.config.scenario import refuse_unused, resolve
from hydra.errors import (
    EXIT_GOOD,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    HydraError,
    RefusedKeyError,
    RunDirectoryError,
    UsageError,
)
from hydra.events.value_formatting import duration
from hydra.measure.step_result import StepResult
from hydra.options.engine_choice import SelectedEngine, choose
from hydra.options.shared_flags import shown
from hydra.report import comparison_report
from hydra.report.comparison_report import compare_runs
from hydra.report.fail_conditions import columns, not_clean_lines, parse
from hydra.report.table import fitted, terminal_width
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.run_metadata import command_record, continued, given_again, hidden_keys, leaves, refuse_hidden
from hydra.run.runner import code_of
from hydra.store import interleaved_record
from hydra.store.database import DATABASE, FINISHED, INTERRUPTED, RunStore
from hydra.store.interleaved_record import InterleavedRecord, TurnRecord
from hydra.store.redaction import Redactor
from hydra.store.run_folders import fresh_folder, locked
from hydra.sweep import RepeatTurn

REPEAT: Final = "sweep.repeat"
REPEATS: Final = 10
"""The default number of repeats: it finds a difference of 10 % in nine of ten comparisons (docs/compare.md)."""


def run_interleaved(
    sides: Mapping[str, ComparedSide], replaced: Mapping[str, object], flags: Mapping[str, Any], resumed: Path | None
) -> NoReturn:
    """Measures runs in turns, prints how they compare, and exits with the run's code.

    Args:
        sides: each run by its folder; none: those of the folder that is resumed.
        replaced: values that the command replaces in all scenarios, by dotted key.
        flags: the flags of ``options.run_flags``, ``options.comparing_flags`` and the engines.
        resumed: the folder that is resumed; None: a new one is made.
    """
    before = _before(resumed, sides, flags) if resumed else None
    if before:
        replaced, sides = as_begun(before, sides, replaced)
    replaced, sides = _repeated(replaced, sides)
    folder = resumed or flags["out"]
    runs = {name: _load(side, replaced) for name, side in sides.items()}
    if resumed:
        loaded = list(runs.values())
        runs = {name: _load(side, replaced, resumed / name, loaded) for name, side in sides.items()}
    else:
        for name, side in sides.items():
            with _naming_flags(side):  # compared commands have their own settings, and the others share them
                refuse_unused([runs[name]] if side.command else list(runs.values()), side.scenario)
    check_rows(runs, sides)
    engine = choose(flags["master"], flags["config"], flags)
    notes: Sequence[str] = ()
    if not resumed:
        sides, notes = _with_default_clients(sides, runs, replaced, engine)
        runs = {name: _load(side, replaced) for name, side in sides.items()}
    command = ResolvedCommand(
        "comparison", runs, replaced, shown(flags), sides={name: asdict(side) for name, side in sides.items()}
    )
    measurement = InterleavedRuns(command)
    folder = folder or fresh_folder(measurement.command.first.scenario.name)
    carry_out(
        measurement,
        engine,
        load_cluster(flags["config"]),
        folder,
        resumed=before is not None,
        note="\n".join(notes),
    )


def _with_default_clients(
    sides: Mapping[str, ComparedSide],
    runs: Mapping[str, ResolvedScenario],
    replaced: Mapping[str, object],
    engine: SelectedEngine,
) -> tuple[Mapping[str, ComparedSide], Sequence[str]]:
    """The compared runs with their default clients, the same for all values of a setting; why they are not native.

    Args:
        sides: each run by its folder.
        runs: the scenarios of the runs.
        replaced: values that the command replaces in all scenarios, by dotted key.
        engine: the engine of the groups.
    """
    chosen: dict[str, ComparedSide] = {}
    notes: list[str] = []
    for name, side in sides.items():
        given = {**replaced, **side.replaced}
        _, found, note = with_default_client(side.scenario, runs[name], given, engine)
        notes += [note] if note and note not in notes else []
        own = {CLIENT: found[CLIENT]} if CLIENT in found and CLIENT not in given else {}
        if not own and not side.command and CLIENT not in given:
            return sides, notes
        chosen[name] = replace(side, replaced={**side.replaced, **own})
    return chosen, notes


def check_rows(runs: Mapping[str, ResolvedScenario], sides: Mapping[str, ComparedSide]) -> None:
    """Rejects runs that have no row in common, before anything is measured.

    Raises:
        UsageError: the text names the difference.
    """
    for name, side in sides.items():
        varied = runs[name].scenario.sweep.varied
        for key in side.replaced:
            if key.startswith("settings.") and key.rpartition(".")[2] in varied and not side.command:
                what = f"{COMPARE}: the rows of {side.scenario} give {key} themselves"
                raise UsageError(what, "remove it from the rows, or compare commands: hydra compare --run")
    first, *others = runs
    for other in others:
        for name in ("clients", "publishers", "rate", "message_size"):
            values = [_row_values(runs[each], name) for each in (first, other)]
            given = [key.rpartition(".")[2] for key in (*sides[first].replaced, *sides[other].replaced)]
            compared = runs[first].system == runs[other].system and name in given and name != "clients"
            if values[0] != values[1] and not compared:
                rows = [f"{each} {', '.join(map(str, of))}" for each, of in zip((first, other), values, strict=True)]
                what = f"the runs have different rows: {name}: {'; '.join(rows)}"
                raise UsageError(what, f"give all of them the same {name}")
        if runs[first].sweep.turns != runs[other].sweep.turns:
            raise UsageError(f"{first} and {other} have different numbers of rows", "give all the same rows")


def _row_values(resolved: ResolvedScenario, name: str) -> Sequence[object]:
    """What the rows of a scenario have of this name."""
    sizes = resolved.scenario.sizes
    if name in ("clients", "publishers"):
        return sorted({size[name == "clients"] for size in sizes})
    return list(() if name in resolved.scenario.sweep.decided else resolved.scenario.values_of(name))


class InterleavedRuns(Measurement):
    """The measurement of several runs, which compares them."""

    def __init__(self, command: ResolvedCommand) -> None:
        super().__init__(command)
        for text in command.flags["fail_if"]:
            parse(text, columns(command.first.scenario), measured_columns(command.first.columns))

    def check_new(self, out: Path) -> None:
        """Also rejects a folder that already holds compared runs."""
        super().check_new(out)
        if interleaved_record.is_interleaved(out):
            raise RunDirectoryError(f"{out} already holds runs", "continue it with --resume, or choose another --out")

    def measure(self, request: RunRequest) -> Printout:
        """Starts or resumes all runs, and compares them."""
        command, folder = self.command, request.out
        for each in command.scenarios.values():
            launcher.system_for(each, is_local=request.engine.spec.is_local).check()
        record = interleaved_record.read_record(folder) if request.resume else self._record(request)
        expected_s = sum(request.expected_s(each, max(len(each.sweep.turns), 1)) for each in command.scenarios.values())
        names = ", ".join(command.scenarios)
        what = names if record.commands else f"{record.scenario} with {names}"
        request.show(f"{what} into {folder}: about {duration(expected_s)}")
        if request.note:
            request.show(request.note)
        request.confirm(expected_s)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            interleaved_record.write_record(folder, record)
            code = measure(request, command.scenarios, record)
        text, held, not_clean = "", list[str](), list[str]()
        try:
            compared, held = compare_runs([folder], "", command.flags["fail_if"])
        except HydraError as e:
            request.show(f"there is nothing to compare yet: {e}")
            code = code or EXIT_INCOMPLETE
        else:
            not_clean = [
                f"{side.name}, {line}"
                for side in compared.sides
                for line in not_clean_lines([dict(row.shown) for row in side.rows])
            ]
            if command.flags["as_json"]:
                text = comparison_report.json_text(compared)
            else:
                text = fitted(comparison_report.document(compared), terminal_width())
        goes_on = f"; continue with --resume {quote(str(folder))}" if code == EXIT_INTERRUPTED else ""
        return Printout(text.removesuffix("\n"), code, held, not_clean, f"all results are in {folder}{goes_on}")

    def _record(self, request: RunRequest) -> InterleavedRecord:
        """The record of runs that begin."""
        command = self.command
        redactor = Redactor.of_runs(command.scenarios.values(), *request.engine.secrets())
        return InterleavedRecord(
            scenario=", ".join(dict.fromkeys(each.scenario.name for each in command.scenarios.values())),
            sides={
                name: {key: redactor.value(value, key) for key, value in side["replaced"].items()}
                for name, side in command.sides.items()
            },
            scenarios={name: side["scenario"] for name, side in command.sides.items() if side["command"]},
            commands={
                name: redactor.command(side["command"]) for name, side in command.sides.items() if side["command"]
            },
            interleaved=command.flags["interleave"] is not False,
            seed=secrets.randbelow(2**31),
            **command_record(request.command_line, command.replaced, redactor),
        )


def _before(resumed: Path, sides: Mapping[str, ComparedSide], flags: Mapping[str, Any]) -> InterleavedRecord:
    """The record of the runs that are resumed.

    Raises:
        RunDirectoryError: the folder holds other runs than the command asks for.
    """
    if not interleaved_record.is_interleaved(resumed):
        raise RunDirectoryError(f"{resumed} holds no runs that were compared", f"leave out {COMPARE}")
    record = interleaved_record.read_record(resumed)
    if bool(record.commands) != bool(flags.get("commands") is not None):
        how = f"hydra compare --resume {resumed}" if record.commands else "the command that began it, and --resume"
        raise RunDirectoryError(f"{resumed} was begun by another command", f"continue it with {how}")
    if len(sides) > 1 and list(sides) != list(record.sides):
        raise RunDirectoryError(f"{resumed} compares {', '.join(record.sides)}", f"leave out {COMPARE}")
    if flags["interleave"] not in (None, record.interleaved):
        raise RunDirectoryError(
            f"{resumed} was started with {'--interleave' if record.interleaved else '--no-interleave'} and keeps it",
            "leave out --interleave and --no-interleave",
        )
    return record


def as_begun(
    record: InterleavedRecord, sides: Mapping[str, ComparedSide], replaced: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, ComparedSide]]:
    """The keys that all resumed runs replace, and the runs; the user gives their secrets again.

    Args:
        record: the stored record.
        sides: the runs that the command names; their values are used for secrets only.
        replaced: what the command replaces in all runs. The secret of a run that is among it is not for other runs.

    Raises:
        ConfigError: a secret is not given again.
    """
    scenario = next((side.scenario for side in sides.values()), "")
    of_runs = {key for own in record.sides.values() for key in hidden_keys(own)}
    common = {
        **given_again(record.overrides, replaced),
        **{
            key: value
            for key, value in replaced.items()
            if key in record.overrides or not of_runs.issuperset(each for each, _ in leaves({key: value}))
        },
    }
    found: dict[str, ComparedSide] = {}
    for name, own in record.sides.items():
        again = given_again(own, {**replaced, **(sides[name].replaced if name in sides else {})})
        refuse_hidden({**common, **again})
        found[name] = ComparedSide(record.scenarios.get(name, scenario), again, record.commands.get(name, ""))
    return common, found


def _repeated(
    replaced: Mapping[str, object], sides: Mapping[str, ComparedSide]
) -> tuple[Mapping[str, object], dict[str, ComparedSide]]:
    """The replaced keys with one number of repeats for all runs: the default, unless the user or a scenario sets one.

    Raises:
        UsageError: the user asks for one repeat, or for different numbers.
    """
    repeats = {side.replaced[REPEAT] for side in sides.values() if REPEAT in side.replaced}
    own = {
        name: replace(side, replaced={key: value for key, value in side.replaced.items() if key != REPEAT})
        for name, side in sides.items()
    }
    if len(repeats) > 1:
        raise UsageError("the commands have different numbers of repeats", "write --repeat after hydra compare")
    replaced = {**({REPEAT: repeats.pop()} if repeats else {}), **replaced}
    found = {_load(side, replaced).scenario.sweep.repeat for side in own.values()}
    if found == {1} and REPEAT in replaced:
        raise UsageError(
            "one repeat of each run does not show the spread",
            f"leave out --repeat (then {REPEATS} repeats), or give a larger number",
        )
    if len(found) > 1 or found == {1}:
        replaced = {**replaced, REPEAT: max(found - {1}, default=REPEATS)}
    return replaced, own


def _load(
    side: ComparedSide,
    replaced: Mapping[str, object],
    directory: Path | None = None,
    others: Sequence[ResolvedScenario] = (),
) -> ResolvedScenario:
    load, replaced = partial(resolve, side.scenario, alone=False), {**replaced, **side.replaced}
    with _naming_flags(side):
        if directory and (directory / DATABASE).is_file():
            return continued(directory, load, replaced, others)
        return load(replaced)


@contextmanager
def _naming_flags(side: ComparedSide) -> Iterator[None]:
    """Errors in a key that a run replaces name the flag that gave it."""
    try:
        yield
    except RefusedKeyError as e:
        if not any(e.key == key or e.key.startswith(f"{key}.") for key in side.replaced):
            raise
        raise e.naming(f"{'--run' if side.command else COMPARE}: {e.key}", {}) from e


def measure(request: RunRequest, scenarios: Mapping[str, ResolvedScenario], record: InterleavedRecord) -> int:
    """Measures all turns that were not measured yet, and returns the exit code.

    Ctrl-C ends the runs; everything that was measured is kept.

    Args:
        request: the request for all runs: their folder, and the keys that all of them replace.
        scenarios: the scenario of each run, by the run's name.
        record: the stored record of the runs.

    Raises:
        HydraError: the runs could not continue; what was measured before is kept.
    """
    again = not record.interleaved
    coming = {
        name: _coming(request.out / name, resolved, again=again) if request.resume else _next_turn(resolved, [])
        for name, resolved in scenarios.items()
    }
    codes: dict[str, int] = {}
    ended, error = "failed", ""
    record = replace(record, ended="", error="")
    turns = list(record.turns)
    try:
        for block, turn, name in schedule(record, scenarios):
            if coming[name] is None or turn not in (None, coming[name]):
                continue  # the turn is done already, or its part does not fit
            if turn is not None:
                began = datetime.now(UTC).isoformat(timespec="seconds")
                turns.append(TurnRecord(block, turn.part, turn.repeat, name, began))
                interleaved_record.write_record(request.out, replace(record, turns=turns))
            label = f"block {block + 1}, {name}"
            request.show(label)
            resolved, part = scenarios[name], request.part(name, f"{label}: ")
            overrides, others = {**request.overrides, **record.sides[name]}, list(scenarios.values())
            end = launcher.launch(resolved, replace(part, overrides=overrides, turn=turn, others=others))
            codes[name], coming[name] = end.code, _next_turn(resolved, end.results)
            if codes[name] == EXIT_INTERRUPTED:
                ended = INTERRUPTED
                break
        else:
            ended = FINISHED
    except KeyboardInterrupt:
        ended = INTERRUPTED
        return EXIT_INTERRUPTED
    except HydraError as e:
        error = str(e)
        raise
    finally:
        interleaved_record.write_record(request.out, replace(record, turns=turns, ended=ended, error=error))
    return max(codes.get(name) or _code_of(request.out / name, resolved) for name, resolved in scenarios.items())


def _code_of(folder: Path, resolved: ResolvedScenario) -> int:
    """The exit code of a run's stored rows, which earlier commands may have measured."""
    if not (folder / DATABASE).is_file():
        return EXIT_GOOD
    with RunStore.open(folder) as store:
        return code_of(resolved.sweep.rows(store.results()))


def schedule(
    record: InterleavedRecord, scenarios: Mapping[str, ResolvedScenario]
) -> Iterator[tuple[int, RepeatTurn | None, str]]:
    """(block, turn, run) in the order of measurement; a turn of None stands for all that the run has to do."""
    names = list(scenarios)
    sweep = scenarios[names[0]].sweep
    if not record.interleaved or not sweep.turns:
        yield from ((block, None, name) for block, name in enumerate(names))
        return
    parts = {turn.part for turn in sweep.turns}
    repeats = len(sweep.turns) // len(parts)
    of_parts = {part: orders(len(names), repeats, record.seed + part) for part in parts}
    for block, turn in enumerate(sweep.turns):
        for index in of_parts[turn.part][turn.repeat]:
            yield block, turn, names[index]


def _coming(folder: Path, resolved: ResolvedScenario, *, again: bool) -> RepeatTurn | None:
    """The next turn of a run that is resumed.

    Args:
        folder: the run directory.
        resolved: the scenario of the run.
        again: whether failed rows are retried; False for interleaved runs: a repeat measured after its turn is no pair
            of the other runs' repeats.
    """
    if not (folder / DATABASE).is_file():
        return _next_turn(resolved, [])
    with RunStore.open(folder, writable=True) as store:
        if again:
            launcher.offer_again(resolved, store)
        return _next_turn(resolved, store.results())


def _next_turn(resolved: ResolvedScenario, results: Sequence[StepResult]) -> RepeatTurn | None:
    return resolved.sweep.turn(results)
