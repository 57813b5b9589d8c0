"""The reports of one epoch, as relays bring them."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.control.epoch_replies import ReceivedReports
from hydra.wire.report_batch import encode
from hydra.wire.subscriber_table import EMPTY, table_of
from tests.measure.reports import received


@pytest.mark.parametrize("pages_from", [1, 1_000_000])
def test_batches_are_one_table_whether_their_payloads_have_pages_of_their_own(
    pages_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hydra.control.epoch_replies._PAGES_FROM", pages_from)
    reports = {client: received(client, lost=client % 3) for client in range(1, 301)}
    reported = ReceivedReports()
    assert reported.table() == EMPTY
    for first in (101, 1, 201):
        ids = range(first, first + 100)
        batch = BitMap(ids), *encode([(client, reports[client]) for client in ids])
        assert reported.add(*batch)
        assert reported.add(*batch)  # the same once more
        assert not reported.add(batch[0], batch[1], batch[2] + b"\0")
    assert reported.ids == BitMap(range(1, 301))
    assert reported.table() == table_of(reports)
    assert reported.table() is reported.table()  # it is made once
