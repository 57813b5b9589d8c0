"""The bitmaps of received sequences, as tests read them."""

from __future__ import annotations

import numpy as np

from hydra.wire.arrays import Bytes
from hydra.wire.compact_encoding import bitmap_bytes


def decode_bitmap(text: str) -> Bytes:
    """The bitmap in a text, one number for each byte."""
    return np.frombuffer(bitmap_bytes(text), np.uint8)
