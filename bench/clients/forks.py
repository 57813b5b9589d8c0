"""What the bare loops in Python share: one process publishes, its forks receive and count in one window."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NoReturn

from hydra.client.linux_process import die_with_parent, exact_timers, raise_open_files

TIME_AT: Final = slice(16, 24)
"""Where the due time is in a message: at the place of Hydra's."""
AT_ONCE: Final = 100
"""Messages that a publisher sends before it reads the clock."""
_LEAD_NS: Final = 100_000_000
_SPIN_NS: Final = 120_000
"""The wait for a due time ends with a spin of this length, as that of Hydra's publishers."""


def pss_bytes(pid: int) -> int:
    """Proportional resident memory of a process: what processes share is divided by their number."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


@dataclass(slots=True)
class Tally:
    """What one subscriber counts; its library's thread adds, its main thread reads."""

    messages: int = 0
    latencies_us: list[int] = field(default_factory=list)

    def late(self, message: bytes | bytearray) -> None:
        """Counts a message that carries its due time."""
        self.messages += 1
        self.latencies_us.append((time.monotonic_ns() - int.from_bytes(message[TIME_AT], "little")) // 1000)


@dataclass(frozen=True, slots=True)
class Interval:
    """The window, CLOCK_MONOTONIC."""

    start_ns: int
    stop_ns: int

    def rounds(self) -> Iterator[None]:
        """Begins at once, and ends with the window; each turn is for ``AT_ONCE`` messages."""
        while time.monotonic_ns() < self.stop_ns:
            yield

    def due(self, rate: float, size: int) -> Iterator[bytes]:
        """The messages of a fixed rate, each when it is due."""
        rest, sent = bytes(size - TIME_AT.stop), 0
        while (due_ns := self.start_ns + int(sent * 1e9 / rate)) < self.stop_ns:
            if (left_ns := due_ns - time.monotonic_ns() - _SPIN_NS) > 0:
                time.sleep(left_ns / 1e9)
            while time.monotonic_ns() < due_ns:
                pass
            yield bytes(TIME_AT.start) + due_ns.to_bytes(8, "little") + rest
            sent += 1


Receive = Callable[[dict[str, Any], Tally, Callable[[], None]], object]
"""Receives for ever, from its arguments: the settings, the tally, and what it calls when it is subscribed."""
Publish = Callable[[dict[str, Any], Callable[[], Interval]], int]
"""Connects, calls its second argument for the window, and sends until its end; returns the number of sent messages."""


def _subscriber(settings: dict[str, Any], receive: Receive, parent: int, line: Connection) -> NoReturn:
    die_with_parent(parent)
    tally, subscribed = Tally(), threading.Event()
    threading.Thread(target=receive, args=(settings, tally, subscribed.set), daemon=True).start()
    subscribed.wait(30)
    line.send(subscribed.is_set())
    window: Interval = line.recv()
    time.sleep(max(0, window.start_ns - time.monotonic_ns()) / 1e9)
    messages, cpu_ns = tally.messages, time.process_time_ns()
    time.sleep(max(0, window.stop_ns - time.monotonic_ns()) / 1e9)
    line.send((tally.messages - messages, time.process_time_ns() - cpu_ns, tally.latencies_us))
    os._exit(0)


def encoded(settings: Mapping[str, Any]) -> str:
    """The settings as an argument of :func:`run`."""
    return json.dumps(dict(settings))


def run(receive: Receive, publish: Publish) -> None:
    """Runs a bare loop with the settings on the command line, and prints its figures as JSON."""
    settings = json.loads(sys.argv[1])
    raise_open_files()
    forking = multiprocessing.get_context("fork")
    lines = []
    for _ in range(settings["subscribers"]):
        mine, theirs = forking.Pipe()
        forking.Process(target=_subscriber, args=(settings, receive, os.getpid(), theirs), daemon=True).start()
        theirs.close()
        lines.append(mine)
    begun_ns = 0

    def begin() -> Interval:
        nonlocal begun_ns
        if not all(line.recv() for line in lines):
            raise RuntimeError("a subscriber is not subscribed")
        exact_timers()
        warm_ns = time.monotonic_ns() + _LEAD_NS
        start_ns = warm_ns + int(settings["warm"] * 1e9)
        window = Interval(start_ns, start_ns + int(settings["seconds"] * 1e9))
        for line in lines:
            line.send(window)
        time.sleep(max(0, warm_ns - time.monotonic_ns()) / 1e9)
        begun_ns = time.process_time_ns()
        return window

    sent = publish(settings, begin)
    used_ns = time.process_time_ns() - begun_ns
    counted = [line.recv() for line in lines]
    messages = sum(each[0] for each in counted)
    late = sorted(us for each in counted for us in each[2])
    print(
        json.dumps(
            {
                "rate_pps": messages / settings["seconds"],
                "cpu_us": sum(each[1] for each in counted) / 1e3 / max(messages, 1),
                "publisher_cpu_us": used_ns / 1e3 / max(sent, 1),
                "p50_us": late[len(late) // 2] if late else 0,
                "p99_us": late[len(late) * 99 // 100] if late else 0,
            }
        ),
        flush=True,
    )
    os._exit(0)  # the libraries' clean-up is not measured
