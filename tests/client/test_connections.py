"""What a group's TCP connections are said to wait for: of a kernel of the test's own, and of real connections."""

from __future__ import annotations

import os
import socket
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.client.connections import ConnectionSampler, Tcp, established
from hydra.model import Connections

SECOND = 1_000_000_000
NEW = Tcp(inode=5, unread_bytes=0, unsent_bytes=0, sent_bytes=1000, busy_us=0, reader_us=0, buffer_us=0)
WAITS = replace(NEW, sent_bytes=2000, unsent_bytes=500, busy_us=800_000)


class Kernel:
    """Connections that are what the test says, of one process (10) that has the sockets 5 and 6."""

    def __init__(self, path: Path) -> None:
        self.now_ns = 100 * SECOND
        self.reading_ns = 0
        self.there: dict[bytes, Tcp] = {b"a": NEW}
        self.looked = 0
        files = path / "10" / "fd"
        files.mkdir(parents=True)
        for number, target in enumerate(("socket:[5]", "socket:[6]", "/dev/null", "pipe:[7]")):
            (files / str(number)).symlink_to(target)
        self.sampler = ConnectionSampler(self.processes, lambda: self.there, path, self.clock_ns, self.clock_ns)

    def processes(self) -> list[int]:
        self.looked += 1
        return [10, 11]  # the second has ended

    def clock_ns(self) -> int:
        self.now_ns += self.reading_ns
        return self.now_ns

    def a_second_later(self, **there: Tcp) -> Connections | None:
        self.now_ns += SECOND
        self.there = {name.encode(): tcp for name, tcp in there.items()}
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
def test_what_a_connection_waits_for(kernel: Kernel, now: Tcp, reader: int, network: int) -> None:
    assert kernel.a_second_later(a=now) == Connections(1, reader, network, now.unsent_bytes, 0)


def test_those_of_others_and_those_that_carry_nothing_out_do_not_count(kernel: Kernel) -> None:
    told = kernel.a_second_later(a=replace(NEW, unread_bytes=70), b=replace(WAITS, inode=6), c=replace(WAITS, inode=7))
    assert told == Connections(1, 0, 1, 500, 70)
    assert kernel.looked == 2
    assert kernel.a_second_later(b=replace(WAITS, inode=6, sent_bytes=9000, unsent_bytes=0)) == Connections(
        1, 0, 0, 0, 0
    )
    assert kernel.looked == 2  # whose they are is known


def test_while_reading_costs_too_much_it_says_what_it_said_before(kernel: Kernel) -> None:
    kernel.reading_ns = SECOND // 10
    first = kernel.a_second_later(a=WAITS)
    assert kernel.a_second_later(a=replace(WAITS, unsent_bytes=0)) == first
    kernel.now_ns += 5 * SECOND
    assert kernel.a_second_later(a=replace(WAITS, unsent_bytes=0)) == Connections(0, 0, 0, 0, 0)


def test_a_real_reader_that_reads_nothing_is_waited_for() -> None:
    sampler = ConnectionSampler(lambda: [os.getpid()])
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        writer = socket.create_connection(server.getsockname())
        reader, _ = server.accept()
        with closing(writer), closing(reader):
            assert sampler.read() is None
            writer.setblocking(False)
            deadline = time.monotonic() + 10
            told = None
            while time.monotonic() < deadline and not (told and told.reader_limited):
                try:
                    writer.send(bytes(100_000))
                except BlockingIOError:
                    time.sleep(0.05)
                    told = sampler.read()
    assert told is not None
    assert (told.sending, told.reader_limited, told.network_limited) == (1, 1, 0)
    assert told.unsent_bytes > 0
    assert told.unread_bytes > 0


def test_the_kernel_tells_of_both_ends_of_a_connection() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        writer = socket.create_connection(server.getsockname())
        reader, _ = server.accept()
        with closing(writer), closing(reader):
            writer.sendall(b"12345")
            assert reader.recv(5, socket.MSG_WAITALL | socket.MSG_PEEK) == b"12345"
            inodes = {os.fstat(writer.fileno()).st_ino: "writer", os.fstat(reader.fileno()).st_ino: "reader"}
            told = {inodes[tcp.inode]: tcp for tcp in established().values() if tcp.inode in inodes}
    assert (told["writer"].sent_bytes, told["writer"].unread_bytes) == (5, 0)
    assert (told["reader"].sent_bytes, told["reader"].unread_bytes) == (0, 5)
