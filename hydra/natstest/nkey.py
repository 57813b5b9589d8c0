"""NATS' keys (NKEYS): a user's key from its seed, its public name, and the signature with which the user logs in."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_SEED: Final = 18 << 3
_USER: Final = 20 << 3
"""The first five bits of a text that begins with S or U."""
_KEY_BYTES: Final = 32


class UserKey:
    """The key of one user.

    Arguments:
        seed: the text of 58 characters that begins with ``SU``.

    Raises:
        ValueError: the text is no such seed.
    """

    def __init__(self, seed: str) -> None:
        try:
            data = base64.b32decode(seed + "=" * (-len(seed) % 8))
        except binascii.Error:
            data = b""
        begin, checksum = data[:-2], data[-2:]
        prefix = bytes([_SEED | _USER >> 5, (_USER & 31) << 3])
        if len(begin) != 2 + _KEY_BYTES or begin[:2] != prefix or checksum != _checksum(begin):
            raise ValueError("the seed of the user is damaged")
        self._key = Ed25519PrivateKey.from_private_bytes(begin[2:])

    @property
    def public(self) -> str:
        """The public key, which names the user on the server; it begins with ``U``."""
        data = bytes([_USER]) + self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return base64.b32encode(data + _checksum(data)).decode().rstrip("=")

    def sign(self, nonce: str) -> bytes:
        """The signature of what the server asks to be signed, in base64."""
        return base64.b64encode(self._key.sign(nonce.encode()))


def _checksum(data: bytes) -> bytes:
    return binascii.crc_hqx(data, 0).to_bytes(2, "little")
