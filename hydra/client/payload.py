"""What follows the headers of a publisher's messages, all of it prepared before the step begins."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Final

from hydra.model import HEADER_BYTES, SharedSettings
from hydra.wire.data_message import contents, sizes

BLOCK_BYTES: Final = 1024 * 1024
"""As long as a batch is at most, as systems are set up by default: no compressor finds a message again."""
MOST_MESSAGES: Final = 16_384
"""Of short messages fewer do: a batch has no more of them."""
LEAST_MESSAGES: Final = 64
MOST_BYTES: Final = 64 * 1024 * 1024
"""Where sizes differ there are at least so many of them, as far as these are not longer than that."""
LINES_BYTES: Final = 16 * 1024 * 1024
"""Of a file's lines so many are taken, headers included."""


class PayloadBlock:
    """The payloads of a step's messages: message n has payload n, and behind the last one they begin anew.

    Args:
        settings: kind, sizes and seed.
        share: of ``json``, see :func:`hydra.wire.data_message.contents`.

    Raises:
        OSError: the file with the lines cannot be read, or has none.
    """

    def __init__(self, settings: SharedSettings, share: int = 0) -> None:
        # Of what they depend on and nothing else: most steps have the same ones as the step before.
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
        """The payloads of consecutive messages, from this sequence on."""
        if len(self._payloads) == 1:
            return self._payloads * count
        begin = sequence % len(self._payloads)
        taken = self._payloads[begin : begin + count]
        while len(taken) < count:
            taken += self._payloads[: count - len(taken)]
        return taken

    def total_bytes(self, messages: int, of: Callable[[int], int] = int) -> int:
        """What the first messages take in all.

        Args:
            messages: how many.
            of: the bytes that a message of some size takes; by default its size.
        """
        rounds, rest = divmod(messages, len(self._sizes))
        return sum(
            times * sum(number * of(size) for size, number in Counter(of_them).items())
            for times, of_them in ((rounds, self._sizes), (1, self._sizes[:rest]))
        )


@lru_cache(maxsize=1)
def _prepared(settings: SharedSettings, share: int) -> list[bytes]:
    if settings.payload == "lines":
        return list(_taken(_lines(settings), LINES_BYTES))
    one_size = settings.message_size_min in (None, settings.message_size)
    if settings.payload == "zeros" and one_size:
        # Nothing tells one from the next.
        return list(_taken(contents(settings), 0))
    most = BLOCK_BYTES
    if not one_size:
        totals = accumulate(islice(sizes(settings), LEAST_MESSAGES))
        most = max(most, *(total for total in totals if total <= MOST_BYTES))
    return list(_taken(contents(settings, share), most, MOST_MESSAGES))


def _taken(payloads: Iterable[bytes], most_bytes: int, most: int | None = None) -> Iterator[bytes]:
    """As many whole messages as are not longer than that, headers included; at least one."""
    total = 0
    for number, payload in enumerate(payloads):
        total += HEADER_BYTES + len(payload)
        if number and (total > most_bytes or number == most):
            return
        yield payload


def _lines(settings: SharedSettings) -> Iterator[bytes]:
    """Cut where they are longer than a message, filled up with spaces where they are shorter than the shortest."""
    name = settings.payload_file
    longest, shortest = settings.message_size - HEADER_BYTES, (settings.message_size_min or HEADER_BYTES) - HEADER_BYTES
    try:
        mode = Path(name).stat().st_mode
        # Whoever opens a pipe waits for its other end.
        text = _beginning(name, LINES_BYTES + longest + 1) if stat.S_ISREG(mode) else None
    except OSError as e:
        raise OSError(f"cannot read payload_file {name}: {e.strerror}") from None
    if text is None:
        raise OSError(f"payload_file {name} is no regular file")
    if not text:
        raise OSError(f"payload_file {name} is empty; it needs a line for each message")
    *lines, last = text.split(b"\n")
    # Of one that was not read to its end, at least the part that a message has room for must be there.
    if last and (len(text) <= LINES_BYTES + longest or len(last) >= longest):
        lines.append(last)
    for line in lines:
        yield line[:longest].ljust(shortest)


def _beginning(name: str, most_bytes: int) -> bytes:
    with Path(name).open("rb") as file:
        return file.read(most_bytes)
