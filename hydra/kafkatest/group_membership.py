"""The state of a consumer group's member: its partitions and offsets. Pure: the client library talks to the group.

The offset at which a member begins a partition is exact without a commit beforehand. Offsets only rise: the group's
commits of earlier steps are at or before this step's first offset, and those of this step are after it. The group's
position is the larger of the two, regardless of which member had the partition before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hydra.wire.data_message import pack
from hydra.wire.messages import PROBE_EPOCH, Configure

COMMIT_EVERY_S: Final = 5.0
"""The pause between two commits: a member that takes over a partition repeats at most this time."""
JOIN_WITHIN_S: Final = 25.0
"""How long a group may take to assign partitions to a member: less than the controller waits for an answer."""
ASK_FOR_S: Final = 1.0
"""How long a request for the group's offsets may take."""
_ASK_EVERY_S: Final = 0.2


def heartbeat_ms(session_timeout_ms: int) -> int:
    """The pause between two heartbeats of a member: at most a third of the session timeout."""
    return max(1, min(3000, session_timeout_ms // 3))


def longest_poll_ms(session_timeout_ms: int) -> int:
    """The time after which a member that does not poll leaves; libraries demand at least the session timeout."""
    return max(300_000, session_timeout_ms)


class Membership:
    """One member, from the time it joins.

    Attributes:
        assigned: whether the group has assigned partitions to this member, which may be none.
        positions: the next offset of each assigned partition.
    """

    def __init__(self) -> None:
        self.assigned = False
        self.positions: dict[int, int] = {}
        self._begin: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._commit_at_s = self._again_at_s = 0.0
        self._ends: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._ask_at_s = 0.0
        self._unassigned_ns = time.monotonic_ns()
        self._rebalance_ns = self._rebalances = 0
        self._reported = False
        self._probes: list[bytes] = []

    def step(self, command: Configure, begin: Mapping[int, int]) -> bool:
        """Begins a step at these offsets of all partitions; returns whether this member must move a partition."""
        self._begin, self._ends, self._left = dict(begin), {}, {}
        self._probes = []
        if command.probe:
            now_ns = time.time_ns()
            self._probes = [pack(PROBE_EPOCH, p.publisher, command.epoch, now_ns) for p in command.publishers]
        if self._reported:  # otherwise a start was repeated, and what it cost belongs to this step
            self._rebalance_ns = self._rebalances = 0
            self._reported = False
        if not self.assigned:
            self._unassigned_ns = time.monotonic_ns()
        before, self.positions = self.positions, {p: begin[p] for p in self.positions if p in begin}
        return self.positions != before

    def earliest(self, partition: int) -> int:
        """The first offset of a partition in this step."""
        return self._begin.get(partition, 0)

    def lost(self) -> None:
        """Records that the member has no partitions until the group assigns some again."""
        if self.assigned:
            self.assigned = False
            self._unassigned_ns = time.monotonic_ns()
        self.positions = {}

    def rejoins(self) -> None:
        """Records that the member joins with a new connection: the time away before it is no rebalance."""
        self.lost()
        self._unassigned_ns = time.monotonic_ns()

    def given(self, partitions: Iterable[int], committed: Mapping[int, int]) -> Mapping[int, int]:
        """Records the partitions that the group assigned; returns the offsets at which to read them."""
        if not self.assigned:
            self._rebalance_ns += time.monotonic_ns() - self._unassigned_ns
            self._rebalances += 1
        self.positions = {p: max(self._begin.get(p, 0), committed.get(p, 0)) for p in partitions}
        self._committed = {p: committed[p] for p in self.positions if p in committed}
        self._commit_at_s = time.monotonic() + COMMIT_EVERY_S
        self.assigned = True
        return self.positions

    def probes(self) -> list[bytes]:
        """A probe of every publisher, once, if the group assigned no partition to this member.

        Such a member cannot receive a probe, and has no path to prove.
        """
        if self.positions or not self.assigned:
            return []
        probes, self._probes = self._probes, []
        return probes

    # --- what is committed -------------------------------------------------------------------------------------------

    def uncommitted(self, *, now: bool = False) -> dict[int, int]:
        """The offsets to commit, every ``COMMIT_EVERY_S`` or ``now``; from here on they count as committed."""
        now_s = time.monotonic()
        if now_s < (self._again_at_s if now else self._commit_at_s):
            return {}
        self._commit_at_s = now_s + COMMIT_EVERY_S
        changed = {p: at for p, at in self.positions.items() if self._committed.get(p, self._begin.get(p)) != at}
        self._committed |= changed
        return changed

    def refused(self) -> None:
        """Records that a commit failed: a later one, not at once, must contain all offsets again."""
        self._committed = {}
        self._again_at_s = time.monotonic() + _ASK_EVERY_S

    def has_read(self, ends: Mapping[int, int]) -> bool:
        """Whether this member has read its partitions up to these offsets."""
        return all(at >= ends.get(p, 0) for p, at in self.positions.items())

    def undrained(self, ends: Mapping[int, int], committed: Callable[[list[int]], Mapping[int, int]]) -> int:
        """The messages that this member has not read, or, if it has read all of its own, that the group has not.

        The other members' messages count, so a member is still there to take over from one that dies in the drain.

        Args:
            ends: the offsets after the step's data, by partition.
            committed: returns the group's committed offsets of some partitions; may take ``ASK_FOR_S``.
        """
        if ends != self._ends:
            self._ends = dict(ends)
            self._left = {p: end - begin for p, end in ends.items() if end > (begin := self._begin.get(p, 0))}
            self._ask_at_s = 0.0
        positions = self.positions
        if own := sum(max(0, ends[p] - at) for p, at in positions.items() if p in ends):
            return own
        others = [p for p in self._left if p not in positions]
        if others and time.monotonic() >= self._ask_at_s:
            for partition, offset in committed(others).items():
                left = self._ends.get(partition, 0) - max(offset, self._begin.get(partition, 0))
                if left > 0:
                    self._left[partition] = left
                else:
                    self._left.pop(partition, None)
            self._ask_at_s = time.monotonic() + _ASK_EVERY_S
        return sum(left for p, left in self._left.items() if p not in positions)

    def report(self) -> dict[str, Any]:
        """How long the member had no partitions while connected, since its last report, and how often it got some."""
        self._reported = True
        return {"rebalance_ms": self._rebalance_ns / 1e6, "rebalances": self._rebalances}
