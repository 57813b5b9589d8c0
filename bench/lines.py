"""All lines of the table, with their goals, and how each is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench import programs
from bench.clients import zmq
from bench.line import Figure, Line, at_least

_CPU = Figure("µs of a subscriber's CPU a message")


def lines() -> Sequence[Line]:
    """Every line, in the order in which it is measured."""
    return [*_zmq()]


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
            lacks=programs.lacks,
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
        )


def _size(message_bytes: int) -> str:
    return f"{message_bytes} B" if message_bytes < 1000 else f"{message_bytes / 1000:g} kB"
