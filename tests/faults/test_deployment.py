"""Clients that do not connect, or lose the controller: they are replaced, not endlessly, and each end is reported."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from pyroaring import BitMap

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.control.controller import Controller
from hydra.errors import ClusterError, ReadinessError
from hydra.events.event import Event
from hydra.events.group_events import ClientExit, Evicted, GroupRelaunched
from hydra.local.engine import LocalEngine
from hydra.run.deployment import Deployment
from hydra.wire import EXIT_STRANDED
from tests.faults.faulty import FaultyZmq, cluster, pid, scenario
from tests.run.contexts import context
from tests.suite.waiting import SOON_S, TIME_FACTOR

pytestmark = pytest.mark.tier("test")

E = TypeVar("E", bound=Event)


class Stage:
    """A deployment of clients on this machine, with what it noted."""

    def __init__(
        self, folder: Path, faults: Mapping[int, Sequence[str]], ready_timeout_s: float, respawns: int
    ) -> None:
        self.events: list[Event] = []
        self._log = folder / "log"
        its_scenario, its_cluster = scenario(ready_timeout_s=ready_timeout_s), cluster(respawns=respawns)
        system = FaultyZmq(its_scenario, self._log, faults)
        with ExitStack() as stack:
            self.controller = stack.enter_context(closing(Controller("run")))
            engine = stack.enter_context(closing(LocalEngine(its_cluster.agents, folder / "sandbox")))
            self.run = context(
                resolved=ResolvedScenario.of(its_scenario),
                cluster=its_cluster,
                engine=engine,
                controller=self.controller,
                system=system,
                note=self.events.append,
            )
            self.deployment = stack.enter_context(closing(Deployment(self.run)))
            self.close = stack.pop_all().close

    def events_of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def watched(self, condition: Callable[[], bool]) -> bool:
        """Whether the condition comes to hold while the deployment is watched."""

        def holds() -> bool:
            self.deployment.watch()
            return condition()

        return self.controller.wait_until(holds, SOON_S)

    def present(self) -> set[int]:
        return set(self.controller.roster.present())

    def pid(self, client: int) -> int:
        return pid(self._log, client)


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Makes the stage of a test."""
    with ExitStack() as stack:

        def make(faults: Mapping[int, Sequence[str]] | None = None, ready_s: float = 20.0, respawns: int = 3) -> Stage:
            return stack.enter_context(closing(Stage(tmp_path, faults or {}, ready_s * TIME_FACTOR, respawns)))

        yield make


@pytest.mark.tier("all")
def test_a_client_that_never_dials_in_is_replaced(staged: Callable[..., Stage]) -> None:
    stage = staged({2: ["stop"]}, ready_s=12)
    stage.deployment.scale(3)
    assert stage.present() == {0, 1, 2, 3}
    assert any(event.why == "did not dial in" and 2 in event.clients for event in stage.events_of(Evicted))
    assert any((event.client, event.status) == (2, -signal.SIGKILL) for event in stage.events_of(ClientExit))
    # Its end was ours: no step misses it.
    stage.deployment.begin_step()
    assert not stage.deployment.died


def test_a_stranded_client_is_reported_and_launched_anew(staged: Callable[..., Stage]) -> None:
    stage = staged({2: ["strand"]})
    stage.deployment.scale(2)
    assert stage.present() == {0, 1, 2}
    os.kill(stage.pid(1), signal.SIGUSR1)
    assert stage.watched(lambda: 1 in stage.deployment.died)
    stage.deployment.scale(2)
    assert stage.present() == {0, 1, 2}
    for client in (2, 1):
        assert any((event.client, event.status) == (client, EXIT_STRANDED) for event in stage.events_of(ClientExit))


@pytest.mark.tier("all")
def test_a_client_that_can_never_dial_in_ends_the_run_and_is_not_tried_again(
    staged: Callable[..., Stage], tmp_path: Path
) -> None:
    stage = staged({1: ["stop"] * 20}, ready_s=120)
    stage.deployment.scale(0)  # the publisher has all the time that it needs
    stage.run.resolved = ResolvedScenario.of(scenario(ready_timeout_s=6))
    with pytest.raises(ReadinessError, match="1 of 2 clients did not dial in within 6 s: ids 1"):
        stage.deployment.scale(1)
    with pytest.raises(
        ClusterError, match="subscriber 1 was lost 4 times, last: the process did not connect to the controller"
    ):
        stage.deployment.scale(1)
    # After the fourth time none is started. The processes are no witness: one may write its first line much later, or
    # be killed before it does.
    assert len(stage.events_of(Evicted)) + len(stage.events_of(GroupRelaunched)) == 3
    started = tmp_path / "log" / "1"
    assert not started.exists() or len(started.read_text().splitlines()) <= 4


@pytest.mark.tier("all")
def test_a_client_that_its_group_does_not_replace_is_launched_in_another(staged: Callable[..., Stage]) -> None:
    """Whatever became of the words between: a group whose parent hangs receives and sends nothing."""
    stage = staged(ready_s=16)
    roster = stage.controller.roster
    stage.deployment.scale(6)
    old, old_pid = roster.hello(1), stage.pid(1)
    assert any(roster.hello(c).group == old.group for c in range(2, 7)), "its group has other clients"
    parent = psutil.Process(old_pid).ppid()
    os.kill(parent, signal.SIGSTOP)
    stage.deployment.evict(BitMap([1]))
    stage.deployment.scale(6)
    new = roster.hello(1)
    assert new.group != old.group
    # It wakes up, obeys at last, and replaces a client that is not its own any more.
    stage.deployment.begin_step()
    os.kill(parent, signal.SIGCONT)
    assert stage.watched(lambda: roster.refused["unexpected_hello"] > 0)
    assert not psutil.pid_exists(old_pid)
    assert roster.hello(1) == new
    assert not stage.deployment.died


@pytest.mark.tier("all")
def test_who_was_evicted_between_steps_is_not_dead_in_the_next(staged: Callable[..., Stage]) -> None:
    stage = staged()
    stage.deployment.scale(2)
    before = stage.pid(2)
    os.kill(before, signal.SIGSTOP)
    stage.deployment.evict(BitMap([2]))
    stage.deployment.scale(2)
    assert stage.pid(2) != before
    stage.deployment.begin_step()
    assert stage.watched(lambda: bool(stage.events_of(ClientExit))), stage.events
    assert not stage.deployment.died


@pytest.mark.tier("all")
def test_nobody_waits_for_a_client_that_is_gone_when_the_step_begins(staged: Callable[..., Stage]) -> None:
    stage = staged(respawns=0)
    stage.deployment.scale(2)
    os.kill(stage.pid(2), signal.SIGKILL)
    assert stage.controller.wait_until(lambda: 2 not in stage.present(), SOON_S)
    stage.deployment.begin_step()
    assert stage.deployment.died == BitMap([2])
