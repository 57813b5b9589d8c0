"""Commands that an engine runs elsewhere than here, as a whole."""

from __future__ import annotations

import sys
from pathlib import Path

from hydra.cluster.engine import Relocation
from hydra.model import Scenario
from hydra.results.folders import check_folder
from hydra.run.engines import Chosen
from hydra.run.redaction import Redactor


def run_elsewhere(engine: Chosen, scenario: Scenario, out: Path, *, resumed: bool) -> None:
    """Leaves with the exit code of the whole command if its engine has run it elsewhere; it may never.

    Every command that runs a scenario asks once all that its user gave is checked, and before anything starts here.
    What only the machine can tell on which it runs is not looked at: programs, and servers of the user's own.

    Args:
        engine: the one that is asked.
        scenario: that is run, or one of several; its secrets are hidden in errors.
        out: the directory that the command makes.
        resumed: whether it is there, and the command goes on in it.

    Raises:
        RunDirectoryError: the directory cannot be made.
        HydraError: as the engine says.
    """
    if engine.spec.relocate is None:
        return
    if not resumed:
        check_folder(out)
    with Redactor.of_run(scenario, *engine.secrets()).in_errors():
        code = engine.spec.relocate(Relocation(engine.master, engine.settings, sys.argv[1:], out))
    if code is not None:
        sys.exit(code)
