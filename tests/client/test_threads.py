"""Which threads of a group are busy: of a /proc of the test's own, and of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hydra.client.process_sampler import ThreadSampler
from hydra.model import BusyThread
from hydra.wire.messages import MAX_THREADS
from tests.suite.waiting import wait_until

SECOND = 1_000_000_000
TICKS = os.sysconf("SC_CLK_TCK")


class Kernel:
    """A /proc whose threads the test chooses, on a clock that continues while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_ns = 100 * SECOND
        self.reading_ns = 0
        self.sampler = ThreadSampler(10, path, self.clock_ns, self.clock_ns)

    def thread(self, pid: int, tid: int, ticks: int, name: str = "x", children: str = "") -> None:
        task = self.path / str(pid) / "task" / str(tid)
        task.mkdir(parents=True, exist_ok=True)
        numbers = f"S 1 2 3 0 -1 0 1 2 3 4 {ticks - ticks // 3} {ticks // 3} 99 99 20 0 1 0 12345 0"
        (task / "stat").write_text(f"{tid} ({name}) {numbers}\n")
        (task / "children").write_text(children)

    def clock_ns(self) -> int:
        self.now_ns += self.reading_ns
        return self.now_ns


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A parent with a child of two threads, the second of which has one more; it has been read once."""
    it = Kernel(tmp_path)
    it.thread(10, 10, 5, "hydra", children="11 ")
    it.thread(11, 11, 100, "java")
    it.thread(11, 12, 200, "GC) (x", children="13 14 ")
    it.thread(13, 13, 300, "sh")
    it.thread(99, 99, 0, "somebody else's")
    assert it.sampler.read() == []
    return it


def test_the_busiest_come_first_and_who_did_nothing_does_not(kernel: Kernel) -> None:
    kernel.now_ns += SECOND // 4
    kernel.thread(11, 12, 200 + TICKS // 8, "GC) (x", children="13 14 ")
    kernel.thread(13, 13, 300 + TICKS // 4, "sh")
    kernel.thread(99, 99, 1000)
    half = round(100 * (TICKS // 8) / (TICKS / 4), 2)
    assert kernel.sampler.read() == [BusyThread(13, "sh", 100.0, 0.0, 13), BusyThread(11, "GC) (x", half, 0.0, 12)]
    kernel.now_ns += SECOND // 4
    assert kernel.sampler.read() == []


def test_those_that_wanted_most_come_first_where_the_kernel_tells_how_long_they_waited(kernel: Kernel) -> None:
    sampler = ThreadSampler(10, kernel.path, kernel.clock_ns)
    for tid, pid, run_ms, wait_ms in ((13, 13, 0, 0), (12, 11, 0, 0), (13, 13, 200, 790), (12, 11, 400, 10)):
        if run_ms and tid == 13:
            sampler.read()
            kernel.now_ns += SECOND
        times = f"{7_000_000_000 + run_ms * 1_000_000} {5_000_000_000 + wait_ms * 1_000_000} 77\n"
        (kernel.path / str(pid) / "task" / str(tid) / "schedstat").write_text(times)
    assert sampler.read() == [BusyThread(13, "sh", 20.0, 79.0, 13), BusyThread(11, "GC) (x", 40.0, 1.0, 12)]


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("3:cpu,cpuacct:/server", "cpu/server", "nr_throttled 7\nthrottled_time {ns}\n"),
        ("0::/user/server", "user/server", "usage_usec 1\nthrottled_usec {us}\n"),
        ("0::/user/server", "user", "throttled_usec {us}\n"),
    ],
)
def test_the_time_without_quota_is_that_of_the_control_group_and_those_above_it(
    kernel: Kernel, tmp_path: Path, line: str, file: str, text: str
) -> None:
    groups = tmp_path / "groups"
    (kernel.path / "11" / "cgroup").write_text(f"9:memory:/elsewhere\n{line}\n")
    (groups / file).mkdir(parents=True)
    kernel.sampler = ThreadSampler(10, kernel.path, kernel.clock_ns, kernel.clock_ns, groups=groups)
    for stopped_ms in (700, 1500, 2250):
        (groups / file / "cpu.stat").write_text(text.format(ns=stopped_ms * 1_000_000, us=stopped_ms * 1000))
        kernel.now_ns += SECOND
        kernel.thread(11, 11, 100 + stopped_ms, "java")
        found = kernel.sampler.read()
    assert [thread.quota_pct for thread in found] == [75.0]


def test_of_many_processes_some_are_read(kernel: Kernel) -> None:
    sampler = ThreadSampler(10, kernel.path, kernel.clock_ns, most=2)
    sampler.read()
    assert sampler.processes == [10, 11]
    kernel.now_ns += SECOND
    kernel.thread(13, 13, 1000, "sh")
    assert sampler.read() == []


def test_a_thread_that_came_has_done_all_of_its_work_since(kernel: Kernel) -> None:
    kernel.now_ns += 2 * SECOND
    kernel.thread(11, 15, TICKS, "new")
    assert kernel.sampler.read() == [BusyThread(11, "new", 50.0, 0.0, 15)]


def test_a_process_that_replaces_the_first_one_has_done_all_of_its_work_since(kernel: Kernel) -> None:
    kernel.now_ns += SECOND
    kernel.thread(20, 20, TICKS // 2, "anew")
    kernel.sampler.parent = 20
    assert kernel.sampler.read() == [BusyThread(20, "anew", 50.0, 0.0, 20)]


def test_a_thread_that_went_is_not_missed(kernel: Kernel) -> None:
    kernel.now_ns += SECOND
    for file in ("stat", "children"):
        (kernel.path / "13" / "task" / "13" / file).unlink()
    assert kernel.sampler.read() == []


def test_no_more_are_named_than_a_sample_may_have(kernel: Kernel) -> None:
    kernel.now_ns += SECOND
    for n in range(50):
        kernel.thread(11, 100 + n, 1 + n, f"t{n}")
    assert [thread.name for thread in kernel.sampler.read()] == [f"t{n}" for n in range(49, 49 - MAX_THREADS, -1)]


def test_very_many_threads_are_read_less_often(kernel: Kernel) -> None:
    """A reading that takes 20 ms is worth a second: it costs 2 % of a core."""
    kernel.reading_ns = 20_000_000
    kernel.sampler = ThreadSampler(10, kernel.path, kernel.clock_ns, kernel.clock_ns)
    begin_ns = kernel.now_ns
    kernel.sampler.read()
    kernel.thread(13, 13, 400, "sh")
    texts = []
    while kernel.now_ns < begin_ns + 3 * SECOND:
        kernel.now_ns += SECOND // 4
        texts.append([thread.name for thread in kernel.sampler.read()])
    # The last values are repeated meanwhile: the whole adds up as if it had been read each time.
    # (The second reading is not put off: without it nothing would be known.)
    many = texts.count(["sh"])
    assert many in (4, 5)
    assert texts == [["sh"]] * many + [[]] * (len(texts) - many)


@pytest.mark.tier("test")
def test_real_processes() -> None:
    """The parent of the busy one is this process; it burns in a second thread of its own."""
    burn = "import threading\ndef burn():\n while True: pass\nthreading.Thread(target=burn).start()"
    with subprocess.Popen([sys.executable, "-c", burn]) as process:
        try:
            sampler = ThreadSampler(os.getpid())

            def seen() -> bool:
                return any(t.pid == process.pid and t.cpu_pct > 0 for t in sampler.read())

            wait_until(seen, "the busy thread")
        finally:
            process.kill()
