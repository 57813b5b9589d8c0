"""What runs there are in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hydra.errors import RunDirectoryError, UnreadableRunError
from hydra.results.experiments import RECORD, read
from hydra.results.store import DATABASE, ENDED_KEY, ERROR_KEY, RunStore


def catalog(folder: Path) -> list[dict[str, Any]]:
    """The runs directly below ``folder``, newest first: where, what, when, how many steps, how it ended and why so.

    An experiment is one of them, and its parts are its steps. A run that cannot be read has the reason in place of all
    else.

    Raises:
        RunDirectoryError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunDirectoryError(f"there is no folder {folder}", "name the folder that holds your runs")
    entries = []
    for database in folder.glob(f"*/{DATABASE}"):
        directory = database.parent
        try:
            with RunStore.open(directory) as store, store.reading():
                entries.append(_entry(directory, store))
        except UnreadableRunError as e:
            # Where it is stands in the first column.
            entries.append(dict.fromkeys(_COLUMNS, "") | {"run": str(directory), "ended": "unreadable", "why": e.brief})
    entries += [_experiment(record.parent) for record in folder.glob(f"*/{RECORD}")]
    return sorted(entries, key=lambda entry: str(entry["began"]), reverse=True)


_COLUMNS: Final = ("run", "scenario", "began", "client", "steps", "not ok", "ended", "why")


def _entry(directory: Path, store: RunStore) -> dict[str, Any]:
    metadata = store.metadata()
    results = store.results()
    values = (
        str(directory),
        metadata["scenario"]["name"],
        metadata["began"],
        metadata["scenario"]["client"],
        len(results),
        sum(r.status != "ok" for r in results),
        metadata.get(ENDED_KEY) or "unfinished",
        str(metadata.get(ERROR_KEY, "")),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _experiment(folder: Path) -> dict[str, Any]:
    try:
        record = read(folder)
    except RunDirectoryError as e:
        return dict.fromkeys(_COLUMNS, "") | {"run": str(folder), "ended": "unreadable", "why": e.what}
    failed = sum(bool(part.reason) for part in record.parts)
    ended = record.ended or "unfinished"
    values = (str(folder), record.experiment, record.began, "", len(record.parts), failed, ended, record.error)
    return dict(zip(_COLUMNS, values, strict=True))
