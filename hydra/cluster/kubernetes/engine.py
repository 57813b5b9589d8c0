"""The Kubernetes engine: groups are Pods on the nodes of a cluster.

This module moves messages between :class:`~hydra.cluster.kubernetes.state.KubernetesState`, which decides, and the
process that holds the connection to the API server (``driver.py``). Nothing here waits for the network.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from hydra.cluster.driven import Driver
from hydra.cluster.kubernetes.delivery import Delivery
from hydra.cluster.kubernetes.state import KubernetesState
from hydra.errors import ClusterError
from hydra.model import Agent, Group, GroupEvent, Launch

_STOP_WITHIN_S: Final = 120.0
"""The driver takes 12 s at most, and 0.2 s for each Pod."""


class KubernetesEngine:
    """Runs groups as Pods that belong to the run's keeper. See :class:`hydra.cluster.engine.Engine`.

    ``launch`` places groups on what is known to be free and returns; Pods are created and start afterwards, and
    ``events`` tells of it.

    Attributes:
        address: the address of this machine that Pods reach.
    """

    is_local: Final = False

    def __init__(
        self,
        driver: Driver,
        state: KubernetesState,
        delivery: Delivery,
        address: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self._delivery = delivery
        self._driver = driver
        self._state = state
        self._clock = clock
        self._closed = False

    def agents(self) -> list[Agent]:
        """The nodes, with what is free on each as far as is known.

        Raises:
            ClusterError: the run is no more.
        """
        self._pump()
        if self._state.fatal[0]:
            raise ClusterError(*self._state.fatal)
        return self._state.agents()

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups, either all or none; their Pods are created at once.

        A group that cannot be started after all is reported by ``events``.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: the run is no more, or an id cannot be used.
        """
        if self._closed:
            raise ClusterError("the Kubernetes cluster is closed", "make a new one")
        self._pump()
        archived = {group.id for group in groups if self._delivery.is_archived(group)}
        launches = self._state.launch([self._delivery.prepared(group) for group in groups], self._clock(), archived)
        self._send()
        return launches

    def kill(self, groups: Iterable[str]) -> None:
        """Ends these groups' Pods: SIGTERM, and SIGKILL after a grace; an unknown or ended one is ignored."""
        self._state.kill(groups, self._clock())
        self._send()

    def events(self) -> list[GroupEvent]:
        """What happened since the last call, oldest first."""
        self._pump()
        events, self._state.events = self._state.events, []
        return events

    def close(self) -> None:
        """Deletes everything of the run and waits for that; takes a second, or 12 s where the API server is silent."""
        if self._closed:
            return
        self._closed = True
        try:
            self._driver.send([{"call": "stop"}])
            deadline = self._clock() + _STOP_WITHIN_S
            while not self._driver.closed and self._clock() < deadline:
                now = self._clock()
                for message in self._driver.receive(0.1):
                    self._state.handle(message, now)
                    if message["kind"] == "stopped" and (left := self._state.left(message)):
                        sys.stderr.write(f"hydra: {left}\n")
        finally:  # also when a second Ctrl-C cuts the wait short: the driver goes on by itself
            self._driver.close()

    def _pump(self) -> None:
        now = self._clock()
        messages: list[dict[str, Any]] = self._driver.receive()
        for message in messages:
            self._state.handle(message, now)
        if not self._closed and self._driver.closed and not self._state.fatal[0]:
            self._state.fatal = (self._driver.ended(), "begin again with --resume")
        self._state.tick(now)
        self._send()

    def _send(self) -> None:
        calls, self._state.calls = self._state.calls, []
        self._driver.send(calls)
