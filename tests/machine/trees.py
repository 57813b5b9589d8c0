"""Folders with the kernel's files of several machines, made from the texts in ``trees/``.

``virtual-machine`` was recorded on a real one (a Firecracker guest with control groups of version 1), and shortened.
The others were written from the documentation of the kernel.
"""

from __future__ import annotations

from pathlib import Path

from hydra.client.kernel_files import read_texts
from hydra.measure.disturbance import FREQUENCY_FILES, HEAT_FILES
from hydra.measure.machine_facts import FILE_BYTES, RECORD_FILES, group_files, record_of
from hydra.model import MachineRecord

TREES = Path(__file__).parent / "trees"


def unpacked(name: str, folder: Path) -> Path:
    """The root of the machine's files."""
    for part in (TREES / f"{name}.txt").read_text().removeprefix("== ").split("\n== "):
        path, _, text = part.partition("\n")
        file = folder / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n" if text else "")
    return folder


def write(root: Path, texts: dict[str, str]) -> None:
    """Writes the texts of files by their path."""
    for path, text in texts.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text(text)


def texts_of(root: Path) -> dict[str, str]:
    texts = read_texts((*RECORD_FILES, *HEAT_FILES, *FREQUENCY_FILES), FILE_BYTES, root)
    return texts | read_texts(group_files(texts), FILE_BYTES, root)


def machine(name: str, folder: Path) -> MachineRecord:
    return record_of(texts_of(unpacked(name, folder)))


_STAT = "{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 2 3 4 {user} {system} {gone} 0 20 0 1 0 {start} 99 9\n"


def stat(pid: int, parent: int, name: str, ticks: int, *, ended: int = 0, start: int = 5) -> dict[str, str]:
    """The text of a process in ``/proc``; ``ended`` is the time of its children that ended. Times are in ticks."""
    words = {"pid": pid, "name": name, "parent": parent, "user": ticks, "system": 0, "gone": ended, "start": start}
    return {f"/proc/{pid}/stat": _STAT.format(**words)}
