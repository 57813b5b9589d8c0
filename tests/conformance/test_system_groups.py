"""What subscribers of any system must do as members of a group: each message reaches one of them."""

from __future__ import annotations

import contextlib

from hydra.wire.data_message import HEADER
from hydra.wire.messages import Progress
from tests.conformance.bench import CLIENT, ONE, Bench
from tests.conformance.system_stage import Subject, SystemStage, SystemStep, command
from tests.conformance.systems import each
from tests.suite.bitmaps import decode_bitmap

MEMBERS = [CLIENT, CLIENT + 1, CLIENT + 2]
MESSAGES = 300


def grouped(subject: Subject) -> bool:
    """Whether the subscribers are a group."""
    return subject.group != ""


@each(grouped)
def test_each_message_reaches_one_member(subject: Subject, stage: SystemStage, bench: Bench) -> None:
    # Members of another test would take their shares.
    bench.launch(command(subject, "subscriber"), "", first_id=CLIENT, count=len(MEMBERS))
    with contextlib.closing(SystemStep(subject, stage, bench)) as members:
        members.begun(1, ONE, ids=MEMBERS)
        members.write(1, range(MESSAGES), ONE)

        def taken() -> int:
            reported = (bench.peer.messages_of(Progress, member, epoch=1) for member in MEMBERS)
            return sum(progress[-1].messages for progress in reported if progress)

        bench.peer.wait(lambda: taken() >= MESSAGES, "all messages")
        reports = bench.subscriber_reports(MEMBERS, 1, {ONE: MESSAGES}, system=members.end_of_data(), quiet_s=0.2)
    listed: list[int] = []
    for report in reports.values():
        (ledger,) = report.ledgers
        assert (ledger.missing, ledger.duplicates, report.stale) == (0, 0, 0)
        own = decode_bitmap(ledger.received_bits)
        sequences = [8 * byte + bit for byte, value in enumerate(own) for bit in range(8) if value >> bit & 1]
        assert 0 < len(sequences) == ledger.received
        listed += sequences
    assert sorted(listed) == list(range(MESSAGES))
    assert sum(report.bytes for report in reports.values()) == MESSAGES * HEADER.size
