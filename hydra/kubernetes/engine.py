"""The Kubernetes engine: groups are Pods on the nodes of a cluster.

:class:`~hydra.kubernetes.state.KubernetesState` decides; ``driver.py`` holds the connection to the API server.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from hydra.engine.driver_engine import DriverEngine, DriverProcess
from hydra.errors import ClusterError
from hydra.kubernetes.program_delivery import ProgramDelivery
from hydra.kubernetes.state import KubernetesState
from hydra.model import Agent, Group, Launch
from hydra.system import Waiting

_CONFIRM_WITHIN_S: Final = 5.0
_STOP_WITHIN_S: Final = 120.0
"""The driver takes at most 12 s and 0.2 s for each Pod."""
_TICK_S: Final = 0.1


class KubernetesEngine(DriverEngine[KubernetesState]):
    """Runs groups as Pods. The driver deletes them; if it cannot, the cluster does so when the run's keeper ends."""

    def __init__(
        self,
        driver: DriverProcess,
        state: KubernetesState,
        delivery: ProgramDelivery,
        address: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(driver, state, address, _STOP_WITHIN_S, clock)
        self._delivery = delivery

    def agents(self) -> list[Agent]:
        """The nodes as they are now, with the free resources that Hydra knows of.

        Raises:
            ClusterError: the run has ended.
        """
        agents = super().agents()
        self._raise_fatal()
        return agents

    def _refresh(self) -> None:
        """Lists the nodes again if the list is older than 5 s: nodes may be new, removed or cordoned.

        Waits at most 2 s for the list: groups are placed between rows, while nothing is measured.
        """
        self._pump()
        while self._state.awaits_nodes(self._clock()) and not self._driver.closed:
            self._send()
            self._pump(_TICK_S)

    def confirm(self, wait: Waiting) -> None:
        """Asks the API server whether the keeper's Job, which owns all objects of the run, still exists.

        Without an answer within 5 s the run counts as existing.

        Raises:
            ClusterError: the Job does not exist, or nothing can be launched any more for another reason.
        """
        self._raise_fatal()
        self._state.check_owner()
        self._send()

        def answered() -> bool:
            self._pump()
            return not self._state.looking

        wait(answered, _CONFIRM_WITHIN_S)
        self._raise_fatal()

    def _raise_fatal(self) -> None:
        if self._state.fatal[0]:
            raise ClusterError(*self._state.fatal)

    def _launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        archived = {group.id for group in groups if self._delivery.is_archived(group)}
        return self._state.launch([self._delivery.prepared(group) for group in groups], now, archived)

    def _heard(self, message: dict[str, Any], now: float) -> None:
        super()._heard(message, now)
        if message["kind"] == "stopped" and (left := self._state.standing.left(message)):
            sys.stderr.write(f"hydra: {left}\n")
