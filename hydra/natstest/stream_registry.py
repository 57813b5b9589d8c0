"""What a run has on the user's servers, by name in its folder: if it is killed, its resumption removes that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

FILE: Final = "nats-streams"
"""In a run's folder: a stream a line. It is there while one of them may be."""


class Records:
    """The names of a run's streams.

    Arguments:
        folder: the run's.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def all(self) -> Sequence[str]:
        """Every name, oldest first."""
        try:
            return self._file.read_text().split()
        except FileNotFoundError:
            return ()

    def add(self, name: str) -> None:
        """To be called before the stream is made; raises OSError."""
        if name not in self.all():
            with self._file.open("a") as file:
                file.write(f"{name}\n")

    def remove(self, name: str) -> None:
        """To be called after it was deleted; raises OSError."""
        left = [other for other in self.all() if other != name]
        if left:
            self._file.write_text("".join(f"{other}\n" for other in left))
        else:
            self._file.unlink(missing_ok=True)
