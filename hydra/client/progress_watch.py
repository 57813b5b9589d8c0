"""Whether the messages of a publisher are accepted all the time. Pure."""

from __future__ import annotations


class ProgressWatch:
    """Finds the longest time in which the number of accepted messages did not grow, though messages were offered.

    Args:
        begin_ns: when messages are offered from, ns.
    """

    def __init__(self, begin_ns: int) -> None:
        self.longest_ns = 0
        self._accepted = 0
        self._since_ns = begin_ns

    def look(self, now_ns: int, accepted: int) -> None:
        """Takes the number of messages that were accepted until now."""
        self.longest_ns = max(self.longest_ns, now_ns - self._since_ns)
        if accepted > self._accepted:
            self._accepted, self._since_ns = accepted, now_ns
