"""What a subscriber has received and not counted yet."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.client.subscriber_state import MOST_BATCHES, MOST_MESSAGES, BufferedBatches, ReceiveBuffer
from hydra.wire.data_message import pack


def taken(arrivals: ReceiveBuffer) -> BufferedBatches:
    arrived = arrivals.take()
    assert arrived is not None
    return arrived


def test_batches_come_back_in_their_order_with_sizes_and_times() -> None:
    arrivals = ReceiveBuffer()
    arrivals.add([pack(1, 0, n, n) for n in range(3)], [(100, 1), (101, 2)])
    arrivals.add([pack(1, 0, 3, 3, 30), pack(1, 0, 4, 4, 40)], [(200, 2)])
    arrived = taken(arrivals)
    assert arrived.headers["sequence"].tolist() == [0, 1, 2, 3, 4]
    assert arrived.headers["time_ns"].tolist() == [0, 1, 2, 3, 4]
    assert arrived.sizes.tolist() == [24, 24, 24, 30, 40]
    assert arrived.read_ns.tolist() == [100, 101, 200]
    assert arrived.counts.tolist() == [1, 2, 2]
    assert arrivals.take() is None


def test_messages_without_a_whole_header_are_left_out() -> None:
    arrivals = ReceiveBuffer()
    arrivals.add([b"", b"short"], [(1, 2)])
    arrivals.add([b"short", pack(1, 0, 7, 0), pack(1, 0, 8, 0, 25), b""], [(2, 1), (3, 2), (4, 1)])
    # As many bytes as two headers, but not theirs.
    arrivals.add([b"x" * 23, b"y" * 25], [(6, 2)])
    arrived = taken(arrivals)
    assert arrived.sizes.tolist() == [24, 25, 25]
    assert arrived.read_ns.tolist() == [3, 6]
    assert arrived.headers["sequence"][:2].tolist() == [7, 8]
    assert arrived.counts.tolist() == [2, 1]


def test_strangers_are_taken_out_with_their_times_and_batches() -> None:
    arrivals = ReceiveBuffer()
    for epochs, read_ns in (([1, 2], 10), ([2], 20), ([2, 1, 1], 30)):
        arrivals.add([pack(epoch, 0, 0, 0, 24 + epoch) for epoch in epochs], [(read_ns, len(epochs))])
    arrived = taken(arrivals)
    own = arrived.only(arrived.headers["epoch"] == np.uint32(1))
    assert own.counts.tolist() == [1, 2]
    assert own.read_ns.tolist() == [10, 30]
    assert own.sizes.tolist() == [25, 25, 25]


@pytest.mark.parametrize(("messages", "batches"), [(MOST_BATCHES, MOST_BATCHES), (MOST_MESSAGES, 2)])
def test_it_is_full_by_messages_and_by_batches(messages: int, batches: int) -> None:
    arrivals = ReceiveBuffer()
    of_each = [(1, 1)] * (batches - 2)
    arrivals.add([pack(1, 0, 0, 0)] * (messages - 1), [*of_each, (1, messages - 1 - len(of_each))])
    assert not arrivals.full
    arrivals.add([pack(1, 0, 0, 0)], [(1, 1)])
    assert arrivals.full


def test_the_first_batches_and_the_others() -> None:
    arrivals = ReceiveBuffer()
    arrivals.add([pack(1, 0, n, n, 24 + n) for n in range(5)], [(10, 2), (20, 3)])
    arrived = taken(arrivals)
    one, other = arrived.split(1)
    assert (one.read_ns.tolist(), one.counts.tolist(), one.sizes.tolist()) == ([10], [2], [24, 25])
    assert (other.read_ns.tolist(), other.counts.tolist(), other.sizes.tolist()) == ([20], [3], [26, 27, 28])
    assert other.headers["sequence"].tolist() == [2, 3, 4]
    assert [len(some.counts) for some in (*arrived.split(0), *arrived.split(2))] == [2, 2]
