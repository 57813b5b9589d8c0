"""Published experiments by their names: refused before what running one takes is imported."""

from __future__ import annotations

from difflib import get_close_matches

from hydra.config.file_locations import experiments
from hydra.errors import UsageError
from hydra.system import Experiment


def find(system: str, name: str) -> Experiment:
    """The experiment of that name.

    Args:
        system: whose; "": any system's.
        name: as its user wrote it.

    Raises:
        UsageError: there is none; the text tells the nearest one, or all.
    """
    known = experiments(system)
    if not name:
        raise UsageError("no experiment is named", f"name one of {', '.join(known)}")
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"no experiment {name!r}", f"{hint}known experiments: {', '.join(known)}")
    return known[name]
