"""All lines of the table, with their goals, and how each is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import get_args

from bench import limits, programs
from bench.clients import kafka, zmq
from bench.clients.kafka_loop import Library
from bench.line import Figure, Line, at_least

_CPU = Figure("µs of a subscriber's CPU a message")


def lines() -> Sequence[Line]:
    """Every line, in the order in which it is measured."""
    broker = kafka.Kafka()
    every = [*_limits(broker), *_zmq(), *_kafka(broker)]
    needed = [line.limit for line in every if line.limit is not None and line.limit not in every]
    return [*dict.fromkeys(needed), *every]


@cache
def tcp_limit(subscribers: int, message_bytes: int, send_bytes: int = limits.SEND_BYTES) -> Line:
    """What one process can send to others over TCP; the same object for the same arguments."""
    how_much = "8 KiB" if send_bytes == limits.SEND_BYTES else "one message"
    return Line(
        "limits",
        f"TCP fan-out, {how_much} a send(), {subscribers:,} × {_size(message_bytes)}",
        "messages/s",
        None,
        partial(limits.tcp_fanout, subscribers, message_bytes, send_bytes),
        None,
        "One process writes to each socket that takes data; forked processes with one socket each count bytes for 2 s.",
        quick=send_bytes == 1 and subscribers == 30,
        pairs=3,
        pair_s=4 if subscribers < 1000 else 8,
        lacks=programs.lacks,
    )


@cache
def connected_limit(library: str, processes: int) -> Line:
    """What it takes to fork processes that connect; the same object for the same arguments.

    Args:
        library: "tcp" for plain sockets, or "zmq".
        processes: how many.
    """
    return Line(
        "limits",
        f"{processes:,} processes forked, connected: {'TCP' if library == 'tcp' else 'libzmq'}",
        "s",
        None,
        partial(limits.connected, library, processes),
        None,
        "A process forks others; each connects to one publisher, receives one message and waits. The PSS is that of a "
        "hundred of them.",
        (Figure("MB of PSS a process"),),
        quick=processes == 1000,
        pairs=3,
        pair_s=1 + processes / 1000,
        lacks=programs.lacks,
    )


def _limits(broker: kafka.Kafka) -> Iterator[Line]:
    """Limits that no other line names."""
    yield tcp_limit(30, 24, 1)
    yield tcp_limit(480, 24, 1)
    yield connected_limit("tcp", 1000)
    yield connected_limit("zmq", 1000)
    yield Line(
        "limits",
        "100 processes with one connection: librdkafka",
        "MB of PSS a process",
        None,
        partial(broker.connected_mb, 100),
        None,
        "A process forks others; each makes a consumer and asks for the offsets of a partition.",
        pairs=3,
        pair_s=4,
        lacks=kafka.lacks_native,
        within=broker,
    )


def _zmq() -> Iterator[Line]:
    how = (
        "Rate max, drops allowed, high-water marks of 1,000: messages/s that all subscribers receive in 2 s, after 1 s "
        "of messages. The bare side is one publisher, and forked subscribers of {} that only count."
    )
    for subscribers, size in ((30, 24), (120, 24), (480, 24), (30, 1000)):
        yield Line(
            "clients",
            f"native ZMQ : libzmq, {subscribers} × {_size(size)}",
            "messages/s",
            at_least(0.95),
            partial(zmq.native, subscribers, size),
            partial(zmq.libzmq, subscribers, size),
            how.format("libzmq"),
            (_CPU,),
            quick=(subscribers, size) == (30, 24),
            pair_s=9 if subscribers < 480 else 12,
            lacks=programs.lacks,
            limit=tcp_limit(subscribers, size),
        )
    for subscribers in (30, 480):
        yield Line(
            "clients",
            f"pyzmq : pyzmq, {subscribers} × 24 B",
            "messages/s",
            at_least(0.80),
            partial(zmq.pyzmq, subscribers, 24),
            partial(zmq.bare_pyzmq, subscribers, 24),
            how.format("pyzmq"),
            (_CPU,),
            quick=subscribers == 30,
            pair_s=10 if subscribers < 480 else 20,
            limit=tcp_limit(subscribers, 24),
        )


_KAFKA = (
    "One broker started by Hydra, records of 100 bytes, acks 1, batches of 16,384 bytes, linger 5 ms, one partition. "
)
_PRODUCE = "A producer sends for 2 s: acknowledged messages/s."
_CONSUME = "A consumer reads a log of {:,} messages, from the first one on."


def _kafka(broker: kafka.Kafka) -> Iterator[Line]:
    read = kafka.LOG_RECORDS
    yield Line(
        "clients",
        "native Kafka : librdkafka, producer, 100 B",
        "messages/s",
        at_least(0.97),
        partial(broker.producer, kafka.NATIVE),
        broker.bare_producer,
        _KAFKA + _PRODUCE,
        quick=True,
        pair_s=7,
        lacks=kafka.lacks_native,
        within=broker,
        limit=tcp_limit(1, 100),
    )
    yield Line(
        "clients",
        "native Kafka : librdkafka, consumer, 100 B",
        "messages/s",
        at_least(0.95),
        partial(broker.consumer, kafka.NATIVE),
        broker.bare_consumer,
        _KAFKA + _CONSUME.format(read[kafka.NATIVE]),
        quick=True,
        pair_s=8,
        lacks=kafka.lacks_native,
        within=broker,
        limit=tcp_limit(1, 100),
    )
    for count in (480, 1920):
        yield Line(
            "clients",
            f"native Kafka : librdkafka, {count:,} consumers, 100 B",
            "messages/s",
            at_least(0.95),
            partial(broker.consumers, count),
            partial(broker.bare_consumers, count),
            _KAFKA
            + f"Forked consumers that are connected read the same log, {kafka.MANY_RECORDS:,} messages together, "
            "from the first message of any of them to the last.",
            (_CPU,),
            pairs=5 if count <= 480 else 3,
            pair_s=30 if count <= 480 else 60,
            lacks=kafka.lacks_native,
            within=broker,
            limit=tcp_limit(count, 100),
        )
    for library in get_args(Library):
        yield Line(
            "clients",
            f"{library} : {library}, producer, 100 B",
            "messages/s",
            at_least(0.75),
            partial(broker.producer, library),
            partial(broker.bare_producer, library),
            _KAFKA + _PRODUCE,
            quick=library == "confluent-kafka",
            pair_s=8,
            lacks=kafka.lacks_java,
            within=broker,
            limit=tcp_limit(1, 100),
        )
        yield Line(
            "clients",
            f"{library} : {library}, consumer, 100 B",
            "messages/s",
            at_least(0.75),
            partial(broker.consumer, library),
            partial(broker.bare_consumer, library),
            _KAFKA + _CONSUME.format(read[library]),
            quick=library == "kafka-python",
            pair_s=9,
            lacks=kafka.lacks_java,
            within=broker,
            limit=tcp_limit(1, 100),
        )
    yield Line(
        "tools",
        "native Kafka : ProducerPerformance, 100 B",
        "messages/s",
        at_least(2.0),
        partial(broker.producer, kafka.NATIVE),
        broker.tool_producer,
        _KAFKA + "Hydra sends for 2 s; the tool of Kafka sends 4 million messages, the first of which warm it up.",
        quick=True,
        pair_s=12,
        lacks=kafka.lacks_native,
        within=broker,
    )
    yield Line(
        "tools",
        "native Kafka : ConsumerPerformance, 100 B",
        "messages/s",
        at_least(1.5),
        partial(broker.consumer, kafka.NATIVE),
        broker.tool_consumer,
        _KAFKA + _CONSUME.format(read[kafka.NATIVE]),
        pair_s=12,
        lacks=kafka.lacks_native,
        within=broker,
    )


def _size(message_bytes: int) -> str:
    return f"{message_bytes} B" if message_bytes < 1000 else f"{message_bytes / 1000:g} kB"
