"""The wire bytes: what Python writes is what the golden files hold, and what they hold is what Python reads.

The files belong to every implementation; see tests/golden/README.md. They change only with the protocol's version.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydra.wire.header import HEADER, pack, pack_batch, unpack_batch
from hydra.wire.messages import (
    FromClient,
    FromController,
    ProtocolError,
    decode_from_client,
    decode_from_controller,
    encode,
)
from tests.control.golden_messages import FROM_CLIENT, FROM_CONTROLLER, FROM_SERVER, TO_SERVER

GOLDEN = Path(__file__).parent.parent / "golden"
HEADERS = json.loads((GOLDEN / "header" / "headers.json").read_text())


def frame(name: str, folder: str = "control") -> bytes:
    return (GOLDEN / folder / f"{name}.json").read_bytes()


@pytest.mark.parametrize("name", FROM_CLIENT)
def test_messages_of_clients(name: str) -> None:
    message: FromClient = FROM_CLIENT[name]
    assert encode(message) == frame(name)
    assert decode_from_client(frame(name)) == message
    with pytest.raises(ProtocolError):
        decode_from_controller(frame(name))


@pytest.mark.parametrize("name", FROM_CONTROLLER)
def test_messages_of_the_controller(name: str) -> None:
    message: FromController = FROM_CONTROLLER[name]
    assert encode(message) == frame(name)
    assert decode_from_controller(frame(name)) == message
    with pytest.raises(ProtocolError):
        decode_from_client(frame(name))


@pytest.mark.parametrize("name", FROM_SERVER)
def test_messages_of_servers(name: str) -> None:
    assert encode(FROM_SERVER[name]) == frame(name, "server")
    assert decode_from_client(frame(name, "server")) == FROM_SERVER[name]


@pytest.mark.parametrize("name", TO_SERVER)
def test_messages_to_servers(name: str) -> None:
    assert encode(TO_SERVER[name]) == frame(name, "server")
    assert decode_from_controller(frame(name, "server")) == TO_SERVER[name]


def test_there_is_a_test_for_every_file() -> None:
    assert {f.stem for f in (GOLDEN / "control").iterdir()} == FROM_CLIENT.keys() | FROM_CONTROLLER.keys()
    assert {f.stem for f in (GOLDEN / "server").iterdir()} == FROM_SERVER.keys() | TO_SERVER.keys()


@pytest.mark.parametrize("path", sorted((GOLDEN / "refused" / "controller").iterdir()), ids=lambda p: p.name)
def test_what_a_controller_refuses(path: Path) -> None:
    with pytest.raises(ProtocolError):
        decode_from_client(path.read_bytes())


@pytest.mark.parametrize("path", sorted((GOLDEN / "refused" / "client").iterdir()), ids=lambda p: p.name)
def test_what_a_client_refuses(path: Path) -> None:
    with pytest.raises(ProtocolError):
        decode_from_controller(path.read_bytes())


@pytest.mark.parametrize("entry", HEADERS, ids=lambda e: e["file"])
def test_data_headers(entry: dict[str, int | str]) -> None:
    data = (GOLDEN / "header" / str(entry["file"])).read_bytes()
    epoch, publisher, sequence, time_ns = (int(entry[k]) for k in ("epoch", "publisher", "sequence", "time_ns"))
    assert pack(epoch, publisher, sequence, time_ns, int(entry["message_size"])) == data
    assert HEADER.unpack_from(data) == (epoch, publisher, sequence, time_ns)
    (header,) = unpack_batch([data])
    assert header.tolist() == (epoch, publisher, sequence, time_ns)
    if sequence < 2**63:
        import numpy as np

        assert pack_batch(epoch, publisher, sequence, np.array([time_ns], np.uint64), [data[24:]]) == [data]


def test_there_is_an_entry_for_every_header() -> None:
    assert {f.name for f in (GOLDEN / "header").glob("*.bin")} == {e["file"] for e in HEADERS}
