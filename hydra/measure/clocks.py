"""How far the clocks of a step's hosts may be apart, where messages went from one to another. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hydra.model import AgentClock


def latency_bound_ns(
    senders: Collection[str | None], receivers: Collection[str | None], clocks: Mapping[str, AgentClock]
) -> int | None:
    """The most by which a latency may be wrong: of a pair on different hosts, what both clocks may be wrong by (ns).

    Args:
        senders: the agents of the publishers; None: one whose agent nobody knows.
        receivers: the agents of the subscribers, likewise.
        clocks: the clock of each agent. Agents of one host have the same.

    Returns the largest over all pairs of a sender and a receiver, 0 where each pair shares a clock, and None where an
    agent or its clock is not known.
    """
    found = 0
    for sender in set(senders):
        for receiver in set(receivers):
            if sender == receiver is not None:
                continue
            one, other = clocks.get(sender or ""), clocks.get(receiver or "")
            if one is None or other is None:
                return None
            if one != other:
                found = max(found, one.error_ns + other.error_ns)
    return found
