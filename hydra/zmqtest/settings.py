"""The settings and options that only ZMQ's sockets have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec

from hydra.model import Settings

INT32: Final = 2**31 - 1
HighWaterMark = Annotated[int, msgspec.Meta(le=INT32)]
"""Messages; 0 is unbounded."""


@dataclass(frozen=True, slots=True)
class ZmqSettings:
    """What can change between two steps.

    With ``nodrop`` the publisher waits at its mark instead of dropping (XPUB_NODROP). ``subscriptions`` says to whom
    each subscriber listens: to all publishers, or to one of them, in turn.
    """

    sndhwm: HighWaterMark = 1000
    rcvhwm: HighWaterMark = 1000
    nodrop: bool = False
    subscriptions: Literal["all", "one"] = "all"

    def __post_init__(self) -> None:
        if self.sndhwm < 0:
            raise ValueError(f"sndhwm must be 0 (unbounded) or more messages, not {self.sndhwm}")
        if self.rcvhwm < 0:
            raise ValueError(f"rcvhwm must be 0 (unbounded) or more messages, not {self.rcvhwm}")

    @classmethod
    def of(cls, settings: Settings) -> ZmqSettings:
        """Those among the settings of a step."""
        return cls(**settings.system)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ZmqNative:
    """What only the native clients' sockets can do, and who publishes for native subscribers.

    ``io_threads`` are libzmq's threads for input and output. ``sndbuf`` and ``rcvbuf`` are the kernel's buffers in
    bytes, 0 leaves them to it. ``secure`` is CURVE on the data plane. ``publisher`` is the implementation of the
    publishers.
    """

    publisher: Literal["native", "pyzmq"] = "native"
    io_threads: int = 1
    transport: Literal["tcp", "ipc"] = "tcp"
    sndbuf: int = 0
    rcvbuf: int = 0
    secure: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.io_threads <= 64:
            raise ValueError(f"io_threads must be 1 to 64, not {self.io_threads}")
        if self.sndbuf < 0 or self.rcvbuf < 0:
            raise ValueError("sndbuf and rcvbuf are bytes, 0 or more")
