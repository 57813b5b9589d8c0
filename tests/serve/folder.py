"""A folder with a run of every kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hydra.store import interleaved_record
from hydra.store.interleaved_record import InterleavedRecord
from tests.jupyter.runs import FIXED, SEARCH, make

ODD: str = "c & <b>ä?#%41"


def fill(folder: Path) -> Path:
    """Runs that ended well, one that was killed, one that is damaged, and two that were measured together."""
    make(folder / "fixed", FIXED)
    make(folder / "search", SEARCH)
    make(folder / ODD, replace(FIXED, description="<script>alert(1)</script>"), steps=1, ended=None)
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.db").write_bytes(b"no database at all, but long enough to be read as one" * 9)
    together = folder / "both"
    for name in ("x", "y"):
        make(together / name, FIXED)
    sides: dict[str, dict[str, object]] = {"x": {}, "y": {}}
    began = "2026-02-01T00:00:00+00:00"
    interleaved_record.write_record(
        together, InterleavedRecord("zmqfixed", sides, True, 1, {}, "hydra zmqfixed", began, "finished")
    )
    return folder


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and its time."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
