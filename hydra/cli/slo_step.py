"""The measurement of ``hydra slo``: one step, and its answer."""

from __future__ import annotations

import click

from hydra.cli.measurement import Printout, ScenarioRun
from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED
from hydra.measure.slo import shortest_s
from hydra.model import Scenario
from hydra.report import slo_text
from hydra.report.table import fitted, terminal_width
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.store.database import RunStore
from hydra.store.run_folders import write_whole
from hydra.store.slo_results import answer_of
from hydra.sweep.cleanness import why_not_clean


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
