"""Decoding: what is no message is refused, whatever it is, and what is one survives the way there and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.model import Histogram, SharedSettings
from hydra.wire import messages as wire
from hydra.wire.buckets import BUCKETS
from hydra.wire.report_validation import MAX_UNACKNOWLEDGED_RANGES
from tests.control.golden_messages import FROM_CLIENT, FROM_CONTROLLER

Decode = Callable[[bytes], wire.FromClient | wire.FromController]
DECODERS: list[Decode] = [wire.decode_from_client, wire.decode_from_controller]
FRAMES = [wire.encode(m) for m in (*FROM_CLIENT.values(), *FROM_CONTROLLER.values())]


def decodes_or_refuses(frame: bytes) -> None:
    """Neither decoder may raise anything but wire.ProtocolError; what they take can be sent again."""
    for decode in DECODERS:
        try:
            message = decode(frame)
        except wire.ProtocolError:
            continue
        assert decode(wire.encode(message)) == message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=25)
@given(st.binary(max_size=300) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_and_any_json(frame: bytes) -> None:
    decodes_or_refuses(frame)


@settings(max_examples=25)
@given(st.data())
def test_golden_frames_with_bytes_changed(data: st.DataObject) -> None:
    frame = bytearray(data.draw(st.sampled_from(FRAMES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not frame:
            break
    decodes_or_refuses(bytes(frame))


@settings(max_examples=25)
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


def test_white_space_the_order_of_fields_and_those_with_a_default_do_not_matter() -> None:
    frame = b' { "seq" : 3,\n"epoch":1 , "ids":[2],"type":"ready", "endpoint":""} '
    assert wire.decode_from_client(frame) == wire.Ready(ids=[2], seq=3, epoch=1)
    assert wire.decode_from_controller(b'{"type":"ping","time_ns":5}') == wire.Ping(time_ns=5)


def test_a_rate_without_a_fraction_is_a_rate() -> None:
    settings = SharedSettings(rate=10000.0, burst=100)
    frame = wire.encode(wire.Configure(epoch=1, number=1, settings=settings, publishers=[], probe=True))
    for text in (b"10000", b"1e4", b"1.0e+04"):
        again = wire.decode_from_controller(frame.replace(b"10000.0", text))
        assert isinstance(again, wire.Configure)
        assert again.settings.rate == 10000.0


def test_the_longest_message_and_one_byte_more() -> None:
    frame = wire.encode(wire.Ready(ids=[1], seq=1, epoch=1))
    longest = frame + b" " * (wire.MAX_MESSAGE_BYTES - len(frame))
    assert wire.decode_from_client(longest) == wire.Ready(ids=[1], seq=1, epoch=1)
    for decode in DECODERS:
        with pytest.raises(wire.ProtocolError, match="above the limit"):
            decode(longest + b" ")


def report(of: str, **changes: Any) -> wire.Report:
    """The golden one with changes in its body."""
    golden = FROM_CLIENT[of]
    assert isinstance(golden, wire.Report)
    return msgspec.structs.replace(golden, publisher=replace(golden.publisher, **changes))


def test_the_longest_report_fits_into_a_message() -> None:
    longest = report(
        "report-publisher-kafka",
        unacknowledged=[(2**62 + 2 * n, 2**62 + 2 * n) for n in range(MAX_UNACKNOWLEDGED_RANGES)],
        lag=Histogram([x for index in range(BUCKETS) for x in (index, 10**5)], 0, 1),
    )
    assert len(wire.encode(longest)) <= wire.MAX_MESSAGE_BYTES
    assert wire.decode_from_client(wire.encode(longest)) == longest


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bytes": -1}, "bytes"),
        ({"failed": 2**63}, "failed"),
        *(
            ({"lag": Histogram(counts, 0, 0)}, "lag")
            for counts in ([1], [BUCKETS, 1], [5, 1, 5, 1], [5, -1], [-BUCKETS - 1, 1])
        ),
        ({"lag": Histogram([], -1, 0)}, "min_us"),
        ({"lag": Histogram([], 0, -1)}, "max_us"),
        *(
            ({"unacknowledged": gaps}, "unacknowledged")
            for gaps in ([(1, 0)], [(1, 3), (3, 4)], [(n, n) for n in range(MAX_UNACKNOWLEDGED_RANGES + 1)])
        ),
    ],
)
def test_a_report_that_no_client_can_mean_is_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(wire.ProtocolError, match=text):
        wire.decode_from_client(wire.encode(report("report-publisher-kafka", **changes)))


def test_ranges_that_touch_are_good() -> None:
    touching = report("report-publisher-kafka", unacknowledged=[(1, 3), (4, 4)])
    assert wire.decode_from_client(wire.encode(touching)) == touching


def test_a_publisher_is_never_early() -> None:
    with pytest.raises(wire.ProtocolError, match="lag"):
        wire.decode_from_client(wire.encode(report("report-publisher-zmq", lag=Histogram([-2, 1], -1, -1))))
