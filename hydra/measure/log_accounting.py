"""The servers' log against what publishers and subscribers count. Pure."""

from __future__ import annotations

from typing import Final

EXACT: Final = "exact"
"""The account of a step in which all three agree, and nothing is there twice."""


def account(
    grown: int,
    acknowledged: int,
    sent: int | None = None,
    *,
    missing: int = 0,
    duplicates: int = 0,
    extra: int = 0,
    shared: bool = False,
) -> str:
    """What is not as it should be, with the numbers; ``EXACT`` where everything is.

    Args:
        grown: messages by which the log grew.
        acknowledged: messages that were acknowledged to publishers.
        sent: messages that were sent, where nothing but the log's growth acknowledges them; otherwise None.
        missing: acknowledged messages that were not received: the sum over subscribers, or the group's;
            below 0 where more came than the log's growth, which alone acknowledged, had told.
        duplicates: messages received more than once by the same subscriber, or by the group; of several subscribers
            the most.
        extra: messages received that were not acknowledged; of several subscribers the most.
        shared: whether the subscribers are a group.
    """
    said = [
        f"log {_apart(grown - acknowledged)} acknowledged" if grown != acknowledged else "",
        f"log {_apart(grown - sent)} sent" if sent is not None and grown != sent else "",
        f"{missing} acknowledged not received" if missing > 0 else "",
        f"{-missing} received beyond what was acknowledged" if missing < 0 else "",
        f"{duplicates} received more than once{' by the group' if shared else ''}" if duplicates else "",
        f"{extra} received without acknowledgement" if extra else "",
    ]
    return "; ".join(filter(None, said)) or EXACT


def _apart(difference: int) -> str:
    return f"{difference} more than" if difference > 0 else f"{-difference} fewer than"
