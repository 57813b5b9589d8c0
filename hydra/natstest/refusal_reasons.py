"""Why a stream, or the server, did not accept a message, as a word. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from hydra.model.system_reports import FULL, NO_DESTINATION, NO_REPLICAS, NO_SPACE, OTHER, QUOTA, TOO_LARGE

_STORE_FAILED: Final = 10077
"""The server's code if the store took nothing: its limit is reached, or the file system has no space."""
_OF_LIMIT: Final = "maximum "
"""The beginning of its text if it is the limit of the stream; the code is that of every failure of the store."""
_REASONS: Final = {
    10002: QUOTA,  # the account's limit of resources
    10008: NO_REPLICAS,  # the cluster has no leader
    10009: NO_REPLICAS,
    10023: NO_SPACE,  # resources of the server: memory or disk
    10028: NO_SPACE,
    10047: NO_SPACE,
    10054: TOO_LARGE,
    10059: NO_DESTINATION,  # no such stream
    _STORE_FAILED: NO_SPACE,
}


class _Error(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Answer(msgspec.Struct):
    error: _Error | None = None


def refusal(answer: bytes) -> tuple[str, str] | None:
    """The reason and the server's text of an answer to a published message; None: it was accepted.

    Args:
        answer: its data; without data, no stream takes messages of this subject.
    """
    if not answer:
        return NO_DESTINATION, "no responders: no stream takes messages of this subject"
    if b'"error"' not in answer:
        return None
    try:
        error = msgspec.json.decode(answer, type=_Answer).error
    except msgspec.DecodeError:
        return OTHER, answer.decode(errors="replace")
    if error is None:
        return None
    if error.err_code == _STORE_FAILED and error.description.startswith(_OF_LIMIT):
        return FULL, error.description
    return _REASONS.get(error.err_code, OTHER), error.description
