"""Fan-out of ZeroMQ at the highest rate: Hydra's clients, and bare loops of the same library that only count.

Both sides have one publisher and forked subscribers, the same high-water marks and one I/O thread for each process.
They count what all subscribers receive in the window, on connections that have carried messages before, as after the
warm-up of a run: the kernel's socket buffers of such a connection have grown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from bench import programs
from hydra.control.controller import Controller
from hydra.control.roster import EpochReplies
from hydra.model import SharedSettings
from hydra.wire.clock import wall_offset_ns
from hydra.wire.messages import Configure, Finish, HostClock, PublisherEndpoint, PublisherTotal, Start, Stop

SECONDS: Final = 2.0
WARM_S: Final = 1.0
HWM: Final = 1000
BURST: Final = 100
"""Messages that either publisher sends before it looks at the clock."""
_SYSTEM: Final = {"sndhwm": HWM, "rcvhwm": HWM}
_PUBLISHER: Final = 0
_PYZMQ: Final = (sys.executable, "-m", "hydra.zmqtest.pyzmq")
_BARE_PYZMQ: Final = (sys.executable, "-m", "bench.clients.pyzmq_loop")


class Received(NamedTuple):
    """What all subscribers received together, and what a message took of a subscriber's CPU."""

    rate_pps: float
    cpu_us: float


def native(subscribers: int, message_bytes: int) -> Received:
    """Hydra's native clients."""
    return _ours([programs.client()], subscribers, message_bytes)


def libzmq(subscribers: int, message_bytes: int) -> Received:
    """The bare loops of libzmq."""
    return Received(*programs.numbers(programs.bare("bare-fanout"), *_arguments(subscribers, message_bytes)))


def pyzmq(subscribers: int, message_bytes: int) -> Received:
    """Hydra's Python clients."""
    return _ours(_PYZMQ, subscribers, message_bytes)


def bare_pyzmq(subscribers: int, message_bytes: int) -> Received:
    """The bare loops of pyzmq, in a process from which they fork."""
    return Received(*programs.numbers(*_BARE_PYZMQ, *_arguments(subscribers, message_bytes)))


def _arguments(subscribers: int, message_bytes: int) -> Sequence[float]:
    return (subscribers, message_bytes, WARM_S, SECONDS, HWM)


def _ours(program: Sequence[str | Path], subscribers: int, message_bytes: int) -> Received:
    settings = SharedSettings(rate="max", burst=BURST, message_size=message_bytes)
    with closing(Fanout(program, subscribers)) as fanout:
        fanout.measure(settings, WARM_S)
        return fanout.measure(settings, SECONDS)


class Fanout:
    """One publisher and its subscribers over the real control channel.

    Arguments:
        program: what offers both kinds of process group.
        subscribers: how many, one to a process.
    """

    def __init__(self, program: Sequence[str | Path], subscribers: int) -> None:
        self._controller = Controller("bench")
        self._ids = list(range(1, subscribers + 1))
        self._epoch = 0
        self._lifeline = os.pipe()
        self._groups = [
            self._launch([*program, "zmq-pub"], "p", [_PUBLISHER]),
            self._launch([*program, "zmq-sub"], "s", self._ids),
        ]
        present = self._controller.roster.present
        self._await(lambda: len(present()) == subscribers + 1, "hello")

    def _launch(self, program: Sequence[str | Path], group: str, ids: list[int]) -> subprocess.Popen[bytes]:
        self._controller.roster.expect(group, ids)
        names = ["--group", group, "--first-id", str(ids[0]), "--count", str(len(ids))]
        # As hydra starts its clients: a group's parent has one thread.
        own = {"HYDRA_LIFELINE": str(self._lifeline[0]), "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **self._controller.environment, **own}
        return subprocess.Popen([*program, *names], env=environment, pass_fds=(self._lifeline[0],))

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        if not self._controller.wait_until(condition, 60):
            raise TimeoutError(what)

    def measure(self, settings: SharedSettings, seconds: float) -> Received:
        """One window."""
        controller, answers = self._controller, self._begin()
        all_ids = [_PUBLISHER, *self._ids]
        controller.tell([_PUBLISHER], self._configure(settings, []))
        self._await(lambda: _PUBLISHER in answers.ready, "the publisher")
        endpoint = PublisherEndpoint(_PUBLISHER, answers.endpoints[_PUBLISHER])
        controller.tell(self._ids, self._configure(settings, [endpoint]))
        self._await(lambda: len(answers.ready) == len(all_ids), "the subscribers")
        offset = wall_offset_ns()
        begin = time.monotonic_ns() + offset + 200_000_000
        end = begin + int(seconds * 1e9)
        clock = HostClock(at_ns=0, step_ns=offset)
        window = Start(epoch=self._epoch, start_at_ns=begin, stop_at_ns=end, clock=clock)
        controller.tell(all_ids, window)
        self._await(lambda: time.monotonic_ns() + offset > end, "the end of the window")
        controller.tell(all_ids, Stop(epoch=self._epoch, stop_at_ns=end))
        self._await(lambda: _PUBLISHER in answers.publisher_reports, "the publisher's report")
        total = PublisherTotal(publisher=_PUBLISHER, sent=answers.publisher_reports[_PUBLISHER].sent)
        controller.tell(self._ids, Finish(epoch=self._epoch, publishers=[total], drain_max_s=10.0))
        self._await(lambda: len(answers.subscriber_reports.ids) == len(self._ids), "the reports")
        table = answers.subscriber_reports.table()
        cpu_s = (table.cpu_user_s + table.cpu_system_s).sum()
        return Received(int(table.in_window.sum()) / seconds, float(cpu_s * 1e6 / max(table.received.sum(), 1)))

    def _begin(self) -> EpochReplies:
        self._epoch += 1
        self._controller.roster.begin(self._epoch)
        return self._controller.roster.answers

    def _configure(self, settings: SharedSettings, publishers: list[PublisherEndpoint]) -> Configure:
        return Configure(epoch=self._epoch, settings=settings, publishers=publishers, probe=True, system=_SYSTEM)

    def close(self) -> None:
        """Ends all processes."""
        self._controller.quit()
        self._controller.wait_until(lambda: all(g.poll() is not None for g in self._groups), 10)
        for end in self._lifeline:
            os.close(end)
        self._controller.close()
