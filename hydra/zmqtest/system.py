"""Raw ZMQ PUB/SUB as a system under test: no broker, only clients."""

from __future__ import annotations

import sys
from pathlib import Path

import zmq

from hydra.control.protocol import KafkaTopic
from hydra.model import Role, Scenario
from hydra.system import Program


class ZmqSystem:
    """The raw baseline; see :class:`hydra.system.System`."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def check(self) -> None:
        """Nothing can be missing: pyzmq is a dependency of ours."""

    def open(self, run: str, folder: Path) -> None:
        """Nothing to bring up."""

    def program(self, role: Role) -> Program:
        """The pyzmq client; numpy must not start threads in a parent that forks."""
        kind = "zmq-pub" if role == "publisher" else "zmq-sub"
        return Program((sys.executable, "-m", "hydra.zmqtest.pyzmq", kind), {"OPENBLAS_NUM_THREADS": "1"})

    def topic(self) -> KafkaTopic | None:
        """There are no topics."""
        return None

    def end_offsets(self) -> dict[int, int]:
        """There are no offsets."""
        return {}

    def trouble(self) -> str:
        """There is nothing that could fail but clients."""
        return ""

    def revive(self) -> None:
        """Nothing to revive."""

    def facts(self) -> dict[str, str]:
        """The library's version."""
        return {"libzmq": zmq.zmq_version()}

    def close(self) -> None:
        """Nothing to remove."""
