"""The 24 bytes at the start of every data message.

Epoch u32, publisher u32, sequence u64, time u64 (ns), little endian.
A probe has epoch 0 and carries in ``sequence`` the epoch that its publisher was last configured for; an end marker has
epoch 0 and carries 2⁶³ | the epoch that has ended.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import HEADER_BYTES

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
    """Consecutive messages: a header with each of these times, and a payload behind it, as many of either."""
    n = len(times_ns)
    headers = np.empty(n, DTYPE)
    headers["epoch"] = epoch
    headers["publisher"] = publisher
    headers["sequence"] = np.arange(first_sequence, first_sequence + n, dtype=np.uint64)
    headers["time_ns"] = times_ns
    return list(map(operator.add, headers.view(_RAW).tolist(), payloads))


def unpack_batch(messages: Sequence[bytes]) -> npt.NDArray[np.void]:
    """The headers of a batch as an array of ``DTYPE``; shorter messages than a header are left out."""
    return from_bytes(b"".join([m[:HEADER_BYTES] for m in messages if len(m) >= HEADER_BYTES]))


def from_bytes(headers: bytes) -> npt.NDArray[np.void]:
    """Headers that stand one after the other, as an array of ``DTYPE``."""
    return np.frombuffer(headers, DTYPE)
