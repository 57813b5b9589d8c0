"""What the table shows in place of figures that were not measured."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from bench import start
from bench.failure import reason
from hydra.config.shortages import read_limits

HYDRA = "zmqfixed into /tmp/x/run: 1 row\nwarning: step 1 of 1: SKIPPED: process ids: 9\ndone in 0 s: /tmp/x/run\n"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("no answer"), "no answer"),
        (RuntimeError("line 1\nOSError: '/usr/lib/x.so': no file"), "OSError: 'x.so': no file"),
        (KeyError("ready"), "KeyError: 'ready'"),
        (RuntimeError(), "RuntimeError"),
        (subprocess.TimeoutExpired(["/work/bare", "1920"], 120.0), "took longer than 120 s"),
        (subprocess.CalledProcessError(1, "bare", stderr=b"Traceback\nRuntimeError: in use\n"), "in use"),
        (subprocess.CalledProcessError(-9, ["/work/bare"], stderr=""), "exit code -9"),
        (subprocess.CalledProcessError(3, "hydra", stderr=HYDRA), "step 1 of 1: SKIPPED: process ids: 9"),
        (subprocess.CalledProcessError(1, "hydra", stderr="warning: late\nThe broker ended."), "The broker ended."),
        (ValueError("0.5 messages/s at tcp://127.0.0.1:5/x"), "0.5 messages/s at tcp://127.0.0.1:5/x"),
    ],
)
def test_a_failure_has_its_own_words_and_no_path(error: Exception, text: str) -> None:
    assert reason(error) == text


@pytest.mark.parametrize(
    ("pid_max", "missing"), [(32_768, "process ids (32768 with 2500 in use, needs"), (4_000_000, "")]
)
def test_clients_that_the_machine_cannot_hold_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, pid_max: int, missing: str
) -> None:
    limits = replace(
        read_limits(),
        pid_max=pid_max,
        threads=2500,
        threads_max=0,
        cgroup_pids_max=0,
        nproc_soft=0,
        nofile_hard=100_000,
        file_max=10**7,
        ports_first=1024,
        ports_last=65_535,
        memory_available_bytes=10**11,
    )
    monkeypatch.setattr(start, "read_limits", lambda: limits)
    assert start.lacks("native", 10_240).startswith(missing)
    assert bool(start.lacks("native", 10_240)) == bool(missing)
