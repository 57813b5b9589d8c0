"""The settings and options of ZMQ's sockets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec

from hydra.model import Need, Settings, setting

INT32: Final = 2**31 - 1
DATA_KEY: Final = "HYDRA_DATA_SERVER_KEY"
"""The variable with the run's public key for data messages (CURVE); clients without it do not encrypt."""
DATA_SECRET: Final = "HYDRA_DATA_SERVER_SECRET"  # noqa: S105  # a variable's name
"""The variable with the secret key of this pair, which only publishers have."""
HighWaterMark = Annotated[int, msgspec.Meta(le=INT32)]
"""A high-water mark in messages; 0 is unbounded."""


@dataclass(frozen=True, slots=True)
class ZmqSettings:
    """The settings that can change between two steps.

    Attributes:
        sndhwm: the publisher's high-water mark for each subscriber, in messages; 0: no limit.
        rcvhwm: a subscriber's high-water mark, in messages; 0: no limit.
        nodrop: whether the publisher waits at its high-water mark instead of dropping (XPUB_NODROP); ``blocked_s`` is
            the time that it waited.
        subscriptions: each subscriber listens to ``"all"`` publishers, or to ``"one"`` of them, in turn by the ids of
            the subscribers.
    """

    sndhwm: HighWaterMark = setting(
        1000, "The publisher's high-water mark in messages; 0 is unbounded.", least=0, most=INT32
    )
    rcvhwm: HighWaterMark = setting(
        1000,
        "A subscriber's high-water mark in messages; 0 is unbounded.",
        least=0,
        most=INT32,
        needs=(Need("client", ("pyzmq", "native")),),
    )
    nodrop: bool = setting(False, "Make the publisher wait at its high-water mark instead of dropping (XPUB_NODROP).")
    subscriptions: Literal["all", "one"] = setting(
        "all",
        "Publishers of each subscriber: all, or one, assigned in turn.",
        needs=(Need("publishers", least=2),),
    )

    def __post_init__(self) -> None:
        if self.sndhwm < 0:
            raise ValueError(f"sndhwm must be 0 (unbounded) or more messages, not {self.sndhwm}")
        if self.rcvhwm < 0:
            raise ValueError(f"rcvhwm must be 0 (unbounded) or more messages, not {self.rcvhwm}")

    @classmethod
    def of(cls, settings: Settings) -> ZmqSettings:
        """The system's own part of a step's settings."""
        return cls(**settings.system)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ZmqNative:
    """Options of the native clients' sockets, and the implementation of their publishers.

    Attributes:
        publisher: the implementation of the publishers.
        io_threads: libzmq's threads for input and output, 1 to 64.
        transport: the transport of the data messages: TCP, or Unix sockets (``"ipc"``).
        sndbuf, rcvbuf: the kernel's send and receive buffers in bytes; 0: the kernel's own sizes.
        secure: whether the data messages are encrypted with CURVE.
    """

    publisher: Literal["native", "pyzmq"] = setting("native", "Implementation of the publishers.", of_publishers=True)
    io_threads: int = setting(1, "Number of libzmq's I/O threads.")
    transport: Literal["tcp", "ipc"] = setting("tcp", "Transport of the data messages, tcp or ipc (Unix socket).")
    sndbuf: int = setting(
        0,
        "Size of the kernel's send buffer; 0 is the kernel's default.",
        metavar="BYTES",
        least=0,
        most=INT32,
    )
    rcvbuf: int = setting(
        0,
        "Size of the kernel's receive buffer; 0 is the kernel's default.",
        metavar="BYTES",
        least=0,
        most=INT32,
    )
    secure: bool = setting(False, "Encrypt the data messages with CURVE.", needs=(Need("client", ("pyzmq", "native")),))

    def __post_init__(self) -> None:
        if not 1 <= self.io_threads <= 64:
            raise ValueError(f"io_threads must be 1 to 64, not {self.io_threads}")
        if self.sndbuf < 0 or self.rcvbuf < 0:
            raise ValueError("sndbuf and rcvbuf are bytes, 0 or more")
