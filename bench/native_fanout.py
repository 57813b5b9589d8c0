"""Fan-out of 24-byte messages as fast as possible: hydra-client against bare libzmq loops that only count.

Both sides in turn, several rounds, at equal high-water marks and io_threads; what counts is the aggregate received
inside the window. Takes the numbers of subscribers as arguments (30 120 480).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hydra.control.controller import Controller
from hydra.control.roster import EpochReplies
from hydra.model import SharedSettings
from hydra.native import build
from hydra.wire.clock import wall_offset_ns
from hydra.wire.messages import Configure, Finish, HostClock, PublisherEndpoint, PublisherTotal, Start, Stop
from hydra.wire.subscriber_table import SubscriberTable

TREE = Path(__file__).resolve().parents[1]
ROUNDS = 5
SECONDS = 2.0
HWM = 1000
SYSTEM = {"sndhwm": HWM, "rcvhwm": HWM}
PUBLISHER = 0


class Fanout:
    """One publisher and its subscribers over the real control channel; ``program``: what offers both kinds of group."""

    def __init__(self, program: Sequence[str | Path], subscribers: int, options: Sequence[str] = ()) -> None:
        self._controller = Controller("bench")
        self._ids = list(range(1, subscribers + 1))
        self._epoch = 0
        self._lifeline = os.pipe()
        self._groups = [
            self._launch([*program, "zmq-pub"], "p", [PUBLISHER], options),
            self._launch([*program, "zmq-sub"], "s", self._ids, options),
        ]
        present = self._controller.roster.present
        self._await(lambda: len(present()) == subscribers + 1, "hello")

    def _launch(
        self, program: Sequence[str | Path], group: str, ids: list[int], options: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        self._controller.roster.expect(group, ids)
        names = ["--group", group, "--first-id", str(ids[0]), "--count", str(len(ids))]
        environment = {**os.environ, **self._controller.environment, "HYDRA_LIFELINE": str(self._lifeline[0])}
        return subprocess.Popen([*program, *names, *options], env=environment, pass_fds=(self._lifeline[0],))

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        if not self._controller.wait_until(condition, 60):
            raise TimeoutError(what)

    def measure(self, settings: SharedSettings) -> float:
        """Messages/s received inside the window by all together."""
        controller, answers = self._controller, self._begin()
        everybody = [PUBLISHER, *self._ids]
        controller.tell([PUBLISHER], self._configure(settings, []))
        self._await(lambda: PUBLISHER in answers.ready, "the publisher")
        endpoint = PublisherEndpoint(PUBLISHER, answers.endpoints[PUBLISHER])
        controller.tell(self._ids, self._configure(settings, [endpoint]))
        self._await(lambda: len(answers.ready) == len(everybody), "the subscribers")
        offset = wall_offset_ns()
        begin = time.monotonic_ns() + offset + 200_000_000
        end = begin + int(SECONDS * 1e9)
        clock = HostClock(at_ns=0, step_ns=offset)
        window = Start(epoch=self._epoch, start_at_ns=begin, stop_at_ns=end, clock=clock)
        controller.tell(everybody, window)
        self._await(lambda: time.monotonic_ns() + offset > end, "the end of the window")
        controller.tell(everybody, Stop(epoch=self._epoch, stop_at_ns=end))
        self._await(lambda: PUBLISHER in answers.publisher_reports, "the publisher's report")
        sent = answers.publisher_reports[PUBLISHER].sent
        told = PublisherTotal(publisher=PUBLISHER, sent=sent)
        controller.tell(self._ids, Finish(epoch=self._epoch, publishers=[told], drain_max_s=10.0))
        self._await(lambda: len(answers.subscriber_reports.ids) == len(self._ids), "the reports")
        return int(answers.subscriber_reports.table().in_window.sum()) / SECONDS

    def reports(self) -> SubscriberTable:
        """Those of the last window's subscribers."""
        return self._controller.roster.answers.subscriber_reports.table()

    def _begin(self) -> EpochReplies:
        self._epoch += 1
        self._controller.roster.begin(self._epoch)
        return self._controller.roster.answers

    def _configure(self, settings: SharedSettings, publishers: list[PublisherEndpoint]) -> Configure:
        return Configure(epoch=self._epoch, settings=settings, publishers=publishers, probe=True, system=SYSTEM)

    def close(self) -> None:
        self._controller.quit()
        self._controller.wait_until(lambda: all(g.poll() is not None for g in self._groups), 10)
        for end in self._lifeline:
            os.close(end)
        self._controller.close()


def bare(program: Path, subscribers: int, io_threads: int, warm_s: float) -> float:
    """Messages/s received inside the window by all together, on connections that old."""
    command = [str(word) for word in (program, subscribers, warm_s, SECONDS, HWM, io_threads)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    return int(done.stdout.split()[0]) / SECONDS


def ours(program: Path, subscribers: int, io_threads: int) -> tuple[float, float]:
    """The same of hydra-client's first two windows, on connections that are made anew."""
    settings = SharedSettings(rate="max", burst=100)
    fanout = Fanout([program], subscribers, ["--io-threads", str(io_threads)])
    try:
        return fanout.measure(settings), fanout.measure(settings)
    finally:
        fanout.close()


def main() -> int:
    """Prints a table: what both sides reach on new connections, and on ones that have carried a window before."""
    missing = build.missing()
    if missing:
        print(f"not measured: apt-get install {' '.join(missing)}")
        return 0
    folder = TREE / "build" / "native-bench"
    client = build.build(TREE / "native", folder, "-DHYDRA_BENCH=ON", targets=("all",))
    loops = folder / "bench" / "bare-fanout"
    counts = [int(argument) for argument in sys.argv[1:]] or [30, 120, 480]
    print("subscribers io_threads window   hydra/s    bare/s  ratio of medians (each round's)")
    for subscribers in counts:
        for io_threads in (1, 2):
            mine, bares = [], []
            for _ in range(ROUNDS):
                mine.append(ours(client, subscribers, io_threads))
                bares.append([bare(loops, subscribers, io_threads, warm_s) for warm_s in (0.0, SECONDS)])
            for window, a, b in zip(
                ("first", "second"), zip(*mine, strict=True), zip(*bares, strict=True), strict=True
            ):
                each = " ".join(f"{x / y:.2f}" for x, y in zip(a, b, strict=True))
                x, y = statistics.median(a), statistics.median(b)
                row = f"{subscribers:>11} {io_threads:>10} {window:>6} {x:>9,.0f} {y:>9,.0f}"
                print(f"{row}  {x / y:.2f} ({each})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
