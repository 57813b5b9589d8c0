"""The wire bytes: what Python writes is what the golden files hold, and what they hold is what Python reads.

The files belong to every implementation; see tests/golden/README.md. They change only with the protocol's version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from hydra.wire import messages as wire
from hydra.wire.data_message import HEADER, pack, pack_batch, unpack_batch
from tests.control.golden_messages import FROM_CLIENT, FROM_CONTROLLER, FROM_SERVER, TO_SERVER

GOLDEN = Path(__file__).parent.parent / "golden"
HEADERS = json.loads((GOLDEN / "header" / "headers.json").read_text())
Decode = Callable[[bytes], wire.FromClient | wire.FromController]
DECODERS: dict[str, Decode] = {"controller": wire.decode_from_client, "client": wire.decode_from_controller}
REFUSED = sorted((GOLDEN / "refused").glob("*/*"))
Messages = Mapping[str, wire.FromClient | wire.FromController]
FOLDERS: list[tuple[str, Messages, str, str]] = [
    ("control", FROM_CLIENT, "controller", "client"),
    ("control", FROM_CONTROLLER, "client", "controller"),
    ("server", FROM_SERVER, "controller", "client"),
    ("server", TO_SERVER, "client", "controller"),
]


@pytest.mark.parametrize(
    ("file", "message", "reader", "other"),
    [(f"{folder}/{name}.json", of[name], reader, other) for folder, of, reader, other in FOLDERS for name in of],
)
def test_messages(file: str, message: wire.FromClient | wire.FromController, reader: str, other: str) -> None:
    frame = (GOLDEN / file).read_bytes()
    assert wire.encode(message) == frame
    assert DECODERS[reader](frame) == message
    with pytest.raises(wire.ProtocolError):
        DECODERS[other](frame)


def test_there_is_a_test_for_every_file() -> None:
    assert {f.stem for f in (GOLDEN / "control").iterdir()} == FROM_CLIENT.keys() | FROM_CONTROLLER.keys()
    assert {f.stem for f in (GOLDEN / "server").iterdir()} == FROM_SERVER.keys() | TO_SERVER.keys()


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_what_is_refused(file: Path) -> None:
    with pytest.raises(wire.ProtocolError):
        DECODERS[file.parent.name](file.read_bytes())


@pytest.mark.parametrize("entry", HEADERS, ids=lambda e: e["file"])
def test_data_headers(entry: dict[str, int | str]) -> None:
    data = (GOLDEN / "header" / str(entry["file"])).read_bytes()
    epoch, publisher, sequence, time_ns = (int(entry[k]) for k in ("epoch", "publisher", "sequence", "time_ns"))
    assert pack(epoch, publisher, sequence, time_ns, int(entry["message_size"])) == data
    assert HEADER.unpack_from(data) == (epoch, publisher, sequence, time_ns)
    (header,) = unpack_batch([data])
    assert header.tolist() == (epoch, publisher, sequence, time_ns)
    if sequence < 2**63:
        assert pack_batch(epoch, publisher, sequence, np.array([time_ns], np.uint64), [data[24:]]) == [data]


def test_there_is_an_entry_for_every_header() -> None:
    assert {f.name for f in (GOLDEN / "header").glob("*.bin")} == {e["file"] for e in HEADERS}
