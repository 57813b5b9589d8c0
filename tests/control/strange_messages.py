"""Messages that a roster does not take, with the reason under which it counts them."""

from __future__ import annotations

import msgspec

from hydra.wire.messages import MAX_MESSAGE_BYTES, Ack, ChildExit, Error, Progress, Ready, encode
from hydra.wire.report_batch import MAX_BATCH_BYTES
from hydra.wire.report_batch import encode as encode_columns
from tests.control.rosters import EPOCH, batch, headed, hello, joined, received, report
from tests.golden_vectors.common import GOLDEN

_OF_A_SUBSCRIBER = (GOLDEN / "refused" / "controller" / "report-of-a-subscriber").read_bytes()
_HEAD, _PAYLOAD = batch([1, 3], 4)
_COLUMNS, _ = encode_columns([(1, received(7))])
STRANGE: list[tuple[str, bytes, bytes, bytes | None]] = [
    ("malformed", b"relay", b"", None),
    ("malformed", b"relay", b"{}", None),
    ("malformed", b"relay", b'{"type":"stop","epoch":5,"number":3,"stop_at_ns":1}', None),
    ("malformed", b"stranger", b"\xff", None),
    ("malformed", b"relay", _HEAD, None),
    ("malformed", b"relay", _HEAD, b""),
    ("malformed", b"relay", _HEAD, _PAYLOAD + bytes(8)),
    ("malformed", b"relay", headed([1], 4, _COLUMNS), _PAYLOAD),
    ("malformed", b"relay", headed([1, 3], 4, _COLUMNS[::-1]), _PAYLOAD),
    ("malformed", b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH)), _PAYLOAD),
    ("malformed", b"pub", *batch([7], 4)),
    ("malformed", b"relay", _OF_A_SUBSCRIBER, None),
    ("malformed", b"pub", _OF_A_SUBSCRIBER, None),
    ("malformed", b"relay", encode(report([1], 4)), None),
    ("oversized", b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH)).ljust(MAX_MESSAGE_BYTES + 1), None),
    ("oversized", b"relay", _HEAD, bytes(MAX_BATCH_BYTES + 1)),
    ("unannounced", b"stranger", encode(Ready(ids=[1], seq=4, epoch=EPOCH)), None),
    ("unannounced", b"stranger", encode(joined([1], incarnation=1)), None),
    ("unannounced", b"stranger", *batch([1], 4)),
    ("replayed", b"relay", encode(Ready(ids=[1], seq=3, epoch=EPOCH)), None),
    ("replayed", b"relay", *batch([1], 3)),
    ("replayed", b"relay", encode(joined([1], 3, incarnation=1)), None),
    ("foreign_id", b"relay", encode(Ready(ids=[9], seq=4, epoch=EPOCH)), None),
    ("foreign_id", b"relay", encode(Ready(ids=[1, 9], seq=4, epoch=EPOCH)), None),
    ("foreign_id", b"relay", encode(Ready(ids=[], seq=4, epoch=EPOCH)), None),
    ("foreign_id", b"relay", encode(joined([4], 4)), None),
    ("foreign_id", b"relay", *batch([3, 9], 4)),
    ("foreign_id", b"pub", encode(ChildExit(incarnation=0, ids=[1], seq=4, pid=101, status=-9, replaced=True)), None),
    ("out_of_epoch", b"relay", encode(Ack(ids=[1], seq=4, epoch=EPOCH + 1, command="configure")), None),
    ("out_of_epoch", b"pub", encode(report([7], 4, EPOCH + 1)), None),
    ("out_of_epoch", b"relay", *batch([1], 4, EPOCH + 1)),
    ("unexpected_hello", b"new", encode(hello([4])), None),
    ("unexpected_hello", b"new", encode(hello([9])), None),
    ("unexpected_hello", b"new", encode(hello([1, 9])), None),
    ("unexpected_hello", b"new", encode(hello([1], group="h")), None),
    ("unexpected_hello", b"new", encode(msgspec.structs.replace(hello([1]), ids=[])), None),
    ("replayed", b"relay", encode(hello([1, 2, 3])), None),
    ("repeated_hello", b"relay", encode(hello([1, 2, 3], seq=4, pid=51)), None),
    ("repeated_hello", b"relay", encode(hello([1, 2], seq=4)), None),
    ("duplicate_hello", b"new", encode(hello([1, 2, 3])), None),
    ("duplicate_hello", b"new", encode(hello([1], incarnation=5)), None),
    # What comes late is no offence.
    ("", b"relay", encode(Ready(ids=[1], seq=4, epoch=EPOCH - 1)), None),
    ("", b"relay", encode(Ack(ids=[1], seq=4, epoch=0, command="configure")), None),
    ("", b"relay", encode(Progress(ids=[1], seq=4, epoch=0, messages=1, time_ns=1)), None),
    ("", b"pub", encode(report([7], 4, EPOCH - 1)), None),
    ("", b"relay", encode(Error(ids=[1], seq=4, epoch=EPOCH - 1, message="late")), None),
    ("", b"relay", *batch([1], 4, EPOCH - 1)),
]
