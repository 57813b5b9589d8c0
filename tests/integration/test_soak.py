"""The controller killed at random moments: no committed row is lost, no process is left, and the run can be finished.

Five seeds in the usual tests; ``make soak`` asks for fifty with HYDRA_SOAK_SEEDS.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.integration.command import background, gone, hydra, steps, table, wait_until

pytestmark = pytest.mark.processes

SEEDS = range(int(os.environ.get("HYDRA_SOAK_SEEDS", "5")))
LATEST_S = 6.0
"""The run takes about as long; a kill after its end is a moment too."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_survives_its_controller_at_any_moment(tmp_path: Path, seed: int) -> None:
    run = tmp_path / "run"
    arguments = (
        "zmqfixed", "--rate", 200, "--clients", "2,3,4", "--duration", 0.5, "--set", "warmup_s=0.2",
    )  # fmt: skip
    moment_s = random.Random(seed).uniform(0.3, LATEST_S)
    with background(*arguments, "--out", run, log=tmp_path / "log") as command:
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > moment_s, moment_s + 5, "the moment")
        before = steps(run)
        family = command.family()
        command.process.kill()
        wait_until(lambda: gone(family), 2, "the end of every client")
        command.process.wait(5)
    after = steps(run)
    assert after[: len(before)] == before
    if (run / "run.db").exists():
        hydra("zmqfixed", "--resume", run)
    else:
        hydra(*arguments, "--out", run)
    assert steps(run)[: len(after)] == after
    assert [(row["clients"], row["status"]) for row in table(run)] == [("2", "ok"), ("3", "ok"), ("4", "ok")]
