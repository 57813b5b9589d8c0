"""Which processes a run's clients are, on a cluster without processes and with a clock of the test's own."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from pyroaring import BitMap

from hydra.config.cluster import load_cluster
from hydra.config.scenario import resolve
from hydra.control.roster import Roster
from hydra.errors import ClusterError, ReadinessError
from hydra.events.event import Event
from hydra.events.group_events import ClientExit
from hydra.model import Agent, Group, GroupEvent, Launch, Resources, RoleSpec
from hydra.run.deployed_servers import FIRST_ID
from hydra.run.deployment import Deployment
from hydra.system import Program
from hydra.wire.messages import ChildExit, FromClient, Joined, encode
from tests.control.rosters import hello
from tests.run.contexts import ReportedEvents, context

TICK_S = 0.05
GATHERED = 10
"""Clients whose arrival a relay reports at once."""
ANYWHERE = RoleSpec()
AGENT = Agent("a", "host-a", {}, Resources(cpus=1e6, mem=1e9))


class Fleet(ReportedEvents):
    """A controller, an engine and a system in one; its groups dial in when they are launched, a few clients a tick.

    Attributes:
        evictions: what relays were asked for: when, the group and the clients.
        pids: of the processes that have joined last.
        obeys: called with the group and each of the clients then.
        noted: the events of the run.
        looked: how many clients were there, of how many.
        refusal: why the cluster refuses the groups that are launched, if it does.
    """

    def __init__(self, ready_s: float = 20.0) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.obeys: Callable[[str, int], None] = lambda *_: None
        self.evictions: list[tuple[float, str, list[int]]] = []
        self.incarnations: dict[int, int] = {}
        self.noted: list[Event] = []
        self.looked: list[tuple[int, int]] = []
        self.refusal = ""
        self.roster = Roster()
        self.environment: dict[str, str] = {}
        self.pids: dict[int, int] = {}
        self._coming: list[tuple[str, FromClient]] = []
        self._seq = 1
        self._pids = 100
        scenario = resolve("zmqfixed", {"ready_timeout_s": ready_s})
        anywhere = replace(scenario.scenario, publisher=ANYWHERE, subscriber=ANYWHERE)
        self.deployment = Deployment(
            context(
                resolved=replace(scenario, scenario=anywhere),
                cluster=replace(load_cluster(), max_group=100_000),
                engine=self,
                controller=self,
                system=self,
                note=self.noted.append,
                observer=Mock(present=lambda *counts: self.looked.append(counts)),
                clock_ns=lambda: round(self.now_s * 1e9),
            )
        )

    # --- what happens to clients -----------------------------------------------------------------------------------

    def dials_in(self, group: str, clients: Sequence[int], incarnation: int = 0) -> int:
        """Other processes of these clients join at the next tick, one each; the pid of the last."""
        pids = range(self._pids + 1, self._pids + 1 + len(clients))
        self._pids += len(clients)
        incarnations = [incarnation] * len(clients)
        self._coming.append((group, Joined(ids=[*clients], seq=1, incarnations=incarnations, pids=[*pids])))
        return self._pids

    def report_exit(
        self, group: str, client: int, pid: int, status: int = -9, *, replaced: bool = True, incarnation: int = 0
    ) -> None:
        """The end of a process reaches the controller."""
        exit_ = ChildExit(ids=[client], seq=1, incarnation=incarnation, pid=pid, status=status, replaced=replaced)
        self._hear(group, exit_)

    def _hear(self, group: str, message: FromClient) -> None:
        self._seq += 1
        self.roster.receive(group.encode(), encode(msgspec.structs.replace(message, seq=self._seq)))
        if isinstance(message, Joined):
            self.pids.update(zip(message.ids, message.pids, strict=True))

    def group_of(self, client: int) -> str:
        return self.roster.hello(client).group

    # --- a controller ----------------------------------------------------------------------------------------------

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        until_s = self.now_s + timeout_s
        while not condition():
            if self.now_s >= until_s:
                return False
            self.now_s += TICK_S
            if self._coming:
                self._hear(*self._coming.pop(0))
        return True

    def evict(self, group: str, ids: BitMap, incarnation: int) -> None:
        self.evictions.append((self.now_s, group, list(ids)))
        self.incarnations.update(dict.fromkeys(ids, incarnation))
        for client in ids:
            self.obeys(group, client)

    def quit(self, ids: BitMap) -> None: ...

    # --- an engine -------------------------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        return [AGENT]

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        for group in groups:
            if self.refusal:
                self.data.append(GroupEvent(group.id, "failed", AGENT.id, self.refusal, refused=True))
                continue
            ids = list(range(group.first_client, group.first_client + group.count))
            self.data.append(GroupEvent(group.id, "running", AGENT.id))
            self._coming.append((group.id, hello(ids, group=group.id)))
            for first in range(0, len(ids), GATHERED):
                self.dials_in(group.id, ids[first : first + GATHERED])
        return [Launch(group, AGENT) for group in groups]

    def kill(self, groups: Iterable[str]) -> None: ...

    # --- a system --------------------------------------------------------------------------------------------------

    def program(self, _: object) -> Program:
        return Program(("client",), {})


def deployed() -> tuple[Fleet, str, int]:
    """Three subscribers and their publisher; the group of client 1 and the pid of its process."""
    fleet = Fleet()
    fleet.deployment.scale(3)
    fleet.deployment.begin_step()
    return fleet, fleet.group_of(1), fleet.pids[1]


def test_an_eviction_that_was_lost_is_asked_for_again() -> None:
    """The group replaces its client, and nothing is launched elsewhere."""
    fleet, group, old = deployed()

    def from_the_third_on(group: str, client: int) -> None:
        if len(fleet.evictions) == 3:
            fleet.report_exit(group, client, old)
            fleet.dials_in(group, [client], 1)

    fleet.obeys = from_the_third_on
    began_s = fleet.now_s
    fleet.deployment.evict(BitMap([1]))
    assert not fleet.deployment.scale(3)
    requests = [(round(at_s - began_s), *what) for at_s, *what in fleet.evictions]
    assert requests == [(0, group, [1]), (2, group, [1]), (4, group, [1])]
    assert fleet.group_of(1) == group


@pytest.mark.parametrize("known", ["its end", "its successor"])
def test_nobody_who_comes_after_an_evicted_client_is_evicted_for_it(known: str) -> None:
    fleet, group, old = deployed()

    def successor_when_asked_again(_: str, client: int) -> None:
        if client == 2 and len(fleet.evictions) == 2:
            fleet.dials_in(group, [1], 1)

    fleet.deployment.evict(BitMap([1, 2]))
    if known == "its end":
        fleet.obeys = successor_when_asked_again
        fleet.report_exit(group, 1, old)
    else:
        fleet.dials_in(group, [1], 1)
    fleet.deployment.scale(3)
    # Client 2 is not replaced by its group, and asked for until another group has it.
    assert {tuple(ids) for _, _, ids in fleet.evictions[1:]} == {(2,)}
    assert (fleet.group_of(1) == group, fleet.group_of(2) == group) == (True, False)


def test_an_eviction_names_the_incarnation_that_is_of_no_use() -> None:
    """Asked for once more, the end of a process is not its successor's."""
    fleet, group, old = deployed()
    fleet.deployment.evict(BitMap([1, 2]))
    assert fleet.incarnations == {1: 0, 2: 0}
    # One successor is there, of the other it is known only that it is to come.
    fleet.report_exit(group, 1, old)
    fleet.dials_in(group, [1], 1)
    fleet.wait_until(lambda: 1 in fleet.roster.present(), 1.0)
    fleet.report_exit(group, 2, 99)
    fleet.deployment.watch()
    fleet.deployment.evict(BitMap([1, 2]))
    assert fleet.incarnations == {1: 1, 2: 1}
    fleet.report_exit(group, 2, 100, incarnation=1)
    fleet.deployment.evict(BitMap([1, 2]))
    assert fleet.incarnations == {1: 1, 2: 2}


def test_a_client_that_was_launched_elsewhere_does_not_die_of_its_old_process() -> None:
    """Its old group heard nothing, and lives on with its other clients."""
    fleet, group, old = deployed()
    fleet.deployment.evict(BitMap([1]))
    fleet.deployment.scale(3)
    assert fleet.group_of(1) != group == fleet.group_of(2)
    fleet.deployment.begin_step()
    fleet.report_exit(group, 1, old, 4, replaced=False)
    fleet.deployment.watch()
    assert not fleet.deployment.died
    assert fleet.deployment.agents().keys() == {0, 1, 2, 3}
    assert not fleet.deployment.scale(3)


@pytest.mark.parametrize("said_hello", [True, False])
def test_the_late_end_of_an_evicted_process_is_not_its_successors(said_hello: bool) -> None:
    fleet, group, old = deployed()
    fleet.deployment.evict(BitMap([1]))
    fleet.dials_in(group, [1], 1)
    fleet.deployment.scale(3)
    fleet.deployment.begin_step()
    late = old if said_hello else 99
    fleet.report_exit(group, 1, late)
    fleet.deployment.watch()
    assert not fleet.deployment.died
    assert ClientExit(1, late, -9, replaced=True) in fleet.noted
    # Its own is.
    fleet.report_exit(group, 1, fleet.pids[1])
    fleet.deployment.watch()
    assert fleet.deployment.deaths == {"before the step": BitMap(), "SIGKILL": BitMap([1])}


def test_a_death_counts_whose_replacement_is_there_at_once() -> None:
    fleet, group, old = deployed()
    fleet.report_exit(group, 1, old)
    fleet.dials_in(group, [1], 1)
    fleet.wait_until(lambda: 1 in fleet.roster.present(), 1.0)
    fleet.deployment.watch()
    assert fleet.deployment.died == BitMap([1])


@pytest.mark.parametrize(("reported", "status"), [(True, -9), (False, None)], ids=["told late", "never told"])
def test_a_death_that_the_replacement_tells_of_is_noted_once_and_with_its_cause_where_that_comes(
    reported: bool, status: int | None
) -> None:
    fleet, group, old = deployed()
    new = fleet.dials_in(group, [1], 1)
    fleet.wait_until(lambda: fleet.pids[1] == new, 1.0)
    fleet.deployment.watch()
    assert fleet.deployment.died == BitMap([1])
    if reported:
        fleet.report_exit(group, 1, old)
        fleet.deployment.watch()
        assert [how for how, ids in fleet.deployment.deaths.items() if ids] == ["SIGKILL"]
    fleet.deployment.begin_step()
    assert fleet.deployment.died == BitMap()
    assert [e for e in fleet.noted if isinstance(e, ClientExit)] == [ClientExit(1, old, status, replaced=True)]


def lines_of_arrivals(clients: int) -> int:
    """How many lines of Python run until this many clients are there, each turn of a loop counted."""
    count, before = 0, sys.gettrace()

    def tracer(_: FrameType, event: str, __: object) -> Any:
        nonlocal count
        count += event == "line"
        return tracer

    gc.collect()
    gc.disable()  # what other tests left would be finalized in between
    sys.settrace(tracer)
    try:
        Fleet(ready_s=1000.0).deployment.scale(clients)
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def test_an_arrival_costs_the_same_among_few_and_many() -> None:
    """Clients dial in ten at a time, the last 200 of them to few or to many."""
    lines_of_arrivals(1)  # what is imported by the first
    few, many = (lines_of_arrivals(n + 200) - lines_of_arrivals(n) for n in (200, 1200))
    assert many < 1.2 * few


def test_a_group_that_the_cluster_refuses_fails_the_row_with_the_reason_and_not_the_run() -> None:
    fleet = Fleet()
    fleet.refusal = "no quota; ask for more"
    for _ in range(6):  # more often than a client may be lost
        with pytest.raises(ReadinessError, match="no quota; ask for more"):
            fleet.deployment.scale(3)
    fleet.refusal = ""
    assert fleet.deployment.scale(3)


def test_a_cluster_that_refuses_everything_from_now_on_ends_the_run_and_not_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet()
    fleet.refusal = "no"
    monkeypatch.setattr(fleet, "agents", Mock(side_effect=[[AGENT], [AGENT], ClusterError("the run is no more")]))
    with pytest.raises(ClusterError, match="the run is no more"):
        fleet.deployment.scale(3)


def test_clients_are_where_the_cluster_says_that_their_group_runs() -> None:
    fleet, _, _ = deployed()
    group = fleet.group_of(0)
    fleet.data.append(GroupEvent(group, "running", "elsewhere"))
    fleet.deployment.watch()
    assert fleet.deployment.launches[group].agent.id == "elsewhere"


def test_who_is_there_are_clients_and_no_servers_up_to_the_last() -> None:
    fleet = Fleet()
    fleet.roster.expect("servers-1", [FIRST_ID])
    fleet._hear("servers-1", hello([FIRST_ID], group="servers-1", role="server"))
    fleet.deployment.scale(25)
    total = len(fleet.deployment.everyone())
    assert FIRST_ID in fleet.roster.present()
    assert fleet.looked[0] == (0, total)
    assert fleet.looked[-1] == (total, total)
    assert fleet.looked == sorted(fleet.looked)
