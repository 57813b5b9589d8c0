"""The verdict about runs whose limit is planted, really run: a few of each rig with ``make soak``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.verdicts.rigs import CPU, RIGS

pytestmark = pytest.mark.processes

TIMES = int(os.environ.get("HYDRA_VERDICTS", "0"))
"""Runs of each rig."""


@pytest.mark.skipif(not TIMES, reason="make soak has limits planted (HYDRA_VERDICTS)")
@pytest.mark.parametrize("name", RIGS)
def test_a_planted_limit_is_the_verdict(name: str, tmp_path: Path) -> None:
    rig = RIGS[name]
    if rig.quota and not os.access(CPU / "cgroup.procs", os.W_OK):
        pytest.skip("a quota needs cgroup v1, and root")
    if rig.network and (os.geteuid() or shutil.which("tc") is None):
        pytest.skip("network namespaces and token buckets need root and tc")
    told = [rig.take(rig.draw(1000 + n, trial=True), tmp_path / str(n)).figures["verdict"] for n in range(TIMES)]
    assert told.count(rig.truth) >= 0.75 * TIMES, told
