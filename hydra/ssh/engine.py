"""The engine for plain hosts: groups are processes that a supervisor on each host starts.

:class:`~hydra.ssh.state.HostsState` decides; ``driver.py`` holds the connections to the hosts.
"""

from __future__ import annotations

import contextlib
import platform
import secrets
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

from hydra.client.network_interfaces import resolved, route_to
from hydra.engine.artifacts.archive import build
from hydra.engine.artifacts.start_script import rewritten
from hydra.engine.driver_engine import DriverEngine, DriverProcess
from hydra.engine.interface import Engine
from hydra.engine.specification import Opening
from hydra.errors import ClusterError
from hydra.model import Group, Launch, Role
from hydra.ssh import host_scripts
from hydra.ssh.facts import HostFacts, agent_of, data_address, here, host_facts, unusable
from hydra.ssh.failures import HostFailure, failure, reasons, refusal, supervisor_failure
from hydra.ssh.hosts import HostEntry, listed
from hydra.ssh.queries import missing_program
from hydra.ssh.state import HostsState, RunHost, no_servers
from hydra.system import Program, Waiting

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
    programs = opening.programs()
    opening.folder.mkdir(parents=True, exist_ok=True)
    log = opening.folder / "hosts.log"
    with contextlib.ExitStack() as stack:
        driver = DriverProcess("hydra.ssh.driver", log)
        stack.callback(driver.close)
        # Other runs of this user may have the same name.
        run = f"{opening.run}/{secrets.token_hex(3)}"
        start = _Opening(driver, hosts, run, programs, opening.notify, log)
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
        programs: Sequence[Program],
        notify: Callable[[str], None],
        log: Path,
    ) -> None:
        self._driver, self._programs, self._notify, self._log = driver, programs, notify, log
        self._hosts = {host.name: host for host in hosts}
        self._run = run
        self._artifact = build(programs)
        self._script = host_scripts.filled(host_scripts.SUPERVISOR, digest=self._artifact.digest, python=PYTHON)
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
        failures = self._greet(self._hosts)
        self._refuse({**failures, **unusable(self._hosts, self._facts, platform.machine())})
        address = advertised or self._own_address()
        with socket.create_server((address, 0), backlog=len(self._hosts) + 8) as probed:
            ready = self._prepare(self._hosts, (address, probed.getsockname()[1]))
        reach = {name: message["reach"] for name, message in ready.items()}
        if unreachable := {
            name: its for name, its in reach.items() if its == "no" or (its != "yes" and self._is_ssh(name))
        }:
            ready |= self._forward(unreachable, address)
        without = {name: why for name, message in ready.items() if (why := no_servers(message))}
        if len(without) == len(self._hosts):
            raise refusal(without, len(without), doing="take servers")
        if without:
            self._notify(f"no servers start on {reasons(without)}")
        run = zlib.crc32(self._run.encode())
        return {
            name: RunHost(
                agent_of(host, self._facts[name], run),
                self._facts[name],
                data_address(host, self._facts[name]),
                self._forwarded.get(name, 0),
                without.get(name),
            )
            for name, host in self._hosts.items()
        }, address

    def _is_ssh(self, name: str) -> bool:
        return self._hosts[name].via == "ssh"

    def _remote(self) -> list[str]:
        return host_scripts.started(self._script, self._run)

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

    def _greet(self, hosts: Iterable[str]) -> dict[str, HostFailure]:
        """Waits until each host has reported its facts; returns why some did not."""
        found, failures = self._await("hello", hosts, _HELLO_WITHIN_S, "answer")
        for name, message in found.items():
            self._facts[name] = host_facts(message["facts"])
            self._forwarded[name] = message["forwarded"]
        return failures

    def _prepare(self, hosts: Iterable[str], reach: tuple[str, int] | None) -> dict[str, Any]:
        """Brings the programs to the hosts; returns their answers: whether they reach an address, and take servers."""
        hosts = list(hosts)
        missing = [name for name in hosts if not self._facts[name].archive]
        if missing:
            size = self._artifact.path.stat().st_size / 1e6
            self._notify(f"copying the programs ({size:.0f} MB) to {listed(missing)}")
        roles = len(get_args(Role))
        call = {
            "call": "prepare",
            "hosts": hosts,
            "archive": str(self._artifact.path),
            "clients": list(dict.fromkeys(map(_proof, self._programs[:roles]))),
            "servers": list(map(_proof, self._programs[roles:])),
        }
        self._driver.send([{**call, "reach": reach}])
        ready, failures = self._await("ready", hosts, _READY_WITHIN_S, "unpack the programs")
        self._refuse(failures)
        return ready

    def _forward(self, hosts: Mapping[str, str], address: str) -> dict[str, Any]:
        """Connects again to hosts that may not reach this machine, with a port that leads here; returns their answers.

        Args:
            hosts: whether each of them reaches this machine: "no", or "unknown".
            address: the address of this machine that they tried.
        """
        fixed = [name for name in hosts if not self._is_ssh(name)]
        self._refuse(
            dict.fromkeys(
                fixed, HostFailure(f"it cannot reach {address}, this machine", "name another address with --advertise")
            )
        )
        for answer, what in (
            ("no", f"cannot reach this machine at {address}"),
            ("unknown", "cannot find out without bash, nc or Python whether this machine is reached"),
        ):
            if names := [name for name, its in hosts.items() if its == answer]:
                self._notify(f"{listed(names)} {what}: clients there use the ssh connection (-R)")
        self._driver.send(
            {"call": "forward", "host": name, "command": self._hosts[name].command(self._remote(), self._port)}
            for name in hosts
        )
        self._refuse(self._greet(hosts))
        return self._prepare(hosts, None)

    def _refuse(self, failures: Mapping[str, HostFailure]) -> None:
        """Raises UsageError if there are failures; the text names all of these hosts."""
        if failures:
            in_order = {name: failures[name] for name in self._hosts if name in failures}
            raise refusal(in_order, len(self._hosts))

    def _await(
        self, kind: str, hosts: Iterable[str], within_s: float, what: str
    ) -> tuple[dict[str, Any], dict[str, HostFailure]]:
        """The message of this kind of each host, and why the others did not send it in time."""
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
                        failures[name] = supervisor_failure(message["what"])
                    case its if its == kind:
                        found[name] = message
                waiting -= found.keys() | failures.keys()
            self._driver.send(())
            if self._driver.closed:
                raise ClusterError(self._driver.ended())
        late = HostFailure(f"it did not {what} within {within_s:g} s", f"see {self._log}")
        return found, {**dict.fromkeys(waiting, late), **failures}


def _proof(program: Program) -> tuple[str, ...]:
    """The command by which a host proves that a program starts there."""
    words = tuple(rewritten(program.command))
    if program.proof:
        return (*words, *program.proof)
    return ("python", "-c", "import hydra.control.control_client") if words[0] == "python" else (words[0], "--help")
