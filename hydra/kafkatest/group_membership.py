"""What a member of a consumer group knows of its part of a topic. Pure: the group is its library's business.

Where a partition is read from is exact without anything being written before: offsets only rise, so what the group
committed in an earlier step lies at or before this step's beginning, and what it committed in this one behind it. The
group's position is the later of the two, whichever member had the partition before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hydra.wire.data_message import pack
from hydra.wire.messages import PROBE_EPOCH, Configure

COMMIT_EVERY_S: Final = 5.0
"""What a member has read for longer is not read again by whoever takes over from it."""
JOIN_WITHIN_S: Final = 25.0
"""How long a group may take to give a member its partitions: less than the controller waits for an answer."""
ASK_FOR_S: Final = 1.0
"""How long a question for the group's offsets waits."""
_ASK_EVERY_S: Final = 0.2


def heartbeat_ms(session_timeout_ms: int) -> int:
    """How often a member tells that it is alive: three times within the silence that counts as death."""
    return max(1, min(3000, session_timeout_ms // 3))


def longest_poll_ms(session_timeout_ms: int) -> int:
    """After which a member that does not poll leaves; libraries want no less than the session's time."""
    return max(300_000, session_timeout_ms)


class Membership:
    """One member, from its joining on.

    Attributes:
        assigned: whether the group has told which partitions are this member's; none may be.
        positions: the next offset of each of them.
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
        self._probes: list[bytes] = []

    def step(self, command: Configure, begin: Mapping[int, int]) -> bool:
        """A step begins at these offsets, of all partitions; whether a partition of this member has to be moved."""
        self._begin, self._ends, self._left = dict(begin), {}, {}
        self._probes = []
        if command.probe:
            now_ns = time.time_ns()
            self._probes = [pack(PROBE_EPOCH, p.publisher, command.epoch, now_ns) for p in command.publishers]
        self._rebalance_ns = self._rebalances = 0
        if not self.assigned:
            self._unassigned_ns = time.monotonic_ns()
        before, self.positions = self.positions, {p: begin[p] for p in self.positions if p in begin}
        return self.positions != before

    def earliest(self, partition: int) -> int:
        """Where the group reads a partition from at the earliest."""
        return self._begin.get(partition, 0)

    def lost(self) -> None:
        """The partitions are another's, or nobody's, until the group tells anew."""
        if self.assigned:
            self.assigned = False
            self._unassigned_ns = time.monotonic_ns()
        self.positions = {}

    def given(self, partitions: Iterable[int], committed: Mapping[int, int]) -> Mapping[int, int]:
        """The group tells which partitions are this member's; the offsets to read them from."""
        if not self.assigned:
            self._rebalance_ns += time.monotonic_ns() - self._unassigned_ns
            self._rebalances += 1
        self.positions = {p: max(self._begin.get(p, 0), committed.get(p, 0)) for p in partitions}
        self._committed = {p: committed[p] for p in self.positions if p in committed}
        self._commit_at_s = time.monotonic() + COMMIT_EVERY_S
        self.assigned = True
        return self.positions

    def probes(self) -> list[bytes]:
        """Once, where the group gave this member nothing to read: a probe of every publisher, as if it had come.

        There is no way on which one could come, and nothing else to be ready for.
        """
        if self.positions or not self.assigned:
            return []
        probes, self._probes = self._probes, []
        return probes

    # --- what is committed -------------------------------------------------------------------------------------------

    def uncommitted(self, *, now: bool = False) -> dict[int, int]:
        """Offsets to be committed: every ``COMMIT_EVERY_S``, or ``now``; they count as committed from here on."""
        now_s = time.monotonic()
        if now_s < (self._again_at_s if now else self._commit_at_s):
            return {}
        self._commit_at_s = now_s + COMMIT_EVERY_S
        changed = {p: at for p, at in self.positions.items() if self._committed.get(p, self._begin.get(p)) != at}
        self._committed |= changed
        return changed

    def refused(self) -> None:
        """A commit failed: a later one, not at once, has to tell everything again."""
        self._committed = {}
        self._again_at_s = time.monotonic() + _ASK_EVERY_S

    def has_read(self, ends: Mapping[int, int]) -> bool:
        """Whether nothing before these offsets waits for this member."""
        return all(at >= ends.get(p, 0) for p, at in self.positions.items())

    def undrained(self, ends: Mapping[int, int], committed: Callable[[list[int]], Mapping[int, int]]) -> int:
        """What waits for this member, or as far as it has read all of its own, for the group.

        The others' part counts, so that a member is still there to take over from one that dies in the drain.

        Args:
            ends: where the step's data ends, by partition.
            committed: asks what the group has committed of some partitions; may take ``ASK_FOR_S``.
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
        """How long it had no partitions in this step, joining included, and how often it got them anew."""
        return {"rebalance_ms": self._rebalance_ns / 1e6, "rebalances": self._rebalances}
