"""What runs there are in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.errors import RunDirectoryError
from hydra.results.store import DATABASE, RunStore


def catalog(folder: Path) -> list[dict[str, Any]]:
    """The runs directly below ``folder``, newest first: where, what, when, how many steps and how it ended.

    Raises:
        RunDirectoryError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunDirectoryError(f"there is no folder {folder}", "name the folder that holds your runs")
    entries = []
    for database in folder.glob(f"*/{DATABASE}"):
        try:
            with RunStore.open(database.parent) as store:
                entries.append(_entry(database.parent, store))
        except RunDirectoryError as e:
            entries.append({"run": str(database.parent), "scenario": f"unreadable: {e.what}", "began": ""})
    return sorted(entries, key=lambda entry: str(entry["began"]), reverse=True)


def _entry(directory: Path, store: RunStore) -> dict[str, Any]:
    facts = store.facts()
    results = store.results()
    return {
        "run": str(directory),
        "scenario": facts["scenario"]["name"],
        "began": facts["began"],
        "client": facts["scenario"]["client"],
        "steps": len(results),
        "not ok": sum(r.status != "ok" for r in results),
        "ended": facts.get("ended", "unfinished"),
    }
