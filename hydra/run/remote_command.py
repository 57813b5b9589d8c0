"""Commands that an engine runs elsewhere than here, as a whole."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

from hydra.config.resolved import ResolvedScenario
from hydra.engine.interface import Relocation
from hydra.options.engine_choice import Chosen
from hydra.store.folders import check_folder
from hydra.store.redaction import Redactor

TYPED: Final = "HYDRA_TYPED"
"""The variable by which whoever runs a command elsewhere tells it how it was typed: arguments, as JSON."""


def typed() -> list[str]:
    """The words of this command as its user has typed them, here or where it was handed on."""
    told = os.environ.get(TYPED)
    return ["hydra", *(json.loads(told) if told else sys.argv[1:])]


def run_elsewhere(engine: Chosen, resolved: ResolvedScenario, out: Path, *, resumed: bool) -> None:
    """Leaves with the exit code of the whole command if its engine has run it elsewhere; it may never.

    Every command that runs a scenario asks once all that its user gave is checked, and before anything starts here.
    What only the machine can tell on which it runs is not looked at: programs, and servers of the user's own.

    Args:
        engine: the one that is asked.
        resolved: what is run, or one of several; its secrets are hidden in errors.
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
    with Redactor.of_run(resolved, *engine.secrets()).in_errors():
        code = engine.spec.relocate(Relocation(engine.master, engine.settings, sys.argv[1:], out))
    if code is not None:
        sys.exit(code)
