"""The bitmaps of received sequences, as tests read them."""

from __future__ import annotations

from base64 import b64decode

import numpy as np

from hydra.wire.arrays import Bytes


def decode_bitmap(text: str) -> Bytes:
    """The bitmap in a text, one number for each byte."""
    return np.frombuffer(b64decode(text, validate=True), np.uint8)
