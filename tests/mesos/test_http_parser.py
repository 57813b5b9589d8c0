"""The http_parser that we bring: it reads what a real master sent, and pymesos reads with it."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from tests.mesos.recordings import FOLDER

http_parser = pytest.importorskip("http_parser.http", reason="pip install ./shims/http-parser")

STREAM = (FOLDER / "raw-subscribe-stream.txt").read_bytes()


def events(body: bytes) -> list[dict[str, object]]:
    """The records of a RecordIO body that are whole."""
    found = []
    while (length := body.partition(b"\n")[0]) and len(body) > len(length) + int(length):
        start = len(length) + 1
        found.append(json.loads(body[start : start + int(length)]))
        body = body[start + int(length) :]
    return found


@pytest.mark.parametrize("size", [1, 7, 64, 4096])
def test_the_recorded_stream_is_read_in_pieces_of_any_size(size: int) -> None:
    parser, body = http_parser.HttpParser(), b""
    for piece in (STREAM[start : start + size] for start in range(0, len(STREAM), size)):
        assert parser.execute(piece, len(piece)) == len(piece)
        if parser.is_partial_body():
            body += parser.recv_body()
        assert not parser.is_partial_body()
    assert parser.is_headers_complete()
    assert parser.get_status_code() == 200
    assert parser.is_chunked()
    assert not parser.is_message_complete()
    assert parser.get_headers()["Mesos-Stream-Id"] == "175e0362-6609-4da2-b760-8497e63b2ee7"
    assert [event["type"] for event in events(body)] == ["SUBSCRIBED", "OFFERS", "HEARTBEAT", "HEARTBEAT"]


@pytest.mark.parametrize(
    ("line", "length", "body"), [(b"400 Bad Request", 4, b"oops"), (b"307 Temporary Redirect", 0, b"")]
)
def test_an_answer_with_a_fixed_length_is_complete(line: bytes, length: int, body: bytes) -> None:
    parser = http_parser.HttpParser()
    data = b"HTTP/1.1 %b\r\nLocation: //10.0.0.1:5050\r\nContent-Length: %d\r\n\r\n%b" % (line, length, body)
    assert parser.execute(data, len(data)) == len(data)
    assert (parser.get_status_code(), parser.recv_body(), parser.is_message_complete()) == (int(line[:3]), body, True)
    assert parser.get_headers()["Location"] == "//10.0.0.1:5050"
    assert not parser.is_chunked()


def test_what_is_no_http_is_an_error() -> None:
    parser = http_parser.HttpParser()
    assert parser.execute(b"SSH-2.0-OpenSSH\r\n", 17) == 0
    assert parser.get_errno() != 0
    assert not hasattr(parser, "errno")  # by which pymesos would take it for the other implementation


def test_pip_takes_pymesos_dependency_for_met() -> None:
    assert version("http-parser").endswith("+hydra.1")
    pytest.importorskip("pymesos")
