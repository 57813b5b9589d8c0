"""What follows the header of a data message."""

from __future__ import annotations

import os
from typing import Final

from hydra.model import HEADER_BYTES, Payload

RANDOM_BYTES: Final = 1024 * 1024
"""As long as a batch is at most, as systems are set up by default."""
_MOST_PAYLOADS: Final = 16_384
"""Of short messages fewer do: a batch has no more of them."""


class PayloadBlock:
    """The payloads of a step's messages: zeros, or random bytes that are made once.

    Random payloads lie in one block, one behind the other, and begin anew at its end: nothing is made for a message,
    and they cannot be compressed as long as a batch is shorter than the block.
    """

    def __init__(self, payload: Payload, message_size: int) -> None:
        size = message_size - HEADER_BYTES
        if payload == "zeros" or not size:
            self._payloads = [bytes(size)]
        else:
            block = os.urandom(min(max(RANDOM_BYTES // size, 1), _MOST_PAYLOADS) * size)
            self._payloads = [block[at : at + size] for at in range(0, len(block), size)]
        self._place = 0

    def next(self, count: int) -> list[bytes]:
        """The payloads of the next messages."""
        if len(self._payloads) == 1:
            return self._payloads * count
        begin, self._place = self._place, (self._place + count) % len(self._payloads)
        taken = self._payloads[begin : begin + count]
        while len(taken) < count:
            taken += self._payloads[: count - len(taken)]
        return taken
