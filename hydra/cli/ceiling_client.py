"""Python clients without a system: publishers discard their messages, and subscribers make the messages they receive.

native/src/null has the same clients in C++.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from hydra.client import process_group
from hydra.client.transport import DEAF_AT_MOST_S, Kind, PublisherTransport, SubscriberTransport, read_system
from hydra.model import HEADER_BYTES
from hydra.wire.data_message import pack_batch
from hydra.wire.messages import Configure

_BATCH: Final = 2000
"""The largest number of messages that a subscriber receives at once."""


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When subscribers receive (CLOCK_MONOTONIC), and how far the step's clock is ahead of that clock."""

    from_ns: int
    until_ns: int
    ahead_ns: int


class NullPublisher(PublisherTransport):
    """A publisher that accepts and discards every message at once."""

    marks_end = False

    def configure(self, command: Configure) -> str:
        """Checks the settings; there is nothing to bind."""
        read_system(command.system, Window)
        return "null"

    def probe(self, message: bytes) -> None:
        """Sends nothing: there is no subscriber to probe."""

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:  # noqa: ARG002  # nothing is sent
        """Discards the messages and counts all of them as sent."""
        return len(messages)

    def close(self) -> None:
        """There is no connection."""


class NullSubscriber(SubscriberTransport):
    """A subscriber that makes as many messages as its caller asks for."""

    def __init__(self) -> None:
        self._window = Window(from_ns=0, until_ns=0, ahead_ns=0)
        self._epoch = self._publisher = self._sequence = 0
        self._payloads: list[bytes] = []

    def configure(self, command: Configure) -> None:
        """Starts at sequence 0 of the first publisher."""
        self._window = read_system(command.system, Window)
        self._epoch, self._publisher, self._sequence = command.epoch, command.publishers[0].publisher, 0
        self._payloads = [bytes(command.settings.message_size - HEADER_BYTES)] * _BATCH

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """A full batch in the window; outside the window nothing, after a wait of at most ``timeout_s``."""
        now_ns = time.monotonic_ns()
        if self._window.from_ns <= now_ns < self._window.until_ns:
            return self._messages(min(limit, _BATCH), now_ns)
        until_s = (self._window.from_ns - now_ns) / 1e9
        time.sleep(min(timeout_s, DEAF_AT_MOST_S, until_s if until_s > 0 else timeout_s))
        return ()

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Full batches, one after another, until a limit is reached or the window ends."""
        messages: list[bytes] = []
        batches: list[tuple[int, int]] = []
        end_ns = min(until_ns, self._window.until_ns)
        while len(messages) < limit and (now_ns := time.monotonic_ns()) < end_ns:
            some = self._messages(min(limit - len(messages), _BATCH), now_ns)
            messages += some
            batches.append((now_ns, len(some)))
        return messages, batches

    def _messages(self, count: int, now_ns: int) -> list[bytes]:
        first, self._sequence = self._sequence, self._sequence + count
        times = np.full(count, now_ns + self._window.ahead_ns, np.uint64)
        return pack_batch(self._epoch, self._publisher, first, times, self._payloads)

    def reconnect(self) -> tuple[int, int]:
        """There is no connection."""
        now_ns = time.monotonic_ns()
        return now_ns, now_ns

    def close(self) -> None:
        """There is no connection."""


def _versions() -> dict[str, str]:
    return {"python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The kinds of clients that this program offers, by name."""
    return {
        "null-pub": Kind("publisher", "python", _versions, lambda *_: NullPublisher()),
        "null-sub": Kind("subscriber", "python", _versions, lambda *_: NullSubscriber()),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
