"""What the payloads of a publisher's messages consist of: the same bytes from the same seed, in every implementation.

Pure. docs/control-protocol.md, section 5, is the specification; ``tests/golden/payload`` pins the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import HEADER_BYTES, SharedSettings

SHARE_OF: Final = 10_000
"""A share of random characters is a whole number of these parts."""
RECORD_BYTES: Final = 109
"""A JSON record without random characters and text; a shorter one is cut."""

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_AT_ONCE: Final = 4096
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_CHARACTERS: Final = 10
"""Random characters that one number gives, six bits each."""
_BEFORE_TRACE: Final = 24
_STATUS: Final = (200, 200, 200, 201, 304, 404, 429, 500)
_SENTENCES: Final = (
    "order accepted and sent to the warehouse. ",
    "payment confirmed by the bank. ",
    "user signed in from a new device. ",
    "retrying after a timeout of the upstream service. ",
    "cache miss, value read from the database. ",
    "request rejected: the quota is used up. ",
    "connection closed by the remote host. ",
    "report written to the archive. ",
)
SIZES: Final = 0
CONTENTS: Final = 1
"""The two streams of numbers of a seed."""


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


class Numbers:
    """SplitMix64: whole numbers of 64 bits, from a seed and the number of one of its streams.

    Source: G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    """

    def __init__(self, seed: int, stream: int) -> None:
        self._start = _mixed(np.array([(2 * seed + stream) % 2**64], np.uint64))
        self._taken = 0

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        """The next ones."""
        places = np.arange(self._taken + 1, self._taken + 1 + number, dtype=np.uint64)
        self._taken += number
        return _mixed(self._start + places * _GAMMA)

    def each(self) -> Iterator[int]:
        """One after the other, without end; what is taken besides is others."""
        return chain.from_iterable(self.take(_AT_ONCE).tolist() for _ in count())


def sizes(settings: SharedSettings) -> Iterator[int]:
    """The sizes (bytes) of a publisher's messages, without end: evenly drawn where they differ."""
    largest, smallest = settings.message_size, settings.message_size_min
    if smallest is None or smallest == largest:
        while True:
            yield largest
    for number in Numbers(settings.payload_seed, SIZES).each():
        yield smallest + number % (largest - smallest + 1)


def contents(settings: SharedSettings, share: int = 0) -> Iterator[bytes]:
    """The payloads of a publisher's messages, without end; not those that are the lines of a file.

    Args:
        settings: kind, sizes and seed.
        share: of ``json``: how many of ``SHARE_OF`` characters are random.
    """
    lengths = (size - HEADER_BYTES for size in sizes(settings))
    if settings.payload == "zeros":
        yield from map(bytes, lengths)
    elif settings.payload == "random":
        numbers = Numbers(settings.payload_seed, CONTENTS)
        for length in lengths:
            yield numbers.take((length + 7) // 8).astype("<u8", copy=False).tobytes()[:length]
    else:
        yield from _records(lengths, Numbers(settings.payload_seed, CONTENTS).each(), share)


def _records(lengths: Iterator[int], numbers: Iterator[int], share: int) -> Iterator[bytes]:
    """JSON records of these lengths: events with an id, a time, a host, numbers and text."""
    characters = milliseconds = 0
    for index, length in enumerate(lengths):
        # What is due in all, so that shares of short records are not rounded down to nothing.
        wished = (characters + length) * share // SHARE_OF - characters * share // SHARE_OF
        characters += length
        room = length - (RECORD_BYTES if length >= RECORD_BYTES else _BEFORE_TRACE)
        trace = _random_text(numbers, min(wished, max(room, 0)))
        when, what = next(numbers), next(numbers)
        milliseconds += when % 250
        seconds, thousandths = divmod(milliseconds, 1000)
        record = (
            f'{{"id":{10_000_000 + index % 10_000_000},"trace":"{trace}","time":"2026-01-01T'
            f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{thousandths:03}Z"
            f'","host":"web-{what % 32:02}","status":{_STATUS[(what >> 8) % 8]},"ms":{1000 + (what >> 16) % 9000}'
            ',"text":"'
        )
        text = max(length - len(record) - 2, 0)
        words = [record]
        while text > 0:
            words.append(_SENTENCES[next(numbers) % 8][:text])
            text -= len(words[-1])
        yield f'{"".join(words)}"}}'.encode("ascii")[:length]


def _random_text(numbers: Iterator[int], length: int) -> str:
    taken = islice(numbers, -(-length // _CHARACTERS))
    return "".join([_ALPHABET[number >> 6 * k & 63] for number in taken for k in range(_CHARACTERS)])[:length]
