"""The suite's own data ends for any system: what it writes for a subscriber, and what it reads of a publisher."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any


class DataEnds(ABC):
    """The data ends of a system, written without Hydra's clients; an adapter derives from it.

    Attributes:
        step: the ``system`` object of a ``configure``: where the data goes.
        topics: the number of topics, as in the settings of the step.
    """

    def __init__(self, step: Mapping[str, Any], topics: int = 1) -> None:
        self.step = step
        self.topics = topics

    @abstractmethod
    def write(
        self,
        messages: Sequence[bytes],
        publisher: int,
        topics: Sequence[int] | None = None,
        *,
        signals: bool = False,
    ) -> None:
        """Writes messages of a publisher in this order; returns when the system has them.

        Args:
            messages: probes, end markers or data.
            publisher: its id.
            topics: the topic of each message, if there are several.
            signals: whether they are probes and end markers.
        """

    @abstractmethod
    def read(self) -> Sequence[tuple[int, bytes]]:
        """All messages that the system has delivered since this object was made, with their topics, in order."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connections."""
