"""Costs and their sources. Pure, and without imports of libraries, because systems declare their costs with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WIDEST: Final = 2.0
"""The largest ratio of upper to lower limit with which an interval can be used."""
FARTHEST: Final = 2.0
"""The multiple of the largest measured count above which a figure is an extrapolation, unless several models agree."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost and its source.

    Attributes:
        value: the estimate.
        source: a run or a page.
        clients: the largest client count with which it was measured, at which the evidence ends.
        low, high: its 95 % interval; None: it is a constant, or ``source`` describes the limits.
        rates: the lowest and the highest rate (messages/s of a client) with which it was measured; None: no rate.
        kind: how the cost is known.
        sizes: the smallest and the largest message size (bytes) with which it was measured; None: no size.
        swing: the highest rate divided by the mean rate, if the load changed during the measurement; ``rates`` are
            means.
    """

    value: float
    source: str
    clients: int
    low: float | None = None
    high: float | None = None
    rates: tuple[float, float] | None = None
    kind: str = "measured"
    sizes: tuple[float, float] | None = None
    swing: float = 1.0

    @property
    def unlimited(self) -> bool:
        """Whether the interval has no upper limit, so the cost is unknown."""
        return self.low is not None and self.high is None

    @property
    def too_wide(self) -> bool:
        """Whether the interval is too wide to be used."""
        return self.low is not None and (self.high is None or self.high > WIDEST * self.low)


@dataclass(frozen=True, slots=True)
class Costs:
    """The measured costs of one implementation's clients, used if no run shows them; None: never measured.

    Attributes:
        subscriber_message_s: CPU time of a subscriber for a message that arrives alone.
        publisher_message_s: CPU time of a publisher for a message that it sends alone, to one subscriber or to a
            server.
        together_s: CPU time of both for a message if several are sent with one write, because all are late.
        publisher_cores: number of cores that one publisher can use.
        frame_bytes: bytes that the system adds to a message.
        ran: the largest number of clients with which it was run and all counts were exact.
    """

    subscriber_message_s: Cost | None = None
    publisher_message_s: Cost | None = None
    together_s: Cost | None = None
    publisher_cores: Cost | None = None
    frame_bytes: int = 0
    ran: int = 0
