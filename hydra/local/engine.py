"""The local engine: agents declared on this machine, with a child process for each group and without a daemon."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from hydra.client.network_interfaces import interfaces, route_to
from hydra.engine.placement import merge, place, refusal
from hydra.engine.resources import add, subtract, taken_by
from hydra.errors import ClusterError
from hydra.model import Agent, Group, GroupEvent, Launch, Resources
from hydra.system import Waiting

TERM_GRACE_S: Final = 2.0
"""How long a killed group has to end by itself before SIGKILL."""

_CLOSE_GRACE_S: Final = 3.0
_REAP_DEADLINE_S: Final = 2.0
_POLL_S: Final = 0.005
_TAIL_BYTES: Final = 2048
_TAIL_LINES: Final = 5


@dataclass(slots=True)
class _Running:
    """A launched group whose parent process has not been reaped yet."""

    launch: Launch
    process: subprocess.Popen[bytes]
    stderr: Path
    kill_at: float | None = None
    """When SIGKILL is due for a group that was asked to end (s, the engine's clock)."""
    forced: bool = False


class LocalEngine:
    """Runs groups as child processes of the thread that calls ``launch``.

    A group has its own session, process group and sandbox folder (its working directory, with the files stdout and
    stderr). The engine adds to its environment HYDRA_AGENT, HYDRA_PORTS (comma separated, may be empty) and
    HYDRA_LIFELINE: the number of a file descriptor that reads end-of-file after this process has ended in any way.
    If the agent has a network namespace, the group runs in it, and HYDRA_DATA_HOST is the namespace's address.

    The engine uses no threads: PR_SET_PDEATHSIG, which groups set, fires when the *thread* that started them ends.
    Only one thread may call it.
    """

    is_local: Final = True

    def __init__(
        self,
        agents: Sequence[Agent],
        sandbox_root: Path,
        *,
        grace_s: float = TERM_GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agents = {agent.id: agent for agent in merge(agents)}
        self._hosts = {agent.netns: address_in(agent.netns) for agent in self._agents.values() if agent.netns}
        self.address = here(self._hosts.values())
        self._free: dict[str, Resources] = {agent.id: agent.resources for agent in self._agents.values()}
        self._sandbox_root = sandbox_root.absolute()
        self._grace_s = grace_s
        self._clock = clock
        self._running: dict[str, _Running] = {}
        self._events: list[GroupEvent] = []
        # Every program that this process starts closes both ends; launch() passes on only the read end.
        self._lifeline: tuple[int, int] | None = os.pipe()

    def agents(self) -> list[Agent]:
        """The declared agents with the resources that are free on each now."""
        return [replace(agent, resources=self._free[agent.id]) for agent in self._agents.values()]

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups and starts them; either all of them or none.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: a group was placed but cannot be started, or its id cannot be used.
        """
        if self._lifeline is None:
            raise ClusterError("the local cluster is closed", "make a new one")
        self._refuse_bad_ids(groups)
        self._reap()
        launches, unplaced = place(self.agents(), groups, [running.launch for running in self._running.values()])
        if unplaced:
            raise refusal(unplaced, "change the constraints, the demand, or the agents in conf/hydra.toml")
        started: list[_Running] = []
        try:
            for launch in launches:
                started.append(self._start(launch, self._lifeline[0]))  # noqa: PERF401 (kept when one fails)
        except BaseException:  # Ctrl-C too must not leave half of them
            self._end_now(started)
            raise
        for running in started:
            launch = running.launch
            self._running[launch.group.id] = running
            self._free[launch.agent.id] = subtract(self._free[launch.agent.id], taken_by(launch))
            self._events.append(GroupEvent(launch.group.id, "running", launch.agent.id, f"pid {running.process.pid}"))
        return launches

    def kill(self, groups: Iterable[str]) -> None:
        """Asks these groups to end (SIGTERM); a later ``events`` kills those that are left after the grace period."""
        for group in groups:
            running = self._running.get(group)
            if running is not None and running.kill_at is None:
                running.kill_at = self._clock() + self._grace_s
                _signal(running, signal.SIGTERM)

    def events(self) -> list[GroupEvent]:
        """The events since the last call, oldest first."""
        self._reap()
        events, self._events = self._events, []
        return events

    def confirm(self, wait: Waiting) -> None:
        """Does nothing: no other process can end a whole local run."""

    def close(self) -> None:
        """Ends all groups within about 3 s and frees the engine's resources; ``events`` still reports the ends."""
        if self._lifeline is None:
            return
        try:
            self.kill(list(self._running))
            self._reap_until(self._clock() + min(self._grace_s, _CLOSE_GRACE_S))
        finally:  # also when a second Ctrl-C cuts the wait short
            for running in self._running.values():
                running.kill_at = running.kill_at or self._clock()
                running.forced = True
                _signal(running, signal.SIGKILL)
            self._reap_until(self._clock() + _REAP_DEADLINE_S)
            for end in self._lifeline:
                os.close(end)
            self._lifeline = None

    def _refuse_bad_ids(self, groups: Sequence[Group]) -> None:
        seen = set(self._running)
        for group in groups:
            if group.id in seen:
                raise ClusterError(f"group {group.id!r} is running already", "give every group an id of its own")
            # The id is the name of the sandbox folder.
            if group.id in ("", ".", "..") or "/" in group.id or "\0" in group.id:
                raise ClusterError(f"group id {group.id!r} cannot be a folder name", "use letters, digits, - and _")
            seen.add(group.id)

    def _start(self, launch: Launch, lifeline: int) -> _Running:
        group, netns = launch.group, launch.agent.netns
        command = inside(netns, group.command) if netns else group.command
        sandbox = self._sandbox_root / group.id
        environment = {
            **os.environ,
            **group.environment,
            "HYDRA_AGENT": launch.agent.id,
            "HYDRA_LIFELINE": str(lifeline),
            "HYDRA_PORTS": ",".join(map(str, launch.ports)),
            **({"HYDRA_DATA_HOST": self._hosts[netns]} if netns else {}),
        }
        try:
            sandbox.mkdir(parents=True, exist_ok=True)
            # Appending: a group that is launched again under its id keeps the first one's output.
            with (sandbox / "stdout").open("ab") as stdout, (sandbox / "stderr").open("ab") as stderr:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=sandbox,
                    env=environment,
                    pass_fds=(lifeline,),
                    start_new_session=True,
                )
        except (OSError, ValueError, IndexError) as error:  # the last two: an empty command, a NUL byte in it
            program = group.command[0] if group.command else "an empty command"
            raise ClusterError(
                f"group {group.id} cannot be started on {launch.agent.id}: {program}: {error}",
                "check that the program exists, the limits (ulimit -u, ulimit -n) and the space on the disk",
            ) from error
        return _Running(launch, process, sandbox / "stderr")

    def _reap(self) -> None:
        """Records which groups have ended, and kills those whose grace period is over."""
        for name, running in list(self._running.items()):
            if _has_exited(running.process.pid):
                # The child is not reaped yet, so no other process group can have its number.
                _signal(running, signal.SIGKILL)
                running.process.wait()
                del self._running[name]
                agent = running.launch.agent.id
                self._free[agent] = add(self._free[agent], taken_by(running.launch))
                self._events.append(_ending(running))
            elif running.kill_at is not None and not running.forced and self._clock() >= running.kill_at:
                running.forced = True
                _signal(running, signal.SIGKILL)

    def _reap_until(self, deadline: float) -> None:
        self._reap()
        while self._running and self._clock() < deadline:
            time.sleep(_POLL_S)
            self._reap()

    def _end_now(self, started: Sequence[_Running]) -> None:
        for running in started:
            _signal(running, signal.SIGKILL)
        for running in started:
            running.process.wait()


def _has_exited(pid: int) -> bool:
    """Whether the child has ended; it stays unreaped."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # other code in this process reaped it
        return True


def _signal(running: _Running, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended; the next _reap() finds that out
        os.killpg(running.process.pid, number)


def _ending(running: _Running) -> GroupEvent:
    """The last event of a reaped group."""
    code = running.process.returncode
    if code < 0:
        try:
            how = f"killed by {signal.Signals(-code).name}"
        except ValueError:
            how = f"killed by signal {-code}"
    else:
        how = f"exit status {code}"
    state: Literal["killed", "finished", "failed"]
    if running.kill_at is not None:
        state, detail = "killed", how + (", as SIGTERM was not enough" if running.forced else "")
    elif code == 0:
        state, detail = "finished", how
    else:
        tail = _tail(running.stderr)
        state, detail = "failed", f"{how}: {tail}" if tail else f"{how}; {running.stderr} is empty"
    return GroupEvent(running.launch.group.id, state, running.launch.agent.id, detail)


def _tail(path: Path) -> str:
    """The last lines of a file, at most about 2 kB, joined into one."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-_TAIL_LINES:])


_LOOPBACK: Final = "127.0.0.1"
_REMEDY: Final = "make the namespaces first, as root: scripts/namespaces up N"


def address_in(netns: str) -> str:
    """The first address in a network namespace.

    Raises:
        ClusterError: the namespace does not exist, has no address, or may not be read.
    """
    try:
        found = interfaces(netns)
    except OSError as e:
        raise ClusterError(f"the agents' network namespace {netns}: {e}", _REMEDY) from None
    if not found:
        raise ClusterError(f"the agents' network namespace {netns} has no IPv4 address", _REMEDY)
    return found[0].address


def here(hosts: Iterable[str]) -> str:
    """The address at which all of these hosts reach this machine; the loopback address if there are none.

    Raises:
        ClusterError: there is no route to a host, or the routes leave from different addresses.
    """
    found = {_route_to(host) for host in hosts}
    if len(found) > 1:
        raise ClusterError(f"the agents' networks reach this machine at several addresses: {sorted(found)}", _REMEDY)
    return found.pop() if found else _LOOPBACK


def inside(netns: str, command: Sequence[str]) -> list[str]:
    """The command that runs ``command`` in a network namespace, in the same process."""
    return ["nsenter", f"--net=/run/netns/{netns}", "--", *command]


def _route_to(host: str) -> str:
    try:
        return route_to(host)
    except OSError as e:
        raise ClusterError(f"there is no route to the agent at {host}: {e.strerror}", _REMEDY) from None
