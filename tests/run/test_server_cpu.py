"""The CPU time of a server that Hydra started, on a clock and with processes of the test."""

from __future__ import annotations

import pytest

from hydra.run.host_sampling import ServerCpuClock

SECOND = 1_000_000_000
Reading = tuple[int, float, float | None]
"""The server's process, the time (s), and the CPU seconds of the process until then; None: it has ended."""


@pytest.mark.parametrize(
    ("readings", "cores"),
    [
        ([], None),
        ([(1, 10.0, 3.0)], None),
        ([(1, 10.0, 3.0), (1, 12.0, 4.0)], 0.5),
        ([(1, 10.0, 3.0), (1, 11.0, 3.5), (1, 12.0, None), (2, 13.0, 0.25), (2, 14.0, 1.5)], 0.5),
        ([(1, 10.0, None), (2, 12.0, 1.0)], 0.5),
        ([(1, 10.0, 3.0), (1, 12.0, None)], 0.0),
        ([(1, 10.0, None), (1, 12.0, None)], None),
    ],
    ids=["none", "one", "two", "restarted", "dead first", "dead later", "no clock"],
)
def test_the_work_of_each_process_counts_from_its_start(readings: list[Reading], cores: float | None) -> None:
    counted = (None if used_s is None else round(used_s * SECOND) for _, _, used_s in readings)
    clock = ServerCpuClock(lambda _: next(counted))
    for pid, now_s, _ in readings:
        clock.read(pid, round(now_s * SECOND))
    assert clock.cores == cores
