"""Keeps the samples of a step in memory, compressed."""

from __future__ import annotations

import bz2
from typing import Final, Generic, TypeVar

import msgspec

_T = TypeVar("_T")

_json: Final = msgspec.json.Encoder()
_BLOCK: Final = 64
"""Samples that are compressed together: successive samples have the same names and similar numbers."""


class SampleLog(Generic[_T]):
    """Samples in the order in which they were added.

    An hour has thousands of samples, each with dozens of objects, so they are kept as compressed JSON.

    Args:
        kind: the type of a sample.
    """

    def __init__(self, kind: type[_T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._blocks: list[bytes] = []
        self._newest: list[bytes] = []

    def add(self, sample: _T) -> None:
        """Adds a sample."""
        self._newest.append(_json.encode(sample))
        if len(self._newest) == _BLOCK:
            # JSON of msgspec has no line breaks.
            self._blocks.append(bz2.compress(b"\n".join(self._newest)))
            self._newest.clear()

    def since(self, first: int = 0) -> list[_T]:
        """The samples from number ``first`` on."""
        begin, left_out = divmod(first, _BLOCK)
        texts = [text for block in self._blocks[begin:] for text in bz2.decompress(block).split(b"\n")]
        return [self._decode(text) for text in (texts + self._newest)[left_out:]]
