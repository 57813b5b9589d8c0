"""What limited a point. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BUSY_PUBLISHER_CORES: Final = 0.9
"""A Python publisher cannot use more than one core for its own work; its library's threads come on top."""
BUSY_HOST_PCT: Final = 92.0
"""Mean use of all cores above which a host has no CPU left: the rest is what sampling and the kernel hide."""
BUSY_NETWORK: Final = 0.9
LOSSY_NETWORK: Final = 0.01
"""Part of the segments that TCP sends once more from which on the way is full, or lossy: a loss slows TCP down."""
BLOCKED_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a step.

    Attributes:
        queue: what fills when the system is too slow, such as ``high-water mark``.
        direct: no server stands between publishers and subscribers: only subscribers empty the queue.
        held: the publishers sent what was due; None at rate ``max``.
        behind: subscribers lost messages, or got them later than the rule of a passing rate allows.
        blocked_share: part of the window in which a publisher waited for a full queue.
        publisher_cores: CPU that the busiest publisher used, in cores.
        subscriber_host_pct: mean CPU use of the busiest host with subscribers, steal included; None when not sampled.
        network_share: part of its speed that the busiest interface of any host used; None when no speed is known.
        segments_retransmitted: part of its TCP segments that a host with clients or servers sent once more, the
            highest; None when nothing was sent or not sampled.
    """

    queue: str
    direct: bool
    held: bool | None
    behind: bool
    blocked_share: float = 0.0
    publisher_cores: float = 0.0
    subscriber_host_pct: float | None = None
    network_share: float | None = None
    segments_retransmitted: float | None = None


def verdict(evidence: Evidence) -> str:
    """The first cause, from the outside in, that the evidence supports.

    It is ``requested rate``, ``network``, ``subscriber hosts``, ``publisher``, or the name of the queue.
    """
    if evidence.held and not evidence.behind:
        return "requested rate"
    if (evidence.network_share or 0.0) >= BUSY_NETWORK or (evidence.segments_retransmitted or 0.0) >= LOSSY_NETWORK:
        return "network"
    host_is_busy = evidence.subscriber_host_pct is not None and evidence.subscriber_host_pct >= BUSY_HOST_PCT
    if evidence.blocked_share >= BLOCKED_SHARE:
        # Its queue was full: whoever empties it was too slow.
        return "subscriber hosts" if host_is_busy and evidence.direct else evidence.queue
    if evidence.behind:
        return "subscriber hosts" if host_is_busy else evidence.queue
    # Everything arrived, and the publisher sent less than it could have been asked for.
    if host_is_busy and evidence.publisher_cores < BUSY_PUBLISHER_CORES:
        return "subscriber hosts"
    return "publisher"
