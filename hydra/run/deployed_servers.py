"""Servers as process groups on agents: launched before the clients, started as one cluster, and watched."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from pyroaring import BitMap

from hydra.client.server_interface import accepts
from hydra.config.resource_needs import group_files
from hydra.control.controller import Controller
from hydra.engine.interface import ENDED_STATES, with_real_agent
from hydra.engine.pinning import pin_environment
from hydra.errors import ServerError
from hydra.events.group_events import Launched
from hydra.events.run_events import ServerExit, ServerKilled, ServersRestarted, ServersUp
from hydra.events.value_formatting import counted
from hydra.model import Group, GroupEvent, Launch, ServerSpec
from hydra.monitor.progress_view import ServerStartup
from hydra.run.context import RunContext
from hydra.system import Program, ServerCluster
from hydra.system.worker_thread import WorkerThread
from hydra.wire import RESEND_EVERY_S
from hydra.wire.messages import Halt, Join

FIRST_ID: Final = 2**31
"""The first server's id on the control channel, above the ids of all clients, which count from 0."""
STARTS: Final = 4
"""The most starts of the servers of a run."""
_STOP_WITHIN_S: Final = 10.0
_REMEDY: Final = "see the stderr of the servers' groups and server.log in their sandboxes"


class DeployedServers:
    """See :class:`hydra.system.Servers`: one cluster of servers, each a process group of its own.

    Arguments:
        run: the run of the servers.
        program: the command that starts a server.
        cluster: makes one cluster of the servers.
        spec: the number of servers, their constraints, and the resources of each.
        starting: shows the progress of their start, and waits for them.
    """

    def __init__(
        self, run: RunContext, program: Program, cluster: ServerCluster, spec: ServerSpec, starting: ServerStartup
    ) -> None:
        self.versions: Mapping[str, str] = {}
        self.sources: Mapping[str, str] = {}
        self._run = run
        self._program = program
        self._cluster = cluster
        self._spec = spec
        self._starting = starting
        self._ids = range(FIRST_ID, FIRST_ID + spec.count)
        self._launches: dict[str, Launch] = {}
        self._endpoints: list[str] = []
        self._joins: dict[int, Join] = {}
        self._restart: _Restart | None = None
        self._killed: set[str] = set()
        self._groups_made = 0
        self._starts = 0
        self._failure = ""
        self._lost = False

    def start(self) -> str:
        """Launches the servers, waits until they answer as one cluster, warms it up, and returns its address.

        Raises:
            PlacementError: they do not fit; the text names the role and the constraint or resource.
            ServerError: one failed, they did not start in time, or had to be started too often.
        """
        while True:
            self._starts += 1
            if self._starts > STARTS:
                raise ServerError(f"the servers were started {STARTS} times, last: {self._failure}", _REMEDY)
            self._failure, self._lost = "", False
            try:
                return self._bring_up(time.monotonic() + self._run.scenario.ready_timeout_s)
            except ServerError as e:
                self.stop()
                # Only if the agent or offer was lost can another start succeed; a server that failed would fail again.
                if not self._lost:
                    raise
                self._run.journal.note(ServersRestarted(e.what))
            except BaseException:
                self.stop()
                raise

    def failure(self) -> str:
        """The first known failure of a server, or ""; returns at once."""
        for launch, event in self._ended():
            if event.group in self._killed:
                continue
            self._lost = self._lost or event.state == "lost"
            self._fail(f"the server {event.group} on {launch.agent.hostname} {event.state}: {event.detail}")
        # The report of a server itself arrives before that of its engine.
        for client, text in self._run.controller.roster.answers.errors.items():
            if client in self._ids:
                self._fail(f"the server on {self._host_of(client)}: {text}")
        return self._failure

    def processes(self) -> Sequence[int]:
        """Empty: each server is a process group, which is watched like others."""
        return []

    def endpoints(self) -> Sequence[str]:
        """The address of each server, in the order of their ids."""
        return self._endpoints

    def kill(self, address: str, when: str) -> None:
        """Kills one server: its group obeys ``quit`` with SIGKILL.

        The start of all servers after that counts as no failure.
        """
        for client, endpoint in zip(self._ids, self._endpoints, strict=True):
            for launch in self._launches.values():
                if launch.group.first_client == client and endpoint.split(",")[0] == address:
                    self._killed.add(launch.group.id)
                    self._starts -= 1
                    self._run.controller.quit(BitMap([client]))
                    self._run.journal.note(ServerKilled(launch.group.id, launch.agent.hostname, address, when))

    def halt(self) -> str:
        """Kills the last server by SIGKILL; its group keeps the data."""
        self._end_restart()
        last, endpoint = self._ids[-1], self._endpoints[-1]
        self._restart = _Restart(self._run.controller, last, self._joins[last], endpoint, self._answer)
        return endpoint

    def start_again(self) -> None:
        """Has the group start the halted server again."""
        if self._restart is not None:
            self._restart.begin()

    def is_back(self) -> bool:
        """Whether all servers answer again; errors as in :class:`hydra.system.Servers`."""
        if failure := self.failure():
            raise ServerError(failure, _REMEDY)
        if self._restart is None or not self._restart.is_over():
            return False
        self._joins[self._ids[-1]] = self._restart.join
        self._end_restart()
        return True

    def stop(self) -> None:
        """Ends the servers and waits for their end, so their agents are free."""
        self._end_restart()
        self._starting.doing = "ending them"
        self._run.controller.quit(BitMap(self._ids))
        self._run.engine.kill(list(self._launches))

        def all_ended() -> bool:
            self._ended()
            return not self._launches

        self._starting.wait(all_ended, _STOP_WITHIN_S)
        for group in self._launches:
            self._run.events.ignore(group)
        self._launches.clear()
        self._run.controller.roster.forget(BitMap(self._ids))

    def _bring_up(self, deadline: float) -> str:
        began = time.monotonic()
        roster, cluster = self._run.controller.roster, self._cluster
        # Between steps no client has anything to answer.
        roster.begin(0)
        self._launch()

        def all_ready() -> bool:
            ready = len(BitMap(self._ids) & roster.answers.ready)
            self._starting.doing = f"{ready} of {len(self._ids)} dialled in"
            return ready == len(self._ids)

        self._await(all_ready, deadline, "dial in")
        self.versions, self.sources = roster.hello(FIRST_ID).versions, roster.hello(FIRST_ID).sources
        endpoints = self._endpoints = [roster.answers.endpoints[client] for client in self._ids]
        self._joins = {c: Join(system=message) for c, message in zip(self._ids, cluster.join(endpoints), strict=True)}
        address = cluster.address(endpoints)
        due_s = 0.0
        with contextlib.closing(WorkerThread()) as background:
            answers = background.repeated(lambda: cluster.up(address))

            def up() -> bool:
                # Servers do not acknowledge this command: it is resent until the cluster answers.
                nonlocal due_s
                if time.monotonic() >= due_s:
                    due_s = time.monotonic() + RESEND_EVERY_S
                    for client, command in self._joins.items():
                        self._run.controller.send_to(BitMap([client]), command)
                return answers()

            self._starting.doing = "not yet one cluster" if len(endpoints) > 1 else "no answer yet"
            self._await(up, deadline, f"answer as one cluster at {address}")
            self._starting.doing = "warm-up"
            warmed = background.submit(lambda: cluster.warm_up(address))
            self._await(warmed.done, time.monotonic() + self._run.scenario.ready_timeout_s, "end their warm-up")
            warmed.result()
        self._run.journal.note(ServersUp(len(endpoints), address, time.monotonic() - began))
        return address

    def _answer(self) -> bool:
        return self._cluster.up(self._cluster.address(self._endpoints))

    def _end_restart(self) -> None:
        if self._restart is not None:
            self._restart.close()
            self._restart = None

    def _launch(self) -> None:
        groups = []
        for client in self._ids:
            self._groups_made += 1
            group = f"servers-{self._groups_made}"
            flags = ("--group", group, "--first-id", str(client), "--count", "1")
            groups.append(
                Group(
                    id=group,
                    role="server",
                    first_client=client,
                    count=1,
                    command=(*self._program.command, *flags),
                    environment={
                        **self._program.environment,
                        **self._run.controller.environment,
                        **pin_environment(self._spec.pin),
                    },
                    demand=self._spec.demand,
                    constraints=self._spec.constraints,
                    files=group_files(self._run.resolved, "server", 1),
                )
            )
            self._run.controller.roster.expect(group, [client])
        for launch in self._run.engine.launch(groups):
            self._launches[launch.group.id] = launch
            self._run.journal.note(Launched.of(launch))

    def _await(self, condition: Callable[[], bool], deadline: float, what: str) -> None:
        def settled() -> bool:
            if failure := self.failure():
                raise ServerError(failure, _REMEDY)
            return condition()

        if not self._starting.wait(settled, max(0.0, deadline - time.monotonic())):
            raise ServerError(
                f"{counted(len(self._ids), 'server')} did not {what} within {self._run.scenario.ready_timeout_s:g} s",
                f"{_REMEDY}, or raise ready_timeout_s",
            )

    def _ended(self) -> list[tuple[Launch, GroupEvent]]:
        """Removes the servers that have ended since the last call from the launches, and returns them."""
        events = self._run.events.take(self._launches)
        for event in events:
            if event.state == "running":
                self._launches[event.group] = with_real_agent(self._launches[event.group], event)
        return [(self._launches.pop(event.group), event) for event in events if event.state in ENDED_STATES]

    def _fail(self, why: str) -> None:
        if not self._failure:
            self._failure = why
            self._run.journal.note(ServerExit(why))

    def _host_of(self, client: int) -> str:
        roster = self._run.controller.roster
        return roster.hello(client).host if client in roster.present() else "an agent"


class _Restart:
    """Has a server killed and started again, by commands that are resent until they take effect.

    Arguments:
        controller: sends the commands.
        server: the server's id.
        join: the command by which the server was started last.
        endpoint: where the server listens.
        up: whether all servers answer; called on a thread.

    Attributes:
        join: the command that starts it again.
    """

    def __init__(self, controller: Controller, server: int, join: Join, endpoint: str, up: Callable[[], bool]) -> None:
        self.join: Final = msgspec.structs.replace(join, start=join.start + 1)
        self._controller = controller
        self._server = server
        answers = controller.roster.answers
        self._halt: Final = Halt(epoch=answers.epoch, number=answers.next_number(), start=join.start)
        self._host, _, port = endpoint.split(",")[0].rpartition(":")
        self._port = int(port)
        self._up = up
        self._begun = False
        self._due_s = 0.0
        self._background = WorkerThread()
        self._answers: Callable[[], bool] | None = None
        self._send(self._halt)

    def begin(self) -> None:
        """Lets the server start again; the command is sent once its group has acknowledged the end."""
        self._begun = True

    def is_over(self) -> bool:
        """Whether the server was started again and all servers answer; returns at once."""
        is_due = time.monotonic() >= self._due_s
        if self._server not in self._controller.roster.answers.acked(self._halt.number):
            if is_due:
                self._send(self._halt)
            return False
        if not self._begun:
            return False
        if self._answers is None:
            # Not before: the process that is to be killed would answer.
            self._answers = self._background.repeated(self._is_up)
            is_due = True
        if is_due:
            self._send(self.join)
        return self._answers()

    def close(self) -> None:
        """Ends the thread."""
        self._background.close()

    def _is_up(self) -> bool:
        # A cluster may name a dead server as its member for some seconds.
        return accepts(self._host, self._port) and self._up()

    def _send(self, command: Join | Halt) -> None:
        self._due_s = time.monotonic() + RESEND_EVERY_S
        self._controller.send_to(BitMap([self._server]), command)
