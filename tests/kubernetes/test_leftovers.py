"""The process that started a rig may be killed: nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes import nodes, processes
from tests.kubernetes.places import TREE, Place
from tests.kubernetes.sharing import reserved
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")

# Behind what is installed: the tests are of that Hydra.
STARTS = "import sys; sys.path.append(sys.argv[1]); from tests.kubernetes.rig import Rig; Rig(int(sys.argv[2])).up()"


def traces(place: Place) -> list[object]:
    """Processes, files, interfaces, control groups and mounts of an instance."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if f"{place.run}/" in line]
    files = [path for path in (place.run, Path("/sys/class/net", place.name)) if path.exists()]
    groups = list(Path("/sys/fs/cgroup").glob(f"*/{place.name}"))
    return [*processes.of(place), *nodes.contained(place), *files, *groups, *mounts]


def test_a_rig_whose_start_was_killed_is_removed(rig_is_built: None) -> None:
    with reserved() as rig:
        starts = subprocess.Popen([sys.executable, "-c", STARTS, str(TREE), str(rig.place.number)])
        try:
            wait_until(lambda: rig.pids("kubelet2"), "the kubelets", LONG_S)
        finally:
            starts.kill()
            starts.wait()
        assert len(traces(rig.place)) > 10
        rig.down()
        assert traces(rig.place) == []
