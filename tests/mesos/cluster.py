"""A test master with its agents in a thread of its own, for tests that look at it from outside."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.mesos.agent import Agent
from tests.mesos.master import Master
from tests.suite.waiting import SOON_S

T = TypeVar("T")


def _ports(agent: int) -> str:
    """Five hundred ports of an agent, others in each of the processes that run tests side by side."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 15_000 + 500 * (3 * worker + agent)
    return f"ports:[{first}-{first + 499}]"


AGENTS = (
    ("agent-pub", "group:cpu4-mem16", f"cpus:4;mem:15000;disk:10000;{_ports(0)}"),
    ("agent-sub-1", "group:cpu16-mem60;rack:12;slots:[1-3]", f"cpus:16;mem:60000;disk:10000;{_ports(1)}"),
    ("agent-sub-2", "group:cpu16-mem60", f"cpus:16;mem:60000;disk:10000;{_ports(2)}"),
)
"""Hostname, attributes and resources, as an agent's command line has them."""


class Cluster:
    """Calls into the master's loop from the test's thread."""

    def __init__(self, master: Master, agents: list[Agent], loop: asyncio.AbstractEventLoop) -> None:
        self.master = master
        self.agents = agents
        self._masters = [master]
        self._loop = loop

    async def start(self) -> None:
        await self.master.start()
        for agent in self.agents:
            await agent.start()
            self.master.register(agent)

    async def stop(self) -> None:
        for agent in self.agents:
            await agent.stop()
        for master in self._masters:
            await master.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    @property
    def address(self) -> str:
        return self.master.address

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SOON_S)

    def ask(self, function: Callable[[], T]) -> T:
        """The function's answer, from inside the loop, where nothing else happens meanwhile."""

        async def inside() -> T:
            return function()

        return self.do(inside())

    def calls(self, kind: str) -> list[dict[str, Any]]:
        """The calls of a type that came, oldest first."""
        return self.ask(lambda: [call for call in self.master.calls if call["type"] == kind])

    def states(self) -> dict[str, str]:
        """Task → state."""
        return self.ask(lambda: {task.id: task.state for task in self.master.tasks()})

    def fail_over(self, *, recovering_s: float = 0.5) -> None:
        """Another master leads from now on; the former one hangs up, recovers for a while and then redirects."""
        self.do(self._fail_over(recovering_s))

    async def _fail_over(self, recovering_s: float) -> None:
        old, new = self.master, Master()
        self._masters.append(new)
        await new.start()
        old.leads = False
        old.hang_up()
        await asyncio.sleep(recovering_s)
        for agent in self.agents:
            if agent.alive:
                new.register(agent)
        old.leader = new.address
        self.master = new


@contextmanager
def running(
    folder: Path, agents: Sequence[tuple[str, str, str]] = AGENTS, *, resend_s: float = 10.0, **options: Any
) -> Iterator[Cluster]:
    """A master with these agents; at the end nothing of it is left."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mesos", daemon=True)
    thread.start()

    made = [Agent(*agent, folder / agent[0], resend_s=resend_s) for agent in agents]
    cluster = Cluster(Master(**options), made, loop)
    cluster.do(cluster.start())
    try:
        yield cluster
    finally:
        cluster.do(cluster.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SOON_S)
        loop.close()
