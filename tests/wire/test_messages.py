"""Decoding: what is no message is refused, whatever it is, and what is one survives the way there and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra.model import LAG_BINS, Histogram, LedgerCounts, SharedSettings, SubscriberReport
from hydra.wire.buckets import BUCKETS
from hydra.wire.checks import MAX_ABSENT, MAX_MISSING_RANGES, MAX_UNACKNOWLEDGED_RANGES
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Configure,
    FromClient,
    FromController,
    Ping,
    ProtocolError,
    Ready,
    Report,
    decode_from_client,
    decode_from_controller,
    encode,
)
from tests.control.golden_messages import FROM_CLIENT, FROM_CONTROLLER

Decode = Callable[[bytes], FromClient | FromController]
DECODERS: list[Decode] = [decode_from_client, decode_from_controller]
FRAMES = [encode(m) for m in (*FROM_CLIENT.values(), *FROM_CONTROLLER.values())]


def decodes_or_refuses(frame: bytes) -> None:
    """Neither decoder may raise anything but ProtocolError; what they take can be sent again."""
    for decode in DECODERS:
        try:
            message = decode(frame)
        except ProtocolError:
            continue
        assert decode(encode(message)) == message


@given(st.binary(max_size=300))
def test_any_bytes(frame: bytes) -> None:
    decodes_or_refuses(frame)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_any_json(value: object) -> None:
    decodes_or_refuses(json.dumps(value).encode())


@given(st.data())
def test_golden_frames_with_bytes_changed(data: st.DataObject) -> None:
    frame = bytearray(data.draw(st.sampled_from(FRAMES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not frame:
            break
    decodes_or_refuses(bytes(frame))


@given(st.data())
def test_golden_frames_with_fields_changed(data: st.DataObject) -> None:
    """A well-formed message with one value, anywhere in it, put in the place of another."""
    message = json.loads(data.draw(st.sampled_from(FRAMES)))
    place = message
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = data.draw(_JSON)
            break
        place = place[key]
    decodes_or_refuses(json.dumps(message).encode())


def test_white_space_and_the_order_of_fields_do_not_matter() -> None:
    frame = b' { "seq" : 3,\n"epoch":1 , "ids":[2],"v":2,"type":"ready", "endpoint":""} '
    assert decode_from_client(frame) == Ready(ids=[2], seq=3, epoch=1)


def test_a_rate_without_a_fraction_is_a_rate() -> None:
    frame = encode(Configure(epoch=1, settings=SharedSettings(rate=10000.0, burst=100), publishers=[], probe=True))
    for text in (b"10000", b"1e4", b"1.0e+04"):
        again = decode_from_controller(frame.replace(b"10000.0", text))
        assert isinstance(again, Configure)
        assert again.settings.rate == 10000.0


def test_fields_with_a_default_may_be_left_out() -> None:
    assert decode_from_controller(b'{"type":"ping","time_ns":5}') == Ping(time_ns=5)


def test_the_longest_message_and_one_byte_more() -> None:
    frame = encode(Ready(ids=[1], seq=1, epoch=1))
    longest = frame + b" " * (MAX_MESSAGE_BYTES - len(frame))
    assert decode_from_client(longest) == Ready(ids=[1], seq=1, epoch=1)
    for decode in DECODERS:
        with pytest.raises(ProtocolError, match="above the limit"):
            decode(longest + b" ")


def full_report() -> Report:
    """The longest report of a subscriber to one publisher that the limits allow."""
    great = 2**63 - 1
    golden = FROM_CLIENT["report-subscriber"]
    assert isinstance(golden, Report)
    body = golden.subscriber
    assert body is not None
    ledger = LedgerCounts(
        publisher=2**32 - 1,
        received=great,
        in_window=great,
        missing=great,
        missing_ranges=[(great - 2 * n, great - 2 * n) for n in reversed(range(MAX_MISSING_RANGES))],
        truncated=True,
    )
    counts = [x for index in range(BUCKETS) for x in (index, 10**9)]
    return msgspec.structs.replace(
        golden,
        subscriber=replace(
            body, ledgers=[ledger], latency=Histogram(counts, 0, 1), absent=[(great, great)] * MAX_ABSENT
        ),
    )


def test_the_longest_report_fits_into_a_message() -> None:
    report = full_report()
    assert len(encode(report)) <= MAX_MESSAGE_BYTES
    assert decode_from_client(encode(report)) == report


def test_the_longest_report_of_a_publisher_fits_into_a_message() -> None:
    golden = FROM_CLIENT["report-publisher-kafka"]
    assert isinstance(golden, Report)
    assert golden.publisher is not None
    ranges = [(2**62 + 2 * n, 2**62 + 2 * n) for n in range(MAX_UNACKNOWLEDGED_RANGES)]
    counts = [x for index in range(BUCKETS) for x in (index, 10**5)]
    report = msgspec.structs.replace(
        golden, publisher=replace(golden.publisher, unacknowledged=ranges, lag=Histogram(counts, 0, 1))
    )
    assert len(encode(report)) <= MAX_MESSAGE_BYTES
    assert decode_from_client(encode(report)) == report


def subscriber(**changes: object) -> bytes:
    golden = FROM_CLIENT["report-subscriber"]
    assert isinstance(golden, Report)
    body = golden.subscriber
    assert body is not None
    changed: SubscriberReport = replace(body, **changes)  # type: ignore[arg-type]
    return encode(msgspec.structs.replace(golden, subscriber=changed))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bytes": -1}, "bytes"),
        ({"stale": 2**63}, "stale"),
        ({"absent": [(5, 4)]}, "absent"),
        ({"absent": [(1, 2)] * (MAX_ABSENT + 1)}, "absent"),
        ({"lag_bins_us": [1] * (LAG_BINS + 1)}, "lag_bins_us"),
        ({"lag_bins_us": [None] * (LAG_BINS - 1) + [-1]}, "lag_bins_us"),
        ({"lag_bins_us": [2**63] * LAG_BINS}, "lag_bins_us"),
        ({"latency": Histogram([1], 0, 0)}, "latency"),
        ({"latency": Histogram([BUCKETS, 1], 0, 0)}, "latency"),
        ({"latency": Histogram([5, 1, 5, 1], 0, 0)}, "latency"),
        ({"latency": Histogram([5, -1], 0, 0)}, "latency"),
        ({"latency": Histogram([-BUCKETS - 1, 1], 0, 0)}, "latency"),
        ({"latency": Histogram([], -3_600_000_001, 0)}, "min_us"),
        ({"latency": Histogram([], 0, -3_600_000_001)}, "max_us"),
        ({"ledgers": [LedgerCounts(-1, 0, 0, 0)]}, "publisher"),
        ({"ledgers": [LedgerCounts(1, 0, 0, 0, [(1, 0)])]}, "missing_ranges"),
        ({"ledgers": [LedgerCounts(1, 0, 0, 0, [(1, 3), (3, 4)])]}, "missing_ranges"),
        ({"ledgers": [LedgerCounts(1, 0, 0, 0, [(n, n) for n in range(MAX_MISSING_RANGES + 1)])]}, "missing_ranges"),
    ],
)
def test_a_report_that_no_client_can_mean_is_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        decode_from_client(subscriber(**changes))


def test_latencies_below_zero_are_good() -> None:
    counts = [-BUCKETS, 1, -23_221, 5, -2, 1, 0, 3]
    assert decode_from_client(subscriber(latency=Histogram(counts, -3_600_000_000, 0)))


def test_a_publisher_is_never_early() -> None:
    golden = FROM_CLIENT["report-publisher-zmq"]
    assert isinstance(golden, Report)
    assert golden.publisher is not None
    early = replace(golden.publisher, lag=Histogram([-2, 1], -1, -1))
    with pytest.raises(ProtocolError, match="lag"):
        decode_from_client(encode(msgspec.structs.replace(golden, publisher=early)))


def test_touching_missing_ranges_are_good() -> None:
    assert decode_from_client(subscriber(ledgers=[LedgerCounts(1, 0, 0, 9, [(1, 3), (4, 4)])]))
