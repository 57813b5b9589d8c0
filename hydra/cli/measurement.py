"""The common part of commands that measure, after the input is resolved: measure, print, and exit."""

from __future__ import annotations

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import NoReturn

import click

from hydra.cli.error_exit import drop, failed_if
from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, HydraError
from hydra.measure.slo import shortest_s
from hydra.model import ClusterSpec, Scenario
from hydra.options.engine_choice import SelectedEngine
from hydra.report import slo_text
from hydra.report.fail_conditions import columns, conditions_met, not_clean_lines, parse
from hydra.report.table import fitted, terminal_width
from hydra.report.tables import RunTables
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.remote_command import ResolvedCommand, run_elsewhere
from hydra.run.runner import RunEnd
from hydra.store.database import RunStore
from hydra.store.redaction import typed
from hydra.store.run_folders import check_folder, write_whole
from hydra.store.slo_results import answer_of
from hydra.sweep import Row
from hydra.sweep.cleanness import why_not_clean


@dataclass(frozen=True, slots=True)
class Printout:
    """What a command prints after it has measured, and its exit code.

    Attributes:
        text: the text for standard output; "" for none.
        code: the exit code before ``--fail-if`` and ``--strict`` are applied.
        held: a line for each ``--fail-if`` condition that held.
        not_clean: a line for each row that is not clean.
        last: the last line printed, left out with ``--quiet``; "" for none.
    """

    text: str
    code: int
    held: Sequence[str] = ()
    not_clean: Sequence[str] = ()
    last: str = ""


class Measurement(ABC):
    """What one kind of command measures; the constructor checks flags that are not part of a scenario."""

    def __init__(self, command: ResolvedCommand) -> None:
        self.command = command

    def check_new(self, out: Path) -> None:
        """Checks that the command can make a directory.

        Raises:
            RunDirectoryError: it cannot.
        """
        check_folder(out)

    @abstractmethod
    def measure(self, request: RunRequest) -> Printout:
        """Measures into the directory of the request."""


def carry_out(
    measurement: Measurement,
    engine: SelectedEngine,
    cluster: ClusterSpec,
    out: Path,
    *,
    resumed: bool = False,
    note: str = "",
) -> NoReturn:
    """Measures on this machine or where the engine runs the command, prints, and exits with the command's code.

    Args:
        measurement: the measurement of the command.
        engine: the engine that starts the groups.
        cluster: the settings of the cluster file.
        out: the run directory, or the folder of all runs.
        resumed: whether ``out`` exists and the command continues in it.
        note: a line that is shown when a run has begun; "": none.
    """
    command, flags = measurement.command, measurement.command.flags
    if not resumed:
        measurement.check_new(out)
    run_elsewhere(command, engine, cluster, out, resumed=resumed)
    # A program that reads JSON gets lines, too, and no live view.
    plain = bool(flags["plain"] or flags["as_json"])
    request = RunRequest(
        engine,
        cluster,
        out,
        typed(),
        command.replaced,
        resumed,
        flags["quiet"],
        plain,
        agreed=flags["yes"],
        note=note,
    )
    request.exports.open(flags)
    done = measurement.measure(request)
    if done.text:
        _print(done.text.rstrip("\n"), out)
    code = failed_if(done.held, done.code)
    if flags.get("strict"):
        code = failed_if(done.not_clean, code, "--strict")
    if done.last:
        request.show(done.last)
    sys.exit(code)


def _print(text: str, out: Path) -> None:
    """Prints the results, which are stored already.

    Raises:
        HydraError: standard output takes no more.
    """
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as e:
        drop(sys.stdout)
        raise HydraError(f"cannot write the results to standard output: {e.strerror}", f"they are in {out}") from e


class ScenarioRun(Measurement):
    """The measurement of one scenario, which prints its table."""

    def __init__(self, command: ResolvedCommand) -> None:
        super().__init__(command)
        self._scenario = command.first.scenario
        self._conditions = [parse(text, columns(self._scenario)) for text in command.flags["fail_if"]]

    def measure(self, request: RunRequest) -> Printout:
        """Runs the whole scenario."""
        try:
            end = launcher.launch(self.command.first, request)
        except HydraError as e:
            if not self.command.flags["as_json"] or e.exit_code != EXIT_FAILED:
                raise
            return self._failed(request.out, e)
        if self.command.flags["as_json"]:
            text = end.tables.json
        elif sys.stdout.isatty():
            text = end.tables.terminal(get_terminal_size().columns, colours=True)
        else:
            text = end.tables.markdown
        return self._printout(text, end.code, end.tables.rows)

    def _failed(self, out: Path, error: HydraError) -> Printout:
        """What a program reads about a run that could not continue: its rows so far, and the error."""
        tables = RunTables(self._scenario, [], error=str(error))
        with contextlib.suppress(HydraError), RunStore.open(out) as store:  # there may be no run yet
            tables = RunEnd.of(self.command.first, store).tables
            tables.error = str(error)
        click.echo(f"hydra: {error}", err=True)
        return Printout(tables.json, error.exit_code)

    def _printout(self, text: str, code: int, rows: Sequence[Row]) -> Printout:
        return Printout(text, code, conditions_met(self._conditions, rows), not_clean_lines(rows))


class SloStep(ScenarioRun):
    """One step, and whether it met the objectives: the code is 0 for yes, 3 for no or unknown, 1 for no answer."""

    def measure(self, request: RunRequest) -> Printout:
        """Runs the step; the answer is also written into the run directory."""
        scenario, out = self._scenario, request.out
        if hint := too_short(scenario):
            click.echo(hint, err=True)
        end = launcher.launch(self.command.first, request)
        last = end.results[-1] if end.results else None
        answer = None
        if last and last.status == "ok":
            with RunStore.open(out) as store:
                answer = answer_of(store, last.epoch)
        if answer is None:
            why = f": {last.reason}" if last else ""
            click.echo(f"no answer: the step could not be measured{why}", err=True)
            return Printout("", EXIT_INTERRUPTED if end.code == EXIT_INTERRUPTED else EXIT_FAILED)
        tables = end.tables
        warnings, not_clean = tables.notes[-1], why_not_clean(tables.rows[-1])
        as_text = slo_text.document(scenario, tables.setup, answer, tables.table(), warnings, not_clean)
        as_json = slo_text.json_text(tables.setup, answer, warnings, not_clean)
        for name, text in (("slo.md", fitted(as_text)), ("slo.json", as_json)):
            write_whole(out / name, text, f"all results are in {out / 'run.db'}")
        shown = as_json
        if not self.command.flags["as_json"]:
            shown = fitted(as_text, terminal_width())
        code = EXIT_GOOD if answer.holds else EXIT_INCOMPLETE
        return self._printout(shown, code, tables.rows)


def too_short(scenario: Scenario) -> str:
    """A hint if the step is too short for the answer yes, else ""."""
    least_s, duration_s = shortest_s(scenario.slo), scenario.sweep.duration_s
    if duration_s >= least_s:
        return ""
    stalls = (
        f"if a stall may cost {scenario.slo.stall_s:g} s of traffic (--stall), the "
        f"answer yes takes at least {least_s} s"
    )
    return f"{duration_s:g} s can show no or unknown, but not yes: {stalls} (--duration)"
