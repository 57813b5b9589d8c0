"""A client that waits for data and for commands at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import zmq

from hydra.control.control_client import ClientIdentity, ControlClient, ProcessLocation
from hydra.wire.messages import Ping, Stop, encode
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("test")


@dataclass
class Ends:
    """A client, and who sends it commands and data."""

    client: ControlClient
    relay: zmq.Socket[bytes]
    data: zmq.Socket[bytes]
    source: zmq.Socket[bytes]
    name: bytes = b""

    def command(self, time_ns: int) -> None:
        self.relay.send_multipart([self.name, encode(Ping(ids=[1], time_ns=time_ns))])

    def wait(self) -> bool:
        return self.client.wait_with(self.data, SOON_S)

    def drained(self) -> bool:
        try:
            self.data.recv(zmq.NOBLOCK)
        except zmq.Again:
            return True
        return False


@pytest.fixture
def ends() -> Iterator[Ends]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    relay, source = context.socket(zmq.ROUTER), context.socket(zmq.PUSH)
    for socket in (relay, source):
        socket.linger = 0
        socket.bind("tcp://127.0.0.1:*")
    identity = ClientIdentity([1], "subscriber", "g", 0, "pyzmq", {}, ProcessLocation.read())
    client = ControlClient(relay.getsockopt_string(zmq.LAST_ENDPOINT), identity)
    data = client.context.socket(zmq.PULL)
    data.linger = 0
    data.connect(source.getsockopt_string(zmq.LAST_ENDPOINT))
    it = Ends(client, relay, data, source, relay.recv_multipart()[0])
    client.welcomed = True
    yield it
    data.close(0)
    client.close()
    context.destroy(0)


def received(ends: Ends) -> list[Ping]:
    """What the client has got by now, as its loop asks for it."""
    commands = []
    while (message := ends.client.receive(0)) is not None:
        assert isinstance(message, Ping)
        commands.append(message)
    return commands


def took(ends: Ends, got: list[Ping]) -> bool:
    """Waits once as a subscriber does; whether any command has come so far."""
    if ends.wait():
        assert ends.drained()
    got += received(ends)
    return bool(got)


def test_data_ends_the_wait_and_no_command_is_looked_for(ends: Ends) -> None:
    assert ends.drained()
    ends.source.send(b"1")
    wait_until(ends.wait, "data")
    assert ends.client.receive(0) is None
    wait_until(lambda: not ends.drained(), "the data")


def test_a_command_ends_the_wait_and_is_received(ends: Ends) -> None:
    assert ends.drained()
    ends.command(7)
    got: list[Ping] = []
    wait_until(lambda: took(ends, got), "a command")
    assert [ping.time_ns for ping in got] == [7]


@pytest.mark.parametrize("readable", [False, True])
def test_a_command_that_a_send_took_note_of_is_not_missed(ends: Ends, readable: bool) -> None:
    """After a send, the descriptor may be silent about what has come before (zmq_getsockopt(3), ZMQ_FD)."""
    got: list[Ping] = []
    poller = zmq.Poller()
    poller.register(int(ends.client.socket.fd), zmq.POLLIN)
    assert ends.drained()
    assert ends.client.receive(0) is None
    for number in range(3):
        ends.command(number)
        if readable and not number:
            assert poller.poll(int(1000 * SOON_S))
        ends.client.acknowledge(Stop(epoch=1, number=1, stop_at_ns=1))
    wait_until(lambda: took(ends, got) and len(got) == 3, "three commands", saw=lambda: got)
    assert [ping.time_ns for ping in got] == [0, 1, 2]
