"""JSON payloads: real records, as compressible as was asked for."""

from __future__ import annotations

import json
import zlib
from itertools import islice

import pytest

from hydra.model import SharedSettings
from hydra.wire.data_message import BATCH_BYTES, SHARE_OF, batch, compression, contents


def settings_of(size: int, ratio: float, smallest: int | None = None) -> SharedSettings:
    return SharedSettings(message_size=size, message_size_min=smallest, payload="json", payload_ratio=ratio)


@pytest.mark.parametrize(
    "settings",
    [
        settings_of(100, 4),
        settings_of(200, 4),
        settings_of(2500, 2, 2000),
        settings_of(2500, 8, 2000),
        settings_of(100_000, 4),
    ],
)
def test_the_share_gives_the_ratio(settings: SharedSettings) -> None:
    found = compression(settings)
    given = batch(settings, found.share)
    assert len(given) / len(zlib.compress(given)) == found.ratio == pytest.approx(settings.payload_ratio, rel=0.03)
    assert BATCH_BYTES / 2 < len(given) <= BATCH_BYTES


@pytest.mark.parametrize(("ratio", "share"), [(1, SHARE_OF), (1000, 0)])
def test_what_cannot_be_reached_is_come_close_to(ratio: float, share: int) -> None:
    found = compression(settings_of(1000, ratio))
    assert found.share == share
    assert 1.3 < found.ratio < 30


def test_only_what_it_depends_on_is_looked_at() -> None:
    one, other = settings_of(1000, 4), SharedSettings(rate=7.0, message_size=1000, payload="json", messages=9)
    assert compression(one) is compression(other)


@pytest.mark.parametrize(("smallest", "size"), [(133, 133), (134, 134), (133, 3000)])
@pytest.mark.parametrize("share", [0, 2500, SHARE_OF])
def test_every_record_is_json(smallest: int, size: int, share: int) -> None:
    settings = settings_of(size, 4, smallest)
    records = list(islice(contents(settings, share), 200))
    assert all(smallest - 24 <= len(record) <= size - 24 for record in records)
    read = [json.loads(record) for record in records]
    assert [record["id"] for record in read] == list(range(10_000_000, 10_000_200))
    assert sorted(record["time"] for record in read) == [record["time"] for record in read]
