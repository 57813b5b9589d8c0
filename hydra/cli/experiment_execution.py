"""The steps of every command that runs a published experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

from hydra.cli.measurement import Measurement, Printout, carry_out
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import experiments
from hydra.config.resolved_scenario import ResolvedCommand
from hydra.config.scenario import refuse_unused
from hydra.errors import RunDirectoryError, UsageError
from hydra.events.value_formatting import counted, duration
from hydra.experiments.alternatives import with_alternatives
from hydra.experiments.experiment import Experiment, find
from hydra.experiments.runner import Parts, scenario_of
from hydra.options.engine_choice import choose
from hydra.options.shared_flags import shown
from hydra.report import experiment_folder as folders
from hydra.report.experiment_folder import ExperimentRecord
from hydra.report.fail_conditions import columns, conditions_met, not_clean_lines, parse
from hydra.report.table import fitted, terminal_width
from hydra.run.launcher import RunRequest
from hydra.run.run_metadata import command_record, differences, refuse_hidden
from hydra.store.redaction import Redactor
from hydra.store.run_folders import fresh_folder, is_experiment, locked, resumed_folder
from hydra.system.experiment import ExperimentOptions, ExperimentPart


def run_experiment(system: str, name: str, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> NoReturn:
    """Runs an experiment, prints its tables and exits with its code.

    Args:
        system: name of the experiment's system; "" for any system.
        name: the experiment's name; "" for the one in the folder that is resumed.
        replaced: keys that the command replaces in every part.
        flags: the flags of ``options.run_flags``, ``options.experiment_flags``, engines and experiments.
    """
    resumed = resumed_folder(flags)
    before = folders.read_record(resumed) if resumed else None
    experiment = find(system, name or (before.experiment if before else ""))
    cluster = load_cluster(flags["config"])
    engine = choose(flags["master"], flags["config"], flags)
    # All agents of the local engine are this machine, whatever their names are.
    hosts = 1 if engine.spec.is_local else len({agent.hostname for agent in engine.agents(cluster.agents)})
    if before:
        replaced = {**before.overrides, **replaced}
        refuse_hidden(replaced)
    experiment, overrides = with_alternatives(experiment, replaced)
    order = _order(experiment, flags, before, hosts)
    # Resolving all known parts reports wrong flags before anything starts.
    parts = {part.name: scenario_of(experiment, part, overrides) for part in _known(experiment, order)}
    if experiment.parts:  # a part that is not known yet may use what the first one does not
        refuse_unused(list(parts.values()), experiment.name)
    first = dict(list(parts.items())[:1])
    command = ResolvedCommand("experiment", first, replaced, shown(flags), experiment.name, order)
    folder = resumed or flags["out"] or fresh_folder(experiment.name)
    carry_out(ExperimentRun(command), engine, cluster, folder, resumed=before is not None)


class ExperimentRun(Measurement):
    """The measurement of all parts of an experiment, which makes its tables."""

    def __init__(self, command: ResolvedCommand) -> None:
        super().__init__(command)
        experiment = find(command.first.system.identity.name, command.experiment)
        self._experiment, self._overrides = with_alternatives(experiment, command.replaced)
        self._order = command.order or ExperimentOptions(experiment.scale)
        of_tables = folders.figures_of(self._experiment.views(self._order, ()))
        known = {**of_tables, **columns(command.first.scenario)}
        self._conditions = [parse(text, known) for text in command.flags["fail_if"]]

    def check_new(self, out: Path) -> None:
        """Also rejects a folder that already holds an experiment."""
        super().check_new(out)
        if is_experiment(out):
            raise RunDirectoryError(
                f"{out} already holds an experiment", "continue it with --resume, or choose another --out"
            )

    def measure(self, request: RunRequest) -> Printout:
        """Runs every part that is not finished yet."""
        experiment, folder = self._experiment, request.out
        record = folders.read_record(folder) if request.resume else self._record(request)
        request = dataclasses.replace(request, overrides=self._overrides)
        if not request.resume:
            self._announce(request)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            folders.write_record(folder, record)
            code, done = Parts(experiment, self._order, request).run(record)
        record = folders.read_record(folder)
        views, setup = experiment.views(self._order, done), folders.setup_of(folder, record)
        if self.command.flags["as_json"]:
            text = folders.json_text(record, views, setup)
        else:
            text = "\n".join(
                [fitted(folders.document(record, views, setup), terminal_width()), *experiment.lines(done)]
            )
        goes_on = "" if record.ended == "finished" else f"; continue the experiment with --resume {quote(str(folder))}"
        measured = [dict(row) for each in done for row in each.rows]
        held, not_clean = (
            conditions_met(self._conditions, [*folders.rows_of(views), *measured]),
            not_clean_lines(measured),
        )
        return Printout(text, code, held, not_clean, f"all results are in {folder}{goes_on}")

    def _announce(self, request: RunRequest) -> None:
        """Announces the expected time of the parts that are known before the first step; asks if that is long."""
        parts = _known(self._experiment, self._order)
        resolved = [scenario_of(self._experiment, part, self._overrides) for part in parts]
        expected_s = sum(request.expected_s(each) for each in resolved)
        number = counted(len(parts), "part") if self._experiment.parts else "the first part"
        request.show(f"{self._experiment.name} into {request.out}: {number}, about {duration(expected_s)}")
        request.confirm(expected_s)

    def _record(self, request: RunRequest) -> ExperimentRecord:
        """The record of an experiment that begins."""
        redactor = Redactor.of_run(self.command.first, *request.engine.secrets())
        return ExperimentRecord(
            experiment=self._experiment.name,
            title=self._experiment.title,
            source=self._experiment.source,
            scale=self._order.scale,
            options=dict(self._order.options),
            **command_record(request.command_line, self.command.replaced, redactor),
        )


def _order(
    experiment: Experiment, flags: Mapping[str, Any], before: ExperimentRecord | None, hosts: int
) -> ExperimentOptions:
    """The options of the experiment; a resumed experiment keeps the options it was started with.

    Raises:
        UsageError: a flag belongs to another experiment.
        RunDirectoryError: a flag differs from the experiment that is resumed.
    """
    own = {option.name for option in experiment.options}
    for other in experiments().values():
        for option in other.options:
            if option.name not in own and flags.get(option.name) is not None:
                raise UsageError(
                    f"{option.flag} is for {other.name}, not for {experiment.name}", f"leave out {option.flag}"
                )
    options = {name: flags[name] for name in sorted(own) if flags.get(name) is not None}
    scale = flags.get("scale")
    if before is None:
        return ExperimentOptions(scale or experiment.scale, options, hosts)
    given = {"experiment": experiment.name, **({"scale": scale} if scale else {}), **options}
    first = {"experiment": before.experiment, "scale": before.scale, **before.options}
    difference = next(differences({key: first.get(key) for key in given}, given), None)
    if difference is not None:
        raise RunDirectoryError(
            f"the flags are those of another experiment: {difference}", "resume it as it was started"
        )
    return ExperimentOptions(before.scale, before.options, hosts)


def _known(experiment: Experiment, order: ExperimentOptions) -> Sequence[ExperimentPart]:
    """The parts that are known before anything is measured: all, or the first one."""
    if experiment.parts:
        return experiment.parts(order)
    first = experiment.next_part(order, ())
    return [first] if first else []
