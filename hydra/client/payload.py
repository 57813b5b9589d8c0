"""The payloads of a publisher's messages, prepared before the step begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, islice
from typing import Final

import numpy as np

from hydra.client.linux_process import opened
from hydra.model import HEADER_BYTES, SharedSettings
from hydra.wire.data_message import contents, sizes
from hydra.wire.traffic import MessageSizes

BLOCK_BYTES: Final = 1024 * 1024
"""Bytes of payloads that are prepared: the largest batch by default, so no compressor sees a message twice."""
MOST_MESSAGES: Final = 16_384
"""Most payloads that are prepared, if messages are short: a batch has no more."""
LEAST_MESSAGES: Final = 64
MOST_BYTES: Final = 64 * 1024 * 1024
"""If sizes differ, at least ``LEAST_MESSAGES`` payloads are prepared, up to this many bytes."""
_AT_ONCE: Final = 65_536
"""Messages whose drawn sizes are added up at once."""
LINES_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a file's lines that are prepared, with headers."""


class PayloadBlock:
    """The payloads of a step's messages: message n has payload n; after the last payload they repeat.

    Args:
        settings: kind, sizes and seed.
        share: random characters of ``json``, see :func:`hydra.wire.data_message.contents`.
        drawn: the size of each message, up to ``message_size``, of whose payload it has the beginning; None: the
            settings have the sizes.

    Raises:
        OSError: the file with the lines cannot be read, or has no lines.
    """

    def __init__(self, settings: SharedSettings, share: int = 0, drawn: MessageSizes | None = None) -> None:
        self._drawn = drawn
        # Only the settings that determine the payloads: most steps have the same ones as the step before.
        self._payloads = _prepared(
            SharedSettings(
                message_size=settings.message_size,
                message_size_min=settings.message_size_min,
                payload=settings.payload,
                payload_file=settings.payload_file,
                payload_seed=settings.payload_seed,
            ),
            share,
        )
        self._sizes = [HEADER_BYTES + len(payload) for payload in self._payloads]

    def of(self, sequence: int, count: int) -> list[bytes]:
        """The payloads of ``count`` consecutive messages, beginning with this sequence."""
        if self._drawn is not None:
            lengths = (self._drawn.of(sequence, count) - HEADER_BYTES).tolist()
            whole, number = self._payloads, len(self._payloads)
            return [whole[(sequence + k) % number][:length] for k, length in enumerate(lengths)]
        if len(self._payloads) == 1:
            return self._payloads * count
        begin = sequence % len(self._payloads)
        taken = self._payloads[begin : begin + count]
        while len(taken) < count:
            taken += self._payloads[: count - len(taken)]
        return taken

    def total_bytes(self, messages: int, of: Callable[[int], int] = int) -> int:
        """The bytes of the first messages of a step together.

        Args:
            messages: the number of messages.
            of: the bytes of a message, from its size; by default the size itself.
        """
        if self._drawn is not None:
            counts: Counter[int] = Counter()
            for first in range(0, messages, _AT_ONCE):
                found, times_found = np.unique(
                    self._drawn.of(first, min(_AT_ONCE, messages - first)), return_counts=True
                )
                counts.update(dict(zip(found.tolist(), times_found.tolist(), strict=True)))
            return sum(number * of(size) for size, number in counts.items())
        rounds, rest = divmod(messages, len(self._sizes))
        return sum(
            times * sum(number * of(size) for size, number in Counter(sizes).items())
            for times, sizes in ((rounds, self._sizes), (1, self._sizes[:rest]))
        )


@lru_cache(maxsize=1)
def _prepared(settings: SharedSettings, share: int) -> list[bytes]:
    if settings.payload == "lines":
        return list(_taken(_lines(settings), LINES_BYTES))
    one_size = settings.message_size_min in (None, settings.message_size)
    if settings.payload == "zeros" and one_size:
        # All payloads are equal.
        return list(_taken(contents(settings), 0))
    most = BLOCK_BYTES
    if not one_size:
        totals = accumulate(islice(sizes(settings), LEAST_MESSAGES))
        most = max(most, *(total for total in totals if total <= MOST_BYTES))
    return list(_taken(contents(settings, share), most, MOST_MESSAGES))


def _taken(payloads: Iterable[bytes], most_bytes: int, most: int | None = None) -> Iterator[bytes]:
    """As many whole messages as fit into ``most_bytes``, with headers; at least one."""
    total = 0
    for number, payload in enumerate(payloads):
        total += HEADER_BYTES + len(payload)
        if number and (total > most_bytes or number == most):
            return
        yield payload


def _lines(settings: SharedSettings) -> Iterator[bytes]:
    """The file's lines, cut to the longest message and filled with spaces to the shortest."""
    longest, shortest = settings.message_size - HEADER_BYTES, (settings.message_size_min or HEADER_BYTES) - HEADER_BYTES
    text = beginning(settings.payload_file, LINES_BYTES + longest + 1)
    *lines, last = text.split(b"\n")
    # If the last line was not read to its end, it counts only if it fills a message.
    if last and (len(text) <= LINES_BYTES + longest or len(last) >= longest):
        lines.append(last)
    for line in lines:
        yield line[:longest].ljust(shortest)


def beginning(name: str, most_bytes: int) -> bytes:
    """The beginning of a file of lines.

    Args:
        name: the file's path.
        most_bytes: how much of the file is read.

    Raises:
        OSError: the file cannot be read, is no regular file, or is empty.
    """
    try:
        with opened(name) as file:
            text = file.read(most_bytes)
    except OSError as e:
        raise OSError(f"cannot read payload_file {name}: {e.strerror}") from None
    if not text:
        raise OSError(f"payload_file {name} is empty; it needs a line for each message")
    return text
