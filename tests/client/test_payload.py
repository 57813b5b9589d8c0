"""The block of payloads: how many there are, and that they begin again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hydra.client import payload
from hydra.client.payload import PayloadBlock
from hydra.model import SharedSettings


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        pytest.param(SharedSettings(message_size=100), 1, id="zeros"),
        pytest.param(SharedSettings(message_size=100, message_size_min=100), 1, id="zeros-between-two-equal-sizes"),
        pytest.param(SharedSettings(message_size=24, payload="random"), payload.MOST_MESSAGES, id="short"),
        pytest.param(SharedSettings(message_size=1000, payload="random"), 1048, id="a-block"),
        pytest.param(SharedSettings(message_size=2_000_000, payload="json"), 1, id="longer-than-a-block"),
        pytest.param(SharedSettings(message_size=100_000, message_size_min=24), payload.LEAST_MESSAGES, id="sizes"),
    ],
)
def test_they_begin_anew(settings: SharedSettings, messages: int) -> None:
    block = PayloadBlock(settings)
    first = block.of(0, messages)
    assert block.of(messages, messages) == first
    assert block.of(messages - 1, 2) == [first[-1], first[0]]
    assert block.of(3 * messages, 2 * messages) == 2 * first
    assert len(set(map(len, first))) == (1 if settings.message_size_min in (None, settings.message_size) else messages)
    sizes = [24 + len(one) for one in first]
    for count in (0, 1, messages, messages + 1, 5 * messages):
        assert block.total_bytes(count) == sum(sizes[n % messages] for n in range(count))
        assert block.total_bytes(count, lambda _: 3) == 3 * count


def test_zeros_of_several_sizes_that_are_long_stay_within_bounds() -> None:
    block = PayloadBlock(SharedSettings(message_size=16 * 1024 * 1024, message_size_min=15 * 1024 * 1024))
    sizes = [len(one) for one in block.of(0, 5)]
    assert len(set(sizes)) == 4
    assert sizes[0] == sizes[4]


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [(b"\n", 100, [b""]), (b"without an end", 7, [b"without"]), (b"a\r\n\xff\n", 100, [b"a\r", b"\xff"])],
)
def test_lines(tmp_path: Path, text: bytes, longest: int, expected: list[bytes]) -> None:
    file = tmp_path / "lines"
    file.write_bytes(text)
    block = PayloadBlock(SharedSettings(message_size=24 + longest, payload="lines", payload_file=str(file)))
    assert block.of(0, len(expected) + 1) == [*expected, expected[0]]


def test_of_a_long_file_whole_lines_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "LINES_BYTES", 100)
    file = tmp_path / "lines"
    for longest, count in ((16, 2), (6, 3), (500, 2)):
        file.write_bytes(b"%d\n" % longest + b"123456789012345\n" * 20)
        block = PayloadBlock(SharedSettings(message_size=24 + longest, payload="lines", payload_file=str(file)))
        assert len(set(block.of(0, 100))) == 2
        assert block.of(count, 1) == [b"%d" % longest], longest


def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name, text in {
        "missing": "cannot read payload_file {}: No such file or directory",
        "empty": "payload_file {} is empty; it needs a line for each message",
        "pipe": "cannot read payload_file {}: it is no regular file",
    }.items():
        path = str(tmp_path / name)
        with pytest.raises(OSError, match="payload_file") as caught:
            PayloadBlock(SharedSettings(message_size=99, payload="lines", payload_file=path))
        assert str(caught.value) == text.format(path)
