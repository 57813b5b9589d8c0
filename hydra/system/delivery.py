"""What becomes of the messages in a system: what it acknowledges, orders, divides, queues and keeps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class QueueCapacity:
    """How many messages can wait for a slow subscriber before a message is lost.

    Attributes:
        queue: messages that the system's queues hold; None: there is no limit.
        queues: the names of the settings with this limit, as text.
        kernel: maximum number of further messages in the kernel's buffers; the actual number depends on the traffic.
    """

    queue: float | None
    queues: str
    kernel: float = 0.0


@dataclass(frozen=True, slots=True)
class MessageLog:
    """A log in which servers store what is sent, so a step may have no subscribers.

    Attributes:
        read_after: whether subscribers read from the log, after everything has been sent.
        keeps_all: whether Hydra's servers store the messages of all steps, and not only of the last ones.
    """

    read_after: bool = False
    keeps_all: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryRules:
    """How a system delivers the messages of a step.

    Attributes:
        queue: name of the queue that fills if the system is the bottleneck, for verdicts, such as ``high-water mark``.
        guarantees: what it acknowledges to publishers and what it keeps, as a sentence without its subject.
        traffic: the shared settings of traffic that its clients obey, beside the size of messages.
        group: the consumer group of the subscribers, of which at least one member receives each message. "" means no
            group: every subscriber receives each message.
        silent_group: what a user checks if no member of a group receives anything; "": there is nothing special.
        one_publisher: whether each subscriber subscribes to one publisher only (:mod:`hydra.wire.arrays`).
        held_back_s: the longest time by which settings delay a message, such as the wait of a producer for a full
            batch.
        capacity: how many messages can wait for a slow subscriber before messages are lost; None: unknown.
        log_acknowledges: whether only the growth of the log shows how many messages the servers accepted.
        log: None: there is none that shows what arrived.
    """

    queue: str
    guarantees: str = ""
    traffic: Collection[Literal["topics", "keys", "wildcard"]] = ()
    group: str = ""
    silent_group: str = ""
    one_publisher: bool = False
    held_back_s: float = 0.0
    capacity: QueueCapacity | None = None
    log_acknowledges: bool = False
    log: MessageLog | None = None
