"""The engine for plain hosts: groups are processes that a supervisor on each host starts.

:class:`~hydra.ssh.state.HostsState` decides; ``driver.py`` holds the connections to the hosts.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hydra.engine.artifacts.archive import Artifact, build
from hydra.engine.artifacts.start_script import rewritten
from hydra.engine.controller_address import resolved, route_to
from hydra.engine.driver_engine import DriverEngine, DriverProcess
from hydra.engine.interface import Engine, Opening
from hydra.errors import ClusterError
from hydra.model import Group, Launch
from hydra.ssh import supervisor
from hydra.ssh.facts import HostFacts, agent_of, alone, data_address, here, host_facts, named, unusable
from hydra.ssh.failures import HostFailure, failure, refusal
from hydra.ssh.hosts import HostEntry
from hydra.ssh.queries import missing_program
from hydra.ssh.state import HostsState, RunHost
from hydra.system import Waiting

_HELLO_WITHIN_S: Final = 30.0
_READY_WITHIN_S: Final = 600.0
"""How long the archive may take to all hosts."""
_CONFIRM_WITHIN_S: Final = 1.0
_STOP_WITHIN_S: Final = 12.0
_LOOPBACK: Final = "127.0.0.1"
PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"


class HostsEngine(DriverEngine[HostsState]):
    """Runs groups on hosts. The supervisors end them; they do so too if this machine or the driver dies."""

    def confirm(self, wait: Waiting) -> None:
        """Waits up to 1 s for the loss of all hosts, as ``hydra kill`` ends the supervisors before the groups.

        Raises:
            ClusterError: all hosts are lost.
        """

        def over() -> bool:
            self._pump()
            return not self._state.agents()

        wait(over, _CONFIRM_WITHIN_S)
        self._state.require_hosts()

    def _launch(self, groups: Sequence[Group], now: float) -> list[Launch]:  # noqa: ARG002  # the base's signature
        return self._state.launch([replace(group, command=tuple(rewritten(group.command))) for group in groups])


@contextlib.contextmanager
def opened(opening: Opening, hosts: Sequence[HostEntry]) -> Iterator[Engine]:
    """The engine for a run: connects to all hosts, and proves that each can run the programs.

    Raises:
        UsageError, MissingDependencyError, ClusterError: a host cannot be used; the text names all of these hosts.
    """
    if shutil.which(hosts[0].via) is None:
        raise missing_program(hosts[0].via)
    advertised = resolved(opening.settings.advertise) if opening.settings.advertise else ""
    needed = opening.programs()
    artifact = build(needed)
    programs = sorted({next(rewritten(program.command)) for program in needed})
    opening.folder.mkdir(parents=True, exist_ok=True)
    log = opening.folder / "hosts.log"
    with contextlib.ExitStack() as stack:
        driver = DriverProcess("hydra.ssh.driver", log)
        stack.callback(driver.close)
        start = _Opening(driver, hosts, opening.run, artifact, programs, opening.tell, log)
        found, address = start.connect(advertised)
        yield stack.enter_context(
            contextlib.closing(HostsEngine(driver, HostsState(found), address, _STOP_WITHIN_S, time.monotonic))
        )


class _Opening:
    """Has the driver connect to all hosts at once, and waits for them after each of the steps."""

    def __init__(
        self,
        driver: DriverProcess,
        hosts: Sequence[HostEntry],
        run: str,
        artifact: Artifact,
        programs: Sequence[str],
        tell: Callable[[str], None],
        log: Path,
    ) -> None:
        self._driver, self._artifact, self._programs, self._tell, self._log = driver, artifact, programs, tell, log
        self._hosts = {host.name: host for host in hosts}
        self._run = run
        self._script = supervisor.filled(supervisor.SUPERVISOR, digest=artifact.digest, python=PYTHON)
        self._facts: dict[str, HostFacts] = {}
        self._forwarded: dict[str, int] = {}
        self._port = 0

    def connect(self, advertised: str) -> tuple[dict[str, RunHost], str]:
        """The hosts of the run, and the address of this machine that they reach.

        Args:
            advertised: the address that the user gave; "" for none.
        """
        commands = {name: host.command(self._remote()) for name, host in self._hosts.items()}
        self._driver.send([{"call": "open", "script": self._script, "hosts": commands}])
        self._greet(self._hosts)
        self._refuse(
            {
                name: HostFailure(*unusable(self._hosts[name], facts, platform.machine()))
                for name, facts in self._facts.items()
            }
        )
        addresses = {name: data_address(self._hosts[name], facts) for name, facts in self._facts.items()}
        inside = alone(addresses)
        self._refuse(
            {
                name: HostFailure(
                    f"other hosts cannot reach it: only its address {addresses[name]} is known",
                    "give its own address as address under [[hosts]]",
                )
                for name in inside
            }
        )
        address = advertised or self._own_address()
        with socket.create_server((address, 0), backlog=len(self._hosts) + 8) as probed:
            ready = self._prepare(self._hosts, (address, probed.getsockname()[1]))
        unreachable = [name for name, answer in ready.items() if answer == "no"]
        if unreachable:
            self._forward(unreachable, address)
        run = zlib.crc32(self._run.encode())
        return {
            name: RunHost(
                agent_of(host, self._facts[name], run), self._facts[name], addresses[name], self._forwarded.get(name, 0)
            )
            for name, host in self._hosts.items()
        }, address

    def _remote(self) -> list[str]:
        return supervisor.started(self._script, self._run)

    def _own_address(self) -> str:
        """The address of this machine that most hosts see, if it is one; otherwise one that leads to a host."""
        candidates = here(self._facts.values())
        for host in self._hosts.values():
            with contextlib.suppress(OSError):
                candidates.append(route_to(host.address or host.name))
        for address in candidates:
            with contextlib.suppress(OSError), socket.create_server((address, 0)):
                return address
        return _LOOPBACK

    def _greet(self, hosts: Iterable[str]) -> None:
        """Waits until each host has reported its facts."""
        for name, message in self._await("hello", hosts, _HELLO_WITHIN_S, "answer").items():
            self._facts[name] = host_facts(message["facts"])
            if message["forwarded"]:
                self._forwarded[name] = message["forwarded"]

    def _prepare(self, hosts: Iterable[str], reach: tuple[str, int] | None) -> dict[str, str]:
        """Brings the programs to the hosts; returns whether each host reaches an address."""
        hosts = list(hosts)
        missing = [name for name in hosts if not self._facts[name].archive]
        if missing:
            size = self._artifact.path.stat().st_size / 1e6
            self._tell(f"copying the programs ({size:.0f} MB) to {named(missing)}")
        call = {
            "call": "prepare",
            "hosts": hosts,
            "archive": str(self._artifact.path),
            "programs": list(self._programs),
        }
        self._driver.send([{**call, "reach": reach}])
        ready = self._await("ready", hosts, _READY_WITHIN_S, "unpack the programs")
        return {name: message["reach"] for name, message in ready.items()}

    def _forward(self, hosts: Sequence[str], address: str) -> None:
        """Connects again to hosts that cannot reach this machine, with a port that leads here."""
        fixed = [name for name in hosts if self._hosts[name].via != "ssh"]
        self._refuse(
            {
                name: HostFailure(f"it cannot reach {address}, this machine", "name another address with --advertise")
                for name in fixed
            }
        )
        self._tell(f"{named(hosts)} cannot reach this machine at {address}: clients there use the ssh connection (-R)")
        self._driver.send(
            {"call": "forward", "host": name, "command": self._hosts[name].command(self._remote(), self._port)}
            for name in hosts
        )
        self._greet(hosts)
        self._prepare(hosts, None)

    def _refuse(self, failures: Mapping[str, HostFailure]) -> None:
        failed = {name: failures[name] for name in self._hosts if name in failures and failures[name].why}
        if failed:
            raise refusal(failed, len(self._hosts))

    def _await(self, kind: str, hosts: Iterable[str], within_s: float, what: str) -> dict[str, Any]:
        """The message of this kind of each host.

        Raises:
            ClusterError: some hosts failed, or did not send it in time; the text names all of them.
        """
        waiting, found = set(hosts), dict[str, Any]()
        failures: dict[str, HostFailure] = {}
        deadline = time.monotonic() + within_s
        while waiting and time.monotonic() < deadline:
            for message in self._driver.receive(0.1):
                name = message.get("host", "")
                match message["kind"]:
                    case "listening":
                        self._port = message["port"]
                    case "lost":
                        failures.setdefault(name, failure(message["stderr"], message["status"]))
                    case "refused":
                        failures[name] = _refused(message["what"])
                    case its if its == kind:
                        found[name] = message
                waiting -= found.keys() | failures.keys()
            self._driver.send(())
            if self._driver.closed:
                raise ClusterError(self._driver.ended())
        late = HostFailure(f"it did not {what} within {within_s:g} s", f"see {self._log}")
        self._refuse({**dict.fromkeys(waiting, late), **failures})
        return found


def _refused(what: str) -> HostFailure:
    """Why a supervisor cannot use its host."""
    if "No space left on device" in what:
        return failure(what)
    text, _, remedy = what.strip().removeprefix("hydra-run: ").partition(";")
    return HostFailure(text.replace("this agent", "it"), remedy.strip())
