"""The messages of relays to a roster, and all that a message could change of it."""

from __future__ import annotations

import copy
from dataclasses import replace

import msgspec

from hydra.control.roster import Roster
from hydra.model import SubscriberReport
from hydra.wire.messages import Batch, ChildExit, FromClient, Hello, Joined, Report, encode
from hydra.wire.report_batch import Columns
from hydra.wire.report_batch import encode as encode_columns
from tests.control.golden_messages import FROM_CLIENT, RECEIVED

EPOCH = 5
_PUBLISHER = FROM_CLIENT["report-publisher-zmq"]


def hello(ids: list[int], **changes: object) -> Hello:
    """A relay's, for all clients of its group."""
    golden = FROM_CLIENT["hello-subscriber"]
    assert isinstance(golden, Hello)
    return msgspec.structs.replace(golden, **{"ids": ids, "group": "g", "seq": 1, "pid": 50, **changes})


def joined(ids: list[int], seq: int = 2, incarnation: int = 0, pid: int | None = None) -> Joined:
    """Each in a process of its own, 100 above its id, or all in one."""
    pids = [100 + client if pid is None else pid for client in ids]
    return Joined(ids=ids, seq=seq, incarnations=[incarnation] * len(ids), pids=pids)


HERE = hello([1]).boot_id, hello([1]).time_namespace
"""The host of all relays that name it."""
NETWORK = hello([1]).network_namespace
"""The network namespace they are in."""


def report(ids: list[int], seq: int, epoch: int = EPOCH, golden: FromClient = _PUBLISHER) -> Report:
    assert isinstance(golden, Report)
    return msgspec.structs.replace(golden, ids=ids, seq=seq, epoch=epoch)


def received(messages: int) -> SubscriberReport:
    """A subscriber's report of this many messages."""
    return replace(RECEIVED, batches=messages)


def batch(ids: list[int], seq: int, epoch: int = EPOCH, *, batches: int = 7) -> tuple[bytes, bytes]:
    """Both frames of the reports of these clients."""
    columns, payload = encode_columns([(client, received(batches)) for client in ids])
    return encode(Batch(ids=ids, seq=seq, epoch=epoch, columns=columns)), payload


def headed(ids: list[int], seq: int, columns: Columns) -> bytes:
    return encode(Batch(ids=ids, seq=seq, epoch=EPOCH, columns=columns))


def state(roster: Roster) -> object:
    """All that a message could change, counters apart."""
    answers = roster.answers
    present = list(roster.present())
    return copy.deepcopy(
        (
            (answers.epoch, {name: list(ids) for name, ids in answers._acks.items()}, list(answers.ready)),
            (answers.endpoints, answers.publisher_reports, answers.progress, answers.errors),
            (list(answers.subscriber_reports.ids), answers.subscriber_reports.table()),
            [(c, roster.incarnation(c), list(roster.process(c)), roster.host(c)) for c in present],
            set(roster.relays()),
            roster.everyone(),
            roster._exits,
            roster.watch.samples(),
        )
    )


def child_exit(ids: list[int], seq: int, pid: int, status: int = -9, *, replaced: bool = True, after: int = 0) -> bytes:
    return encode(ChildExit(ids=ids, seq=seq, incarnation=after, pid=pid, status=status, replaced=replaced))
