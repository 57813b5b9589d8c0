"""Measures several implementations with one command, their repeats in turn; one folder holds a run for each.

A turn is one repeat of one part of the sweep (a client count, or a point); its processes end with it. All
implementations take a turn before the next turn begins: repeats of the same number are minutes apart, so that slow
changes of the machine affect all of them alike, and each has its own client processes.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final, NoReturn

from hydra.analysis.compared_figures import measured_columns
from hydra.analysis.compared_runs import orders
from hydra.cli.measurement import Measurement, Printout, carry_out
from hydra.config.cluster import load_cluster
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario, resolve
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, HydraError, RunDirectoryError, UsageError
from hydra.events.value_formatting import duration
from hydra.model import StepResult
from hydra.options import shown
from hydra.options.engine_choice import choose
from hydra.report import comparison_report
from hydra.report.comparison_report import compare_runs
from hydra.report.fail_conditions import columns, not_clean_lines, parse
from hydra.report.table import fitted, terminal_width
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.remote_command import ResolvedCommand
from hydra.run.run_metadata import asked, continued, refuse_hidden
from hydra.run.runner import code_of
from hydra.store import interleaved_record
from hydra.store.database import DATABASE, RunStore
from hydra.store.interleaved_record import InterleavedRecord, TurnRecord
from hydra.store.redaction import Redactor
from hydra.store.run_folders import fresh_folder, locked
from hydra.sweep import RepeatTurn

CLIENT: Final = "client"
"""The key of a scenario that names the implementation of its clients."""
REPEAT: Final = "sweep.repeat"
REPEATS: Final = 10
"""The default number of repeats: it finds a difference of 10 % in nine of ten comparisons (docs/compare.md)."""


def run_interleaved(
    scenario: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any], resumed: Path | None
) -> NoReturn:
    """Runs a scenario with several implementations, prints how they compare, and exits with the run's code.

    Args:
        scenario: the scenario's name or path.
        replaced: values that the command replaces in the scenario, by dotted key.
        flags: the flags of ``options.run_flags``, ``options.comparing_flags`` and the engines.
        resumed: the folder that is resumed; None: a new one is made.
    """
    before = _before(resumed, flags) if resumed else None
    if before:
        replaced = {**before.overrides, **replaced}
        refuse_hidden(replaced)
    sides = before.sides if before else _sides(str(flags["compared"]), replaced)
    replaced = _repeated(scenario, replaced, next(iter(sides.values())))
    folder = resumed or flags["out"]
    runs = {name: _load(scenario, {**replaced, **own}, folder and folder / name) for name, own in sides.items()}
    measurement = InterleavedRuns(ResolvedCommand("comparison", runs, replaced, shown(flags)))
    folder = folder or fresh_folder(measurement.command.first.scenario.name)
    engine = choose(flags["master"], flags["config"], flags)
    carry_out(measurement, engine, load_cluster(flags["config"]), folder, resumed=before is not None)


class InterleavedRuns(Measurement):
    """The measurement of a run of each implementation, which compares the runs."""

    def __init__(self, command: ResolvedCommand) -> None:
        super().__init__(command)
        for text in command.flags["fail_if"]:
            parse(text, columns(command.first.scenario), measured_columns(command.first.columns))

    def check_new(self, out: Path) -> None:
        """Also rejects a folder that already holds runs of several implementations."""
        super().check_new(out)
        if interleaved_record.is_interleaved(out):
            raise RunDirectoryError(f"{out} already holds runs", "continue it with --resume, or choose another --out")

    def measure(self, request: RunRequest) -> Printout:
        """Starts or resumes all runs, and compares them."""
        command, folder = self.command, request.out
        for each in command.scenarios.values():
            launcher.system_for(each, is_local=request.engine.spec.is_local).check()
        record = interleaved_record.read_record(folder) if request.resume else self._record(request)
        expected_s = sum(resolved.sweep.expected_s() for resolved in command.scenarios.values())
        names = ", ".join(command.scenarios)
        request.say(f"{record.scenario} with {names} into {folder}: more than {duration(expected_s)}")
        request.confirm(expected_s)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            interleaved_record.write_record(folder, record)
            code = measure(request, command.scenarios, record)
        text, held, not_clean = "", list[str](), list[str]()
        try:
            compared, held = compare_runs([folder], "", command.flags["fail_if"])
        except HydraError as e:
            request.say(f"there is nothing to compare yet: {e}")
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
        redactor = Redactor.of_run(command.first, *request.engine.secrets())
        return InterleavedRecord(
            scenario=command.first.scenario.name,
            sides={name: _own(resolved) for name, resolved in command.scenarios.items()},
            interleaved=command.flags["interleave"] is not False,
            seed=secrets.randbelow(2**31),
            **asked(request.command_line, command.replaced, redactor),
        )


def _before(resumed: Path, flags: Mapping[str, Any]) -> InterleavedRecord:
    """The record of the runs that are resumed.

    Raises:
        RunDirectoryError: the folder holds other runs than the flags ask for.
    """
    if not interleaved_record.is_interleaved(resumed):
        raise RunDirectoryError(
            f"{resumed} holds no runs of several implementations", "leave out --compare-implementations"
        )
    record = interleaved_record.read_record(resumed)
    if flags["compared"] is not None and list(_sides(str(flags["compared"]), {})) != list(record.sides):
        raise RunDirectoryError(f"{resumed} compares {', '.join(record.sides)}", "leave out --compare-implementations")
    if flags["interleave"] not in (None, record.interleaved):
        raise RunDirectoryError(
            f"{resumed} was started with {'--interleave' if record.interleaved else '--no-interleave'} and keeps it",
            "leave out --interleave and --no-interleave",
        )
    return record


def _sides(names: str, replaced: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The keys that each run replaces, by the run's folder; a repeated implementation shows the effect of chance.

    Raises:
        UsageError: fewer than two implementations are named.
    """
    if CLIENT in replaced:
        raise UsageError(
            "--implementation and --compare-implementations both name implementations", "leave out --implementation"
        )
    found: dict[str, dict[str, Any]] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        nth = sum(own[CLIENT] == name for own in found.values()) + 1
        found[name if nth == 1 else f"{name}-{nth}"] = {CLIENT: name}
    if len(found) < 2:
        raise UsageError(
            f"--compare-implementations {names} names fewer than two", "name them with commas in between: A,B"
        )
    return found


def _repeated(scenario: str | Path, replaced: Mapping[str, object], own: Mapping[str, object]) -> Mapping[str, object]:
    """The replaced keys with the default number of repeats, unless the user or the scenario sets one.

    Raises:
        UsageError: the user asks for one repeat.
    """
    repeat = load_scenario(scenario, {**replaced, **own}).sweep.repeat
    if repeat == 1 and REPEAT in replaced:
        raise UsageError(
            "one repeat of each implementation does not show the spread",
            f"leave out --repeat ({REPEATS}), or raise it",
        )
    return replaced if repeat > 1 else {**replaced, REPEAT: REPEATS}


def _load(scenario: str | Path, replaced: Mapping[str, object], directory: Path | None) -> ResolvedScenario:
    load = partial(resolve, scenario)
    if directory and (directory / DATABASE).is_file():
        return continued(directory, load, replaced)
    return load(replaced)


def _own(resolved: ResolvedScenario) -> dict[str, Any]:
    """The keys that one run replaces in the common scenario."""
    return {CLIENT: resolved.scenario.client}


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
    record = dataclasses.replace(record, ended="", error="")
    turns = list(record.turns)
    try:
        for block, turn, name in schedule(record, scenarios):
            if coming[name] is None or turn not in (None, coming[name]):
                continue  # the turn is done already, or its part does not fit
            if turn is not None:
                began = datetime.now(UTC).isoformat(timespec="seconds")
                turns.append(TurnRecord(block, turn.part, turn.repeat, name, began))
                interleaved_record.write_record(request.out, dataclasses.replace(record, turns=turns))
            label = f"block {block + 1}, {name}"
            request.say(label)
            resolved, part = scenarios[name], request.part(name, f"{label}: ")
            overrides = {**request.overrides, **_own(resolved)}
            end = launcher.launch(resolved, dataclasses.replace(part, overrides=overrides, turn=turn))
            codes[name], coming[name] = end.code, _next_turn(resolved, end.results)
            if codes[name] == EXIT_INTERRUPTED:
                ended = "interrupted"
                break
        else:
            ended = "finished"
    except KeyboardInterrupt:
        ended = "interrupted"
        return EXIT_INTERRUPTED
    except HydraError as e:
        error = str(e)
        raise
    finally:
        interleaved_record.write_record(request.out, dataclasses.replace(record, turns=turns, ended=ended, error=error))
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
