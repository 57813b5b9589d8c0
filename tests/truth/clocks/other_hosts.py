"""The local engine with agents like hosts elsewhere: with clocks of their own, behind forwarders."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hydra.control import curve_security
from hydra.local.engine import LocalEngine
from hydra.model import Agent, Group, Launch
from tests.truth.clocks.forwarder import Delay, Forwarder
from tests.truth.priority import first

_IN_OTHER_TIME = Path(__file__).with_name("in_other_time.py")


@dataclass(frozen=True)
class Elsewhere:
    """How far an agent's CLOCK_MONOTONIC is ahead of this machine's, and what delays the control channel's messages."""

    ahead_s: int
    to_host: Delay
    back: Delay


class OtherHosts(LocalEngine):
    """Every group is in a time namespace, as far ahead as ``elsewhere`` has it of its agent.

    Attributes:
        forwarders: what an agent's groups dial in at, from the first launch on.
    """

    def __init__(self, agents: Sequence[Agent], sandbox_root: Path, elsewhere: Mapping[str, Elsewhere]) -> None:
        super().__init__(agents, sandbox_root)
        self.forwarders: dict[str, Forwarder] = {}
        self._elsewhere = elsewhere

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """As the local engine does, elsewhere."""
        for agent, way in self._elsewhere.items():
            if agent not in self.forwarders:
                controller = groups[0].environment[curve_security.ENDPOINT]
                self.forwarders[agent] = Forwarder(controller, way.to_host, way.back)
        places = {agent: (way.ahead_s, self.forwarders[agent].endpoint) for agent, way in self._elsewhere.items()}
        # Before all else on this machine: how late its messages are is not what other processes make of it.
        prefix = (*first("").split(), sys.executable, "-S", str(_IN_OTHER_TIME), json.dumps(places))
        return super().launch([replace(group, command=(*prefix, *group.command)) for group in groups])

    def close(self) -> None:
        """Ends groups and forwarders."""
        super().close()
        for forwarder in self.forwarders.values():
            forwarder.close()
