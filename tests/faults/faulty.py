"""A scenario of raw ZMQ whose Python clients can be made to fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hydra.config.cluster import load_cluster
from hydra.config.scenario import load_scenario
from hydra.model import ClusterSpec, Role, Scenario
from hydra.system import Program
from hydra.zmqtest.system import ZmqSystem


class FaultyZmq(ZmqSystem):
    """ZMQ with ``faulty_client.py`` as the program of every client."""

    def __init__(self, scenario: Scenario, log: Path, faults: Mapping[int, Sequence[str]] | None = None) -> None:
        super().__init__(scenario)
        log.mkdir()
        self._environment = {"FAULTY": json.dumps(faults or {}), "FAULTY_LOG": str(log)}

    def program(self, role: Role) -> Program:
        """The faulty client."""
        kind = "zmq-pub" if role == "publisher" else "zmq-sub"
        command = (sys.executable, str(Path(__file__).with_name("faulty_client.py")), kind)
        return Program(command, {"OPENBLAS_NUM_THREADS": "1", **self._environment})


def pid(log: Path, client: int) -> int:
    """Of the client's latest process; ``log`` is the folder with the pids of all."""
    return int((log / str(client)).read_text().split()[-1])


def scenario(**more: object) -> Scenario:
    """Small steps at a fixed rate."""
    return load_scenario("zmqfixed", {"settings.rate": 200.0, "sweep.duration_s": 0.5, **more})


def cluster(**more: int) -> ClusterSpec:
    """Hydra's own local cluster."""
    return replace(load_cluster(), **more)  # type: ignore[arg-type]
