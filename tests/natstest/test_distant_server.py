"""A server whose answers take longer than an attempt of a publisher to have them."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from contextlib import closing

import pytest

from hydra.natstest.connection import NatsConnection
from hydra.natstest.settings import NatsAccess
from hydra.system.local_server import LocalServer
from hydra.wire.messages import Progress
from tests.conformance.bench import Bench, step_settings
from tests.forwarder import TcpForwarder, hang_up
from tests.natstest.ends import Ends
from tests.suite.waiting import SOON_S

CLIENT, MESSAGES = 7, 10
DELAY_S = 0.07


class DistantForwarder(TcpForwarder):
    """What the server sends arrives this time later."""

    def down(self, server: socket.socket, client: socket.socket) -> None:
        under_way: deque[tuple[float, bytes]] = deque()
        while True:
            left_s = max(under_way[0][0] - time.monotonic(), 0) if under_way else None
            if select.select([server], [], [], left_s)[0]:
                data = server.recv(65_536)
                if not data:
                    return hang_up(client)
                under_way.append((time.monotonic() + DELAY_S, data))
            while under_way and under_way[0][0] <= time.monotonic():
                client.sendall(under_way.popleft()[1])


@pytest.mark.tier("test")
@pytest.mark.parametrize("data", ["core", "stream"], indirect=True)
def test_a_step_with_a_limited_number_of_messages_is_complete(
    bench: Bench, nats_client: str, server: LocalServer, data: Ends
) -> None:
    bench.launch(nats_client, "nats-pub", first_id=CLIENT)
    with DistantForwarder(server.address) as forwarder:
        system = {**data.system(), "servers": [forwarder.address]}
        settings = step_settings(rate=500.0, message_size=100, messages=MESSAGES)
        assert bench.configure_publisher(CLIENT, 1, settings, system=system, probe=False) == ""
        bench.start([CLIENT], 1, SOON_S)
        assert bench.peer.heard(Progress, [CLIENT], epoch=1).messages == MESSAGES


@pytest.mark.tier("test")
def test_a_late_answer_does_not_end_what_the_connection_reads(server: LocalServer) -> None:
    connection = NatsConnection("distant")
    with DistantForwarder(server.address) as forwarder, closing(connection):
        connection.open(NatsAccess(servers=[forwarder.address]))
        with pytest.raises(OSError, match="no answer within"):
            connection.confirm(DELAY_S / 7)
        connection.confirm(SOON_S)
        assert [connection.flush(DELAY_S / 7), connection.flush(SOON_S)] == [False, True]
    connection.end()
