"""What something costs, and how that is known. Pure, and without a library: systems tell it of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WIDEST: Final = 2.0
"""Upper over lower limit: where an interval is wider, its answer cannot be used."""
FARTHEST: Final = 2.0
"""Times the largest measured count: what is said of more clients is an extrapolation, unless several models agree."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What something costs, and how that is known.

    Attributes:
        value: the estimate.
        source: where it is from: a run, or a page.
        clients: the largest client count that it was measured at: where the evidence ends.
        low, high: its 95 % interval; None: it is a constant, or its ``source`` says what the limits are.
        rates: the rates (messages/s of a client) that it was measured at, lowest and highest; None: it has none.
        kind: how it is known.
        sizes: the sizes of messages (bytes) that it was measured at, least and most; None: it is of no size.
        swing: the highest rate over the mean one, where the load changed while it was measured; ``rates`` are means.
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
        """Whether it is an interval without an upper limit: then nobody knows what it costs."""
        return self.low is not None and self.high is None

    @property
    def too_wide(self) -> bool:
        """Whether its interval is too wide to be used."""
        return self.low is not None and (self.high is None or self.high > WIDEST * self.low)


@dataclass(frozen=True, slots=True)
class Costs:
    """What the clients of one implementation are known to cost where no run tells it; None: nobody has measured it.

    Attributes:
        subscriber_message_s: CPU time of a subscriber for a message that comes alone.
        publisher_message_s: CPU time of a publisher for a message to one subscriber that goes alone; where servers
            are between them, for a message.
        together_s: CPU time of both for a message where several go with one write, because all are late.
        publisher_cores: how many cores one publisher can use.
        frame_bytes: what the system puts around a message.
        ran: with how many clients it was run at most, every count of theirs exact.
    """

    subscriber_message_s: Cost | None = None
    publisher_message_s: Cost | None = None
    together_s: Cost | None = None
    publisher_cores: Cost | None = None
    frame_bytes: int = 0
    ran: int = 0
