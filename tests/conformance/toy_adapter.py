"""The data ends of the toy system: its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.data_ends import DataEnds

_LENGTH_BYTES = 4


class ToyEnds(DataEnds):
    """The file of a step, from its present end on."""

    def __init__(self, step: Mapping[str, Any], topics: int = 1) -> None:
        super().__init__(step, topics)
        self._path = Path(step["path"])
        self._begin = self._path.stat().st_size
        self._signals = 0

    def write(
        self,
        messages: Sequence[bytes],
        publisher: int,
        topics: Sequence[int] | None = None,
        *,
        signals: bool = False,
    ) -> None:
        with self._path.open("ab") as file:
            for message in messages:
                self._signals += signals
                # The members of a group take turns by the number behind a signal.
                whole = message + (self._signals.to_bytes(_LENGTH_BYTES, "little") if signals else b"")
                file.write(len(whole).to_bytes(_LENGTH_BYTES, "little") + whole)

    def read(self) -> Sequence[tuple[int, bytes]]:
        found, at, content = [], self._begin, self._path.read_bytes()
        while at < len(content):
            begin = at + _LENGTH_BYTES
            at = begin + int.from_bytes(content[at:begin], "little")
            found.append((0, content[begin:at]))
        return found

    def close(self) -> None: ...
