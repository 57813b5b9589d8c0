"""The common part of commands that measure, after the input is resolved: measure, print, and exit."""

from __future__ import annotations

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, NoReturn

import click

from hydra.cli.error_exit import drop, failed_if
from hydra.config.resolved_scenario import ResolvedCommand
from hydra.errors import EXIT_FAILED, HydraError
from hydra.model import ClusterSpec
from hydra.options.engine_choice import SelectedEngine
from hydra.report.tables import RunTables
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.runner import RunEnd
from hydra.store.database import RunStore
from hydra.store.redaction import typed
from hydra.store.run_folders import check_folder
from hydra.sweep import Row
from hydra.sweep.cleanness import answers

if TYPE_CHECKING:
    from hydra.report.fail_conditions import Condition


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
    if engine.spec.relocate is not None:
        from hydra.run.remote_command import run_elsewhere

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
        texts = command.flags["fail_if"]
        self._conditions: Sequence[Condition] = ()
        self._judges = bool(texts or command.flags.get("strict"))
        if texts:
            from hydra.report.fail_conditions import columns, parse

            self._conditions = [parse(text, columns(self._scenario)) for text in texts]

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
        last = ""
        if any(answers(row) for row in rows):
            from hydra.cli.next_command import unanswered_line

            last = unanswered_line(self._scenario, rows, typed())
        if not self._judges:
            return Printout(text, code, last=last)
        from hydra.report.fail_conditions import conditions_met, not_clean_lines

        return Printout(text, code, conditions_met(self._conditions, rows), not_clean_lines(rows), last)
