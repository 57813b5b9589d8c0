"""Fan-out of 24-byte messages as fast as possible: the Python clients against bare loops of pyzmq that only count.

Both sides in turn, several rounds: one publisher and forked subscribers, at equal high-water marks and one I/O thread
each. What counts is the aggregate received inside the window. The target: 0.75 of the bare loops.

Run: python bench/pyzmq_loop.py [SUBSCRIBERS ...]  (30 480)
"""

from __future__ import annotations

import mmap
import os
import statistics
import subprocess
import sys
import time
from typing import Final, NamedTuple, NoReturn

import zmq
from native_fanout import HWM, ROUNDS, SECONDS, Fanout  # type: ignore[import-not-found]  # beside this file

from hydra.client.linux_process import die_with_parent
from hydra.model import SharedSettings

TARGET: Final = 0.75
PROGRAM: Final = [sys.executable, "-m", "hydra.zmqtest.pyzmq"]
BETWEEN_LOOKS: Final = 1000
"""Messages that a bare subscriber takes before it looks at the clock."""
BURST: Final = 100
"""Messages that either publisher sends before it looks at the clock."""


class Result(NamedTuple):
    """What all subscribers received together (messages/s), and what a message took of a subscriber's CPU (µs)."""

    rate_pps: float
    cpu_us: float


class Window:
    """When the bare subscribers count, and what each of them has counted, in memory that all of them share."""

    def __init__(self, subscribers: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, 8 * (1 + 2 * subscribers))).cast("q")

    @property
    def stop_ns(self) -> int:
        """The end, CLOCK_MONOTONIC; 0 before it begins."""
        return self._cells[0]

    def begin(self, seconds: float) -> int:
        """Begins now; when it ends."""
        self._cells[0] = time.monotonic_ns() + int(seconds * 1e9)
        return self._cells[0]

    def count(self, subscriber: int, messages: int, cpu_ns: int) -> None:
        """What that one has received in the window, and the CPU that it took."""
        self._cells[1 + 2 * subscriber], self._cells[2 + 2 * subscriber] = messages, cpu_ns

    def result(self) -> Result:
        """What all have received in it."""
        messages, cpu_ns = sum(self._cells[1::2]), sum(self._cells[2::2])
        return Result(messages / SECONDS, cpu_ns / 1e3 / max(messages, 1))


def bare_subscriber(window: Window, number: int, endpoint: str) -> NoReturn:
    """Counts until the window ends."""
    socket = zmq.Context(io_threads=1).socket(zmq.SUB)
    socket.rcvhwm = HWM
    socket.rcvtimeo = 100
    socket.subscribe(b"")
    socket.connect(endpoint)
    received = began_ns = 0
    while True:
        some = 0
        try:
            while some < BETWEEN_LOOKS:
                socket.recv()
                some += 1
        except zmq.Again:
            pass
        stop_ns = window.stop_ns
        if stop_ns and time.monotonic_ns() > stop_ns:
            break
        if stop_ns:
            began_ns = began_ns or time.process_time_ns()
            received += some
    window.count(number, received, time.process_time_ns() - began_ns)
    os._exit(0)


def publish_until(socket: zmq.Socket[bytes], stop_ns: int) -> None:
    """Sends as fast as it goes."""
    message = bytes(24)
    while time.monotonic_ns() < stop_ns:
        for _ in range(BURST):
            socket.send(message, zmq.NOBLOCK)


def bare_pair(subscribers: int, warm_s: float) -> Result:
    """What all receive together inside the window, on connections that old."""
    window = Window(subscribers)
    pipes = [os.pipe() for _ in range(subscribers)]
    parent = os.getpid()
    children = []
    for number in range(subscribers):
        pid = os.fork()
        if pid == 0:
            die_with_parent(parent)
            bare_subscriber(window, number, os.read(pipes[number][0], 100).decode())
        children.append(pid)
    socket = zmq.Context(io_threads=1).socket(zmq.XPUB)
    socket.sndhwm = HWM
    socket.linger = 0
    socket.backlog = 4096
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    socket.bind("tcp://127.0.0.1:*")
    for _, told in pipes:
        os.write(told, socket.getsockopt_string(zmq.LAST_ENDPOINT).encode())
    for _ in range(subscribers):
        socket.recv()
    publish_until(socket, time.monotonic_ns() + int(warm_s * 1e9))
    publish_until(socket, window.begin(SECONDS))
    for pid in children:
        os.waitpid(pid, 0)
    return window.result()


def bare(subscribers: int, warm_s: float) -> Result:
    """That of a bare pair in a process of its own, from which it forks."""
    command = [sys.executable, __file__, "--bare", str(subscribers), str(warm_s)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    return Result(*map(float, done.stdout.split()))


def ours(subscribers: int) -> list[Result]:
    """The same of Hydra's first two windows."""
    fanout = Fanout(PROGRAM, subscribers)
    try:
        return [hydra_window(fanout) for _ in range(2)]
    finally:
        fanout.close()


def hydra_window(fanout: Fanout) -> Result:
    """One window of Hydra's pair."""
    rate_pps = fanout.measure(SharedSettings(rate="max", burst=BURST))
    table = fanout.reports()
    return Result(rate_pps, float((table.cpu_user_s + table.cpu_system_s).sum() * 1e6 / max(table.received.sum(), 1)))


def main() -> int:
    """Prints a table: what both sides reach on new connections, and on ones that have carried a window before."""
    if sys.argv[1:2] == ["--bare"]:
        print(*bare_pair(int(sys.argv[2]), float(sys.argv[3])))
        return 0
    counts = [int(argument) for argument in sys.argv[1:]] or [30, 480]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as hydra starts its clients: a group's parent has one thread
    print("subscribers window   hydra/s    bare/s  CPU of a subscriber, us/message   ratio of medians (each round's)")
    for subscribers in counts:
        mine, bares = [], []
        for _ in range(ROUNDS):
            mine.append(ours(subscribers))
            bares.append([bare(subscribers, warm_s) for warm_s in (0.0, SECONDS)])
        for window, a, b in zip(("first", "second"), zip(*mine, strict=True), zip(*bares, strict=True), strict=True):
            each = " ".join(f"{x.rate_pps / y.rate_pps:.2f}" for x, y in zip(a, b, strict=True))
            (x, x_us), (y, y_us) = (tuple(map(statistics.median, zip(*side, strict=True))) for side in (a, b))
            row = f"{subscribers:>11} {window:>6} {x:>9,.0f} {y:>9,.0f}  {x_us:.2f} {y_us:.2f}"
            print(f"{row}  {x / y:.2f} (target {TARGET}; {each})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
