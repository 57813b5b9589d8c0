"""The settings and options of ZMQ's sockets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hydra.model import Need, SystemOptions, SystemSettings, setting

INT32: Final = 2**31 - 1
ZMTP: Final = "zmtp"
"""The implementation whose subscribers speak ZMTP without libzmq; it has no publishers."""
NATIVES: Final = ("native", ZMTP)
"""The implementations of Hydra's native program."""
DATA_KEY: Final = "HYDRA_DATA_SERVER_KEY"
"""The variable with the run's public key for data messages (CURVE); clients without it do not encrypt."""
DATA_SECRET: Final = "HYDRA_DATA_SERVER_SECRET"  # noqa: S105  # a variable's name
"""The variable with the secret key of this pair, which only publishers have."""


@dataclass(frozen=True, slots=True)
class ZmqSettings(SystemSettings):
    """The settings that can change between two steps.

    Attributes:
        sndhwm: the publisher's high-water mark for each subscriber, in messages; 0: no limit.
        rcvhwm: a subscriber's high-water mark, in messages; 0: no limit.
        nodrop: whether the publisher waits at its high-water mark instead of dropping (XPUB_NODROP); ``blocked_s`` is
            the time that it waited.
        subscriptions: each subscriber listens to ``"all"`` publishers, or to ``"one"`` of them, in turn by the ids of
            the subscribers.
    """

    sndhwm: int = setting(
        1000, "The publisher's high-water mark in messages; 0 is unbounded.", least=0, most=INT32, compared=True
    )
    rcvhwm: int = setting(
        1000,
        "A subscriber's high-water mark in messages; 0 is unbounded.",
        least=0,
        most=INT32,
        needs=(Need("client", ("pyzmq", "native")),),
        compared=True,
    )
    nodrop: bool = setting(
        False, "Make the publisher wait at its high-water mark instead of dropping (XPUB_NODROP).", compared=True
    )
    subscriptions: Literal["all", "one"] = setting(
        "all",
        "Publishers of each subscriber: all, or one, assigned in turn.",
        needs=(Need("publishers", least=2),),
        compared=True,
    )


@dataclass(frozen=True, slots=True)
class ZmqNative(SystemOptions):
    """Options of the native clients' sockets, and the implementation of their publishers.

    Attributes:
        publisher: the implementation of the publishers.
        io_threads: libzmq's threads for input and output.
        transport: the transport of the data messages: TCP, or Unix sockets (``"ipc"``).
        sndbuf, rcvbuf: the kernel's send and receive buffers in bytes; 0: the kernel's own sizes.
        secure: whether the data messages are encrypted with CURVE.
    """

    publisher: Literal["native", "pyzmq"] = setting("native", "Implementation of the publishers.", of_publishers=True)
    io_threads: int = setting(1, "Number of libzmq's I/O threads.", least=1, most=64)
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
