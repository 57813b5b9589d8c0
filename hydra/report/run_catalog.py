"""The list of the runs in a folder."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Any, Final

from hydra.errors import ConfigError, RunDirectoryError, UnreadableRunError
from hydra.events.value_formatting import MARK
from hydra.measure.slo import word
from hydra.model import RunSetup
from hydra.report.experiment_folder import read_record
from hydra.report.figure_texts import NOTED
from hydra.report.run_setup import setup_of_folders, stored_setup
from hydra.report.slo_text import answer_line
from hydra.store import interleaved_record
from hydra.store.database import ENDED_KEY, ERROR_KEY, RunStore
from hydra.store.run_folders import DATABASE, RECORD, ROWS, is_experiment, refuse_no_folder
from hydra.store.slo_results import answer_of, workload_of
from hydra.sweep import Row
from hydra.sweep.cleanness import host_trouble_in_short, in_short

SETUP: Final = "setup"
"""The key of what was measured, a :class:`hydra.model.RunSetup`."""
UNREADABLE: Final = "unreadable"
"""The value of ``ended`` for a run that cannot be read."""


def catalog(folder: Path) -> list[dict[str, Any]]:
    """The runs directly below ``folder``, newest first, a dict with the keys ``_COLUMNS`` for each.

    A folder without runs that is a run is listed itself.

    ``clean`` is whether all rows of a run are clean (None: no row is known), and ``disturbed`` whether there was
    trouble on the hosts of a row; ``why`` names the first row that is not clean, and the first one with trouble.
    ``slo`` is whether its last step kept its objectives: yes, no, unknown, or "" without objectives or such a step. An
    experiment counts as one run with its parts as steps, and runs that were measured together count as one run with
    their turns as steps. A run that cannot be read has only its path, its end and the reason.

    Raises:
        RunDirectoryError: there is no such folder.
    """
    refuse_no_folder(folder)
    entries = [entry(directory) for directory in directories(folder) or itself(folder)]
    return sorted(entries, key=lambda entry: str(entry["began"]), reverse=True)


def directories(folder: Path) -> list[Path]:
    """The directories below ``folder`` that :func:`catalog` lists, in no order."""
    return [
        found.parent for name in (DATABASE, RECORD, interleaved_record.RECORD) for found in folder.glob(f"*/{name}")
    ]


def itself(folder: Path) -> list[Path]:
    """The folder, if it is a run."""
    return [folder] if (folder / DATABASE).is_file() else []


def elsewhere(folder: Path, listed: bool) -> list[str]:
    """Lines about folders below ``folder`` with runs; a line that there is no run, if none was ``listed`` either."""
    here = set(directories(folder))
    found = [(below, len(directories(below))) for below in sorted(folder.iterdir()) if below not in here]
    lines = [f"{below} holds {count} more: hydra runs {quote(str(below))}" for below, count in found if count]
    return lines if lines or listed else [f"there is no run in {folder}; a command that measures makes one"]


def entry(directory: Path) -> dict[str, Any]:
    """The entry of :func:`catalog` for one of :func:`directories`."""
    reader = _together if interleaved_record.is_interleaved(directory) else _of_run
    try:
        values = (_experiment if is_experiment(directory) else reader)(directory)
    except RunDirectoryError as e:
        # The first column has the path already.
        why = e.brief if isinstance(e, UnreadableRunError) else e.what
        return dict.fromkeys(_COLUMNS, "") | {
            "run": str(directory),
            "clean": None,
            "disturbed": None,
            "ended": UNREADABLE,
            "why": why,
            SETUP: RunSetup(),
        }
    return dict(zip(_COLUMNS, (str(directory), *values), strict=True))


_COLUMNS: Final = (
    *("run", "scenario", "began", "client", "steps", "not ok", "clean", "disturbed", "slo", "ended", "why", SETUP),
)


def mark_of(clean: bool | None, disturbed: bool | None, slo: str) -> str:
    """The mark of a run in the list, one of :data:`hydra.report.figure_texts.OF_RUNS`; "": it has none."""
    if clean is False or slo in ("no", "unknown"):
        return MARK
    return NOTED if disturbed else ""


def _judged(directories: Iterable[Path]) -> tuple[bool | None, bool | None, str]:
    """Whether all rows of these runs are clean, whether hosts of any had trouble (None: no row is known), and why."""
    rows: list[Row] = []
    for directory in directories:
        # The run has no row yet, or was copied without its files, or its file is damaged.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            rows += [dict(row) for row in json.loads((directory / ROWS).read_text(encoding="utf-8"))["rows"]]
    short, trouble = in_short(rows), host_trouble_in_short(rows)
    return (not short, bool(trouble), _joined(short, trouble)) if rows else (None, None, "")


def _of_run(directory: Path) -> tuple[Any, ...]:
    with RunStore.open(directory) as store, store.reading():
        metadata, results = store.metadata(), store.results()
        scenario, failed = metadata["scenario"], sum(r.status != "ok" for r in results)
        ended, error = metadata.get(ENDED_KEY) or "unfinished", str(metadata.get(ERROR_KEY, ""))
        slo, figures = _objectives(store)
        setup = RunSetup()
        with contextlib.suppress(ConfigError):  # its system is not installed
            setup = stored_setup(store, results)
    clean, disturbed, why = _judged([directory])
    began, client = metadata["began"], scenario["client"]
    return (
        scenario["name"],
        began,
        client,
        len(results),
        failed,
        clean,
        disturbed,
        slo,
        ended,
        _joined(error, figures, why),
        setup,
    )


def _objectives(store: RunStore) -> tuple[str, str]:
    """Whether the last step with a time series kept its objectives, and the figures of a missed or undecided one."""
    slo, _ = workload_of(store)
    epochs = store.time_series_epochs() if slo.objectives() else ()
    answer = answer_of(store, epochs[-1]) if epochs else None
    if answer is None:
        return "", ""
    return word(answer.holds), "" if answer.holds else f"objectives: {answer_line(answer)}"


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _experiment(folder: Path) -> tuple[Any, ...]:
    record = read_record(folder)
    failed, ended = sum(bool(part.reason) for part in record.parts), record.ended or "unfinished"
    clean, disturbed, why = _judged(folder / part.name for part in record.parts)
    name, steps, reason = record.experiment, len(record.parts), _joined(record.error, why)
    setup = setup_of_folders(folder / part.name for part in record.parts)
    return name, record.began, "", steps, failed, clean, disturbed, "", ended, reason, setup


def _together(folder: Path) -> tuple[Any, ...]:
    record = interleaved_record.read_record(folder)
    clients, ended = ", ".join(record.sides), record.ended or "unfinished"
    clean, disturbed, why = _judged(folder / name for name in record.sides)
    name, steps, reason = record.scenario, len(record.turns), _joined(record.error, why)
    setup = setup_of_folders(folder / name for name in record.sides)
    return name, record.began, clients, steps, "", clean, disturbed, "", ended, reason, setup
