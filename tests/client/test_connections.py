"""What a group's TCP connections wait for: of a kernel of the test's own, and of real connections."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.client.process_sampler import TcpConnection, TcpSampler, established
from hydra.model import TcpConnections
from tests.suite.waiting import wait_until

SECOND = 1_000_000_000
NEW = TcpConnection(inode=5, unread_bytes=0, unsent_bytes=0, sent_bytes=1000, busy_us=0, reader_us=0, buffer_us=0)
WAITS = replace(NEW, sent_bytes=2000, unsent_bytes=500, busy_us=800_000)


class Kernel:
    """Connections that the test chooses, of one process (10) that has the sockets 5 and 6."""

    def __init__(self, path: Path) -> None:
        self.now_ns = 100 * SECOND
        self.reading_ns = 0
        self.sockets: dict[bytes, TcpConnection] = {b"a": NEW}
        self.looked = 0
        files = path / "10" / "fd"
        files.mkdir(parents=True)
        for number, target in enumerate(("socket:[5]", "socket:[6]", "/dev/null", "pipe:[7]")):
            (files / str(number)).symlink_to(target)
        self.sampler = TcpSampler(self.processes, lambda: self.sockets, path, self.clock_ns, self.clock_ns)

    def processes(self) -> list[int]:
        self.looked += 1
        return [10, 11]  # the second has ended

    def clock_ns(self) -> int:
        self.now_ns += self.reading_ns
        return self.now_ns

    def a_second_later(self, **present: TcpConnection) -> TcpConnections | None:
        self.now_ns += SECOND
        self.sockets = {name.encode(): tcp for name, tcp in present.items()}
        return self.sampler.read()


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    it = Kernel(tmp_path)
    assert it.sampler.read() is None
    return it


@pytest.mark.parametrize(
    ("now", "reader", "network"),
    [
        (WAITS, 0, 1),
        (replace(WAITS, unsent_bytes=0), 0, 0),  # all that is in flight will be answered
        (replace(WAITS, busy_us=499_999), 0, 0),
        (replace(WAITS, reader_us=500_000), 1, 0),
        (replace(WAITS, reader_us=400_000), 0, 0),  # neither of them for half of the time
        (replace(WAITS, reader_us=300_000), 0, 1),
        (replace(WAITS, buffer_us=400_000), 0, 0),
        (replace(WAITS, sent_bytes=1000, reader_us=990_000), 1, 0),  # its reader has stopped
    ],
)
def test_what_a_connection_waits_for(kernel: Kernel, now: TcpConnection, reader: int, network: int) -> None:
    assert kernel.a_second_later(a=now) == TcpConnections(1, reader, network, now.unsent_bytes, 0)


def test_those_of_others_and_those_that_carry_nothing_out_do_not_count(kernel: Kernel) -> None:
    reported = kernel.a_second_later(
        a=replace(NEW, unread_bytes=70), b=replace(WAITS, inode=6), c=replace(WAITS, inode=7)
    )
    assert reported == TcpConnections(1, 0, 1, 500, 70)
    assert kernel.looked == 2
    reported = kernel.a_second_later(b=replace(WAITS, inode=6, sent_bytes=9000, unsent_bytes=0))
    assert reported == TcpConnections(1, 0, 0, 0, 0)
    assert kernel.looked == 2  # whose they are is known


def test_while_reading_costs_too_much_it_says_what_it_said_before(kernel: Kernel) -> None:
    kernel.reading_ns = SECOND // 10
    first = kernel.a_second_later(a=WAITS)
    assert kernel.a_second_later(a=replace(WAITS, unsent_bytes=0)) == first
    kernel.now_ns += 5 * SECOND
    assert kernel.a_second_later(a=replace(WAITS, unsent_bytes=0)) == TcpConnections(0, 0, 0, 0, 0)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection's, the one that writes and the one that reads."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as writer,
        server.accept()[0] as reader,
    ):
        yield writer, reader


@pytest.mark.tier("test")
def test_a_real_reader_that_reads_nothing_is_waited_for(ends: tuple[socket.socket, socket.socket]) -> None:
    sampler = TcpSampler(lambda: [os.getpid()])
    assert sampler.read() is None
    ends[0].setblocking(False)

    def told() -> TcpConnections | None:
        with contextlib.suppress(BlockingIOError):
            while True:
                ends[0].send(bytes(100_000))
        found = sampler.read()
        return found if found and found.reader_limited else None

    found = wait_until(told, "a reader that is waited for")
    assert found is not None
    assert (found.sending, found.reader_limited, found.network_limited) == (1, 1, 0)
    assert found.unsent_bytes > 0
    assert found.unread_bytes > 0


@pytest.mark.tier("test")
def test_the_kernel_tells_of_both_ends_of_a_connection(ends: tuple[socket.socket, socket.socket]) -> None:
    writer, reader = ends
    writer.sendall(b"12345")
    assert reader.recv(5, socket.MSG_WAITALL | socket.MSG_PEEK) == b"12345"
    reported = {tcp.inode: (tcp.sent_bytes, tcp.unread_bytes) for tcp in established().values()}
    assert [reported[os.fstat(end.fileno()).st_ino] for end in ends] == [(5, 0), (0, 5)]
