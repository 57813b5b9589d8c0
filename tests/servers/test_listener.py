"""What listens at an address that is no server of the system: known by its first bytes, and named in one line."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator

import pytest

from hydra.client.tls import AccessError
from hydra.config.plugins import greetings
from hydra.system.listener import OTHERS, explained, in_words, together
from tests.integration.command import refusal

HOST = "127.0.0.1"


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"SSH-2.0-x\r\nmore", 'what listens at this port does not speak X, and sends "SSH-2.0-x"'),
        (b"HTTP/1.1 400 Bad Request\r\n", "an HTTP server is at this port, and not X"),
        (b"AMQP\0\0\x09\x01", "an AMQP server is at this port, and not X"),
        (b"\x15\x03\x01\0\x02\x02\x46", "a server that demands TLS is at this port, and not X"),
        (b'INFO {"server_id":"a"}\r\n', "a NATS server is at this port, and not X"),
        (b"\x20\x02\0\0", "an MQTT server is at this port, and not X"),
        (b"\0\0\x01\x0ahyd!\0\0", "a Kafka broker is at this port, and not X"),
        (b"\0\xff", "what listens at this port does not speak X"),
        (b"x" * 99, f'what listens at this port does not speak X, and sends "{"x" * 40}"'),
        (b"", "what listens at this port closes connections without an answer as X"),
        (None, "the port accepts connections, but nothing answers as X"),
    ],
)
def test_what_listens_is_known_by_its_first_bytes(answer: bytes | None, what: str) -> None:
    assert in_words([None, answer], "X", (*greetings(), *OTHERS)) == what


@pytest.mark.parametrize(
    ("protocol", "answer"), [("NATS", b"INFO {}"), ("MQTT", b"\x20\x02\0\x05"), ("Kafka", b"\0\0\0\x20hyd!\0")]
)
def test_a_server_of_the_system_has_another_trouble_which_stays(protocol: str, answer: bytes) -> None:
    assert in_words([answer, b""], protocol, greetings()) == ""


@pytest.fixture
def banner() -> Iterator[int]:
    """The port of a server that greets each client as SSH does, and sends nothing else."""
    with contextlib.ExitStack() as stack, socket.create_server((HOST, 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    stack.enter_context(client).sendall(b"SSH-2.0-test\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.tier("test")
@pytest.mark.parametrize("protocol", ["MQTT", "NATS", "Kafka"])
def test_the_first_contact_names_what_listens(banner: int, protocol: str) -> None:
    text = refusal(f"{protocol.lower()}-fixed", "--clients", 1, "--servers", f"{HOST}:{banner}")
    assert f"{HOST}:{banner} does not answer: network: what listens at this port does not speak {protocol}, " in text
    assert 'sends "SSH-2.0-test"; check the host and port of --servers' in text


@pytest.mark.tier("test")
def test_an_address_without_a_listener_keeps_the_reason_of_the_client() -> None:
    for error in (AccessError("TLS", "no"), AccessError("network", "Connection refused", code=errno.ECONNREFUSED)):
        assert explained(error, (HOST, 1), "X", (), "X at h:1") is error
    silent = AccessError("network", "no answer in time")
    assert explained(silent, (HOST, 1), "X", (), "X at h:1") is silent


def test_none_of_several_addresses_answers_and_each_is_named() -> None:
    silent = {"a:1": AccessError("network", "refused"), "b:2": AccessError("network", "silent")}
    assert str(together(silent, "X at")) == "X at a:1,b:2 does not answer: network: a:1: refused, b:2: silent"
    login = AccessError("login", "wrong")
    assert together({**silent, "c:3": login}, "X at") is login
