"""The state of a run's hosts and groups, and the decisions about them. Pure: time is an argument, calls a result."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hydra.control.curve_security import ENDPOINT
from hydra.engine.placement import place, refusal
from hydra.engine.resources import add, subtract, taken_by
from hydra.errors import ClusterError
from hydra.model import Agent, Group, GroupEvent, Launch
from hydra.ssh.facts import HostFacts
from hydra.ssh.failures import HostFailure, failure, reasons, supervisor_failure
from hydra.ssh.hosts import listed

KILL_GRACE_S: Final = 2.0
"""How long a killed group has to end by itself before SIGKILL."""
AGAIN_AFTER_S: Final = 3.0
"""Seconds from the loss of a host until the driver connects again; meanwhile the supervisor there ends its groups."""
_SIGNALLED: Final = 128
"""A shell's status of a program that a signal ended, less the signal's number."""

Json = dict[str, Any]


@dataclass(slots=True)
class RunHost:
    """A host of a run.

    Attributes:
        agent: the host with its free resources.
        facts: what it reports.
        address: the host's address for clients of other hosts.
        forwarded: the host's port that leads to the controller; 0 if the host reaches the controller itself.
        no_servers: why servers do not start there; None: they do, or no server is a group.
        lost: why the connection has ended; "" while it has not.
        again_at: when a lost host is connected again; None: never, or it is being connected.
    """

    agent: Agent
    facts: HostFacts
    address: str
    forwarded: int = 0
    no_servers: HostFailure | None = None
    lost: str = ""
    again_at: float | None = None


@dataclass(slots=True)
class _Started:
    """A launched group that has not ended."""

    launch: Launch
    kill_at: float | None = None
    """When SIGKILL is due for a group that was asked to end; infinity when it was sent."""


class HostsState:
    """The state of one run; see :class:`hydra.engine.driver_engine.EngineState`.

    Attributes:
        calls: calls for the driver, oldest first; the owner takes them.
        events: events of groups, oldest first; the owner takes them.
    """

    def __init__(self, hosts: Mapping[str, RunHost]) -> None:
        self.calls: list[Json] = []
        self.events: list[GroupEvent] = []
        self._hosts = dict(hosts)
        self._groups: dict[str, _Started] = {}
        self._relayed = False

    def agents(self) -> list[Agent]:
        """The hosts with a connection, with their free resources."""
        return [host.agent for host in self._hosts.values() if not host.lost]

    def require_hosts(self) -> None:
        """Raises ClusterError if no host has a connection."""
        if not any(not host.lost for host in self._hosts.values()):
            causes = dict.fromkeys(host.lost for host in self._hosts.values())
            names = listed(list(self._hosts))
            raise ClusterError(f"all hosts are lost ({names}): {'; '.join(causes)}", "continue the run with --resume")

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places all of the groups or none, and has the placed ones started.

        Raises:
            PlacementError: a group fits nowhere.
            ClusterError: an id cannot be used, no host is left, or a host's limit of open files is too low.
        """
        self.require_hosts()
        seen = set(self._groups)
        for group in groups:
            if group.id in seen:
                raise ClusterError(f"group {group.id!r} is running already", "give every group an id of its own")
            if not re.fullmatch(r"\w[\w.-]*", group.id, re.ASCII):
                raise ClusterError(f"group id {group.id!r} cannot be a folder name", "use letters, digits, - and _")
            seen.add(group.id)
        without: dict[str, HostFailure] = {}
        if any(group.role == "server" for group in groups):
            without = {name: host.no_servers for name, host in self._hosts.items() if host.no_servers}
        agents = [agent for agent in self.agents() if agent.id not in without]
        launches, unplaced = place(agents, groups, [each.launch for each in self._groups.values()])
        if unplaced:
            remedy = "change the constraints, the demand, or attributes and resources under [[hosts]]"
            raise refusal(unplaced, f"{remedy}; no servers start on {reasons(without)}" if without else remedy)
        self._refuse_too_few_files(launches)
        for launch in launches:
            self._start(launch)
        return launches

    def kill(self, groups: Iterable[str], now: float) -> None:
        """Asks these groups to end."""
        for name in groups:
            started = self._groups.get(name)
            if started is not None and started.kill_at is None:
                started.kill_at = now + KILL_GRACE_S
                self._signal(started, signal.SIGTERM)

    def handle(self, message: Json, now: float) -> None:
        """Takes one message of the driver's process (``driver.py`` lists them)."""
        match message["kind"]:
            case "started" if message["group"] in self._groups:
                self.events.append(GroupEvent(message["group"], "running", message["host"], f"pid {message['pid']}"))
            case "ended" if message["group"] in self._groups:
                started = self._groups[message["group"]]
                self._end(started, _ending(started, int(message["status"]), message["text"]))
            case "lost":
                found = failure(message["stderr"], message["status"])
                self._lose([message["host"]], found.why)
                if found.transient:
                    self._hosts[message["host"]].again_at = now + AGAIN_AFTER_S
            case "hello":
                self._hosts[message["host"]].forwarded = message["forwarded"]
            case "ready":
                host = self._hosts[message["host"]]
                host.lost, host.no_servers = "", no_servers(message)

    def tick(self, now: float) -> None:
        """Kills the groups whose grace period is over, and has lost hosts connected again that are due."""
        for name, host in self._hosts.items():
            if host.again_at is not None and now >= host.again_at:
                host.again_at = None
                self.calls.append({"call": "again", "host": name})
        for started in self._groups.values():
            if started.kill_at is not None and now >= started.kill_at:
                started.kill_at = float("inf")
                self._signal(started, signal.SIGKILL)

    def driver_ended(self, why: str) -> None:
        """Records that the driver has ended although the engine did not stop it."""
        self._lose([name for name, host in self._hosts.items() if not host.lost], why)

    def _refuse_too_few_files(self, launches: Sequence[Launch]) -> None:
        lacks: dict[str, str] = {}
        for group, name in ((launch.group, launch.agent.id) for launch in launches):
            limit = self._hosts[name].facts.nofile
            if limit is not None and limit < group.files:
                lack = f"a process may open {limit} files (ulimit -Hn), and one of group {group.id} needs {group.files}"
                lacks.setdefault(name, lack)
        if lacks:
            first = next(iter(lacks.values()))
            remedy = "raise nofile in /etc/security/limits.conf there, or have fewer clients"
            raise ClusterError(f"{listed(list(lacks))}: {first}", remedy)

    def _start(self, launch: Launch) -> None:
        group, host = launch.group, self._hosts[launch.agent.id]
        host.agent = replace(host.agent, resources=subtract(host.agent.resources, taken_by(launch)))
        self._groups[group.id] = _Started(launch)
        environment = {
            **group.environment,
            "HYDRA_AGENT": launch.agent.id,
            "HYDRA_DATA_HOST": host.address,
            "HYDRA_PORTS": ",".join(map(str, launch.ports)),
        }
        if host.forwarded:
            if not self._relayed:
                self._relayed = True
                address, _, port = group.environment[ENDPOINT].removeprefix("tcp://").rpartition(":")
                self.calls.append({"call": "relay", "address": address, "port": int(port)})
            environment[ENDPOINT] = f"tcp://127.0.0.1:{host.forwarded}"
        self.calls.append(
            {
                "call": "start",
                "host": launch.agent.id,
                "group": group.id,
                "environment": environment,
                "command": list(group.command),
            }
        )

    def _signal(self, started: _Started, number: signal.Signals) -> None:
        self.calls.append(
            {
                "call": "signal",
                "host": started.launch.agent.id,
                "group": started.launch.group.id,
                "signal": number.name.removeprefix("SIG"),
            }
        )

    def _lose(self, names: Sequence[str], why: str) -> None:
        for name in names:
            self._hosts[name].lost = why
        for started in [each for each in self._groups.values() if each.launch.agent.id in names]:
            launch = started.launch
            self._end(started, GroupEvent(launch.group.id, "lost", launch.agent.id, f"its host is lost: {why}"))

    def _end(self, started: _Started, event: GroupEvent) -> None:
        launch = started.launch
        del self._groups[launch.group.id]
        host = self._hosts[launch.agent.id]
        host.agent = replace(host.agent, resources=add(host.agent.resources, taken_by(launch)))
        self.events.append(event)


def no_servers(ready: Json) -> HostFailure | None:
    """Why servers do not start on a host that is ready; None: they do."""
    return supervisor_failure(ready["no_servers"]) if ready["no_servers"] else None


def _ending(started: _Started, status: int, text: str) -> GroupEvent:
    """The last event of a group whose program ended with this status of a shell."""
    group, agent = started.launch.group.id, started.launch.agent.id
    how = f"exit status {status}"
    if status > _SIGNALLED:
        try:
            how = f"killed by {signal.Signals(status - _SIGNALLED).name}"
        except ValueError:
            how = f"killed by signal {status - _SIGNALLED}"
    if started.kill_at is not None:
        forced = ", as SIGTERM was not enough" if started.kill_at == float("inf") else ""
        return GroupEvent(group, "killed", agent, how + forced)
    if status == 0:
        return GroupEvent(group, "finished", agent, how)
    tail = " | ".join(filter(None, map(str.strip, text.split("|"))))
    return GroupEvent(group, "failed", agent, f"{how}: {tail}" if tail else how)
