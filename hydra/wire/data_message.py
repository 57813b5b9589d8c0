"""A data message: the 24 bytes of its header, and a payload.

The fields of the header: Epoch u32, publisher u32, sequence u64, time u64 (ns), little endian. A probe has epoch 0 and
carries in ``sequence`` the epoch that its publisher was last configured for; an end marker has epoch 0 and carries 2⁶³
| the epoch that has ended.

All implementations make the same payload bytes from the same seed. Pure. docs/control-protocol.md, section 5, is
"""

from __future__ import annotations

import operator
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import HEADER_BYTES, Settings, SharedSettings

GAMMA: Final = 0x9E3779B97F4A7C15
"""The generator adds this to its state to get the next state."""
WORD: Final = 2**64 - 1
"""The highest number; all sums and products are cut to it."""
_AT_ONCE: Final = 4096


def mix(z: int) -> int:
    """Computes the random number that the generator gives in state ``z``."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def mix_each(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Computes the random number of each state."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class SplitMix64:
    """A stream of whole numbers of 64 bits, from a seed and a stream number, the same in all languages.

    C++ clients: ``native/src/common/split_mix.h``. Source: G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom
    Number Generators, OOPSLA 2014.
    """

    def __init__(self, seed: int, stream: int) -> None:
        self._start = mix_each(np.array([(2 * seed + stream) % 2**64], np.uint64))
        self._taken = 0

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        """Returns the next ``number`` random numbers of the stream."""
        places = np.arange(self._taken + 1, self._taken + 1 + number, dtype=np.uint64)
        self._taken += number
        return mix_each(self._start + places * np.uint64(GAMMA))

    def each(self) -> Iterator[int]:
        """An endless iterator over the stream; it and :meth:`take` never give the same number twice."""
        return chain.from_iterable(self.take(_AT_ONCE).tolist() for _ in count())


HEADER: Final = struct.Struct("<IIQQ")
SEQUENCE_LIMIT: Final = 2**63
"""Sequences of data and of probes are below this."""
DTYPE: Final = np.dtype([("epoch", "<u4"), ("publisher", "<u4"), ("sequence", "<u8"), ("time_ns", "<u8")])
HEADER_OF: Final = operator.itemgetter(slice(HEADER_BYTES))
"""The header of a message, as bytes."""
_RAW: Final = np.dtype((np.void, HEADER_BYTES))


def pack(epoch: int, publisher: int, sequence: int, time_ns: int, message_size: int = HEADER_BYTES) -> bytes:
    """One message of ``message_size`` bytes, zero padded."""
    return HEADER.pack(epoch, publisher, sequence, time_ns).ljust(message_size, b"\0")


def pack_batch(
    epoch: int, publisher: int, first_sequence: int, times_ns: npt.NDArray[np.uint64], payloads: Sequence[bytes]
) -> list[bytes]:
    """Consecutive messages: each has a header with one of these times, and one of these payloads; as many of either."""
    n = len(times_ns)
    headers = np.empty(n, DTYPE)
    headers["epoch"] = epoch
    headers["publisher"] = publisher
    headers["sequence"] = np.arange(first_sequence, first_sequence + n, dtype=np.uint64)
    headers["time_ns"] = times_ns
    return list(map(operator.add, headers.view(_RAW).tolist(), payloads))


def unpack_batch(messages: Sequence[bytes]) -> npt.NDArray[np.void]:
    """The headers of a batch as an array of ``DTYPE``; messages shorter than a header are left out."""
    return from_bytes(b"".join([m[:HEADER_BYTES] for m in messages if len(m) >= HEADER_BYTES]))


def from_bytes(headers: bytes) -> npt.NDArray[np.void]:
    """Headers that stand one after the other, as an array of ``DTYPE``."""
    return np.frombuffer(headers, DTYPE)


SHARE_OF: Final = 10_000
"""Shares of random characters are whole multiples of one part in this many."""
RECORD_BYTES: Final = 109
"""Length in bytes of a JSON record without random characters and without words; a shorter payload is a record that is
cut at the payload's length."""

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_CHARACTERS: Final = 10
"""Random characters from one number, six bits each."""
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
"""Numbers of the two random streams of a seed."""


def sizes(settings: SharedSettings) -> Iterator[int]:
    """The sizes (bytes) of a publisher's messages, without end; uniformly random if the settings have two sizes."""
    largest, smallest = settings.message_size, settings.message_size_min
    if smallest is None or smallest == largest:
        while True:
            yield largest
    for number in SplitMix64(settings.payload_seed, SIZES).each():
        yield smallest + number % (largest - smallest + 1)


def contents(settings: SharedSettings, share: int = 0) -> Iterator[bytes]:
    """The payloads of a publisher's messages, without end; not for ``lines``, whose payloads are lines of a file.

    Args:
        settings: kind, sizes and seed.
        share: random characters of ``json`` payloads, in parts of ``SHARE_OF``.
    """
    lengths = (size - HEADER_BYTES for size in sizes(settings))
    if settings.payload == "zeros":
        yield from map(bytes, lengths)
    elif settings.payload == "random":
        numbers = SplitMix64(settings.payload_seed, CONTENTS)
        for length in lengths:
            yield numbers.take((length + 7) // 8).astype("<u8", copy=False).tobytes()[:length]
    else:
        yield from _records(lengths, SplitMix64(settings.payload_seed, CONTENTS).each(), share)


def _records(lengths: Iterator[int], numbers: Iterator[int], share: int) -> Iterator[bytes]:
    """JSON records of these lengths: events with an id, a time, a host, numbers and text."""
    characters = milliseconds = 0
    for index, length in enumerate(lengths):
        # The difference of running totals, so shares of short records are not rounded down to zero.
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


BATCH_BYTES: Final = 64 * 1024
"""Length (bytes) of the batch that is compressed to find the ratio; a longer message is cut to it."""
_START_NS: Final = 1_767_225_600 * 10**9
_APART_NS: Final = 100_003


@dataclass(frozen=True, slots=True)
class Compression:
    """A share of random characters (parts of ``SHARE_OF``), and zlib's ratio of original to compressed size with it."""

    share: int
    ratio: float


def compression(settings: SharedSettings) -> Compression:
    """The smallest share at which zlib compresses a batch by at most ``payload_ratio``.

    If no share reaches the ratio, because text without random characters compresses less or random characters alone
    compress more, the result is the share whose ratio comes closest.
    """
    return _compression(
        SharedSettings(
            message_size=settings.message_size,
            message_size_min=settings.message_size_min,
            payload="json",
            payload_ratio=settings.payload_ratio,
            payload_seed=settings.payload_seed,
        )
    )


@lru_cache(maxsize=64)
def _compression(settings: SharedSettings) -> Compression:
    low, high = 0, SHARE_OF
    if ratio(settings, low) <= settings.payload_ratio:
        high = low
    while low < high:
        middle = (low + high) // 2
        if ratio(settings, middle) > settings.payload_ratio:
            low = middle + 1
        else:
            high = middle
    return Compression(low, ratio(settings, low))


def ratio(settings: SharedSettings, share: int) -> float:
    """Original size / size after zlib's default level, of a batch of messages with headers."""
    given = batch(settings, share)
    return len(given) / len(zlib.compress(given, 6))


def batch(settings: SharedSettings, share: int, most_bytes: int = BATCH_BYTES) -> bytes:
    """The first messages (at least one) of a publisher that sends one every tenth of a millisecond."""
    largest, smallest = settings.message_size, settings.message_size_min or settings.message_size
    shorter = replace(settings, message_size=min(largest, most_bytes), message_size_min=min(smallest, most_bytes))
    messages: list[bytes] = []
    taken = 0
    for sequence, payload in enumerate(contents(shorter, share)):
        taken += HEADER_BYTES + len(payload)
        if messages and taken > most_bytes:
            break
        messages.append(pack(1, 0, sequence, _START_NS + sequence * _APART_NS) + payload)
    return b"".join(messages)


_NEAR: Final = 0.05
"""Relative difference up to which a ratio is shown as the one that was asked for."""
_USUAL_SEED: Final = SharedSettings().payload_seed


def payload(settings: Settings) -> str | None:
    """Kind, sizes and what else distinguishes the payloads; None for zeros of one size, the default."""
    largest, smallest = settings.message_size, settings.message_size_min or settings.message_size
    if settings.message_sizes:
        return f"{settings.payload}, sizes {settings.message_sizes}"
    if settings.payload == "zeros" and smallest == largest:
        return None
    sizes = f"{largest} bytes" if smallest == largest else f"{smallest}–{largest} bytes"
    if settings.payload == "lines":
        return f"lines of {settings.payload_file}, {sizes if smallest < largest else f'at most {sizes}'}"
    words = _ratio(settings) if settings.payload == "json" else settings.payload
    seed = "" if settings.payload_seed == _USUAL_SEED else f"seed {settings.payload_seed}"
    return ", ".join(filter(None, [words, seed, sizes]))


def _ratio(settings: Settings) -> str:
    wanted, found = settings.payload_ratio, compression(settings).ratio
    near = abs(found / wanted - 1) <= _NEAR
    return f"json ×{wanted:.1f}" if near else f"json ×{found:.1f} ({wanted:.1f} asked for)"
