"""A server of any system on this machine that its owner starts and ends."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from hydra.client.server_interface import ServerProgram, accepts, endpoint_of, free_ports
from hydra.client.supervised_process import SupervisedProcess, tail
from hydra.errors import ServerError
from hydra.system import ServerCluster, Waiting, wait_alone
from hydra.system.worker_thread import WorkerThread

START_TIMEOUT_S: Final = 60.0
PREPARE_TIMEOUT_S: Final = 900.0
"""The time is long, because at the first start on a machine programs may have to be fetched and prepared."""
STOP_TIMEOUT_S: Final = 600.0
"""The time is long, because a slow disk needs time to remove the server's data; the server itself is killed within
4 s."""
PORT_ATTEMPTS: Final = 5
LOG: Final = "server.log"
_LOOK_EVERY_S: Final = 0.02
_TAKEN: Final = "in use"
"""A part of the kernel's text for EADDRINUSE; a server whose port is in use logs it before it ends."""


@dataclass(eq=False)
class LocalServer:
    """A single server, whose data is deleted when it ends. See :class:`hydra.system.Servers`.

    A supervisor process runs the server: if the owner ends, even by SIGKILL, the server ends and its folder is deleted
    within 2 s.

    Attributes:
        program: starts the server.
        cluster: configures the server as the only member of a cluster, and checks whether it is up.
        folder: folder for data and settings. The folder must be empty or absent; it is created, and always removed at
            the end.
        log: file for the server's output; None: a file in ``folder``, which is removed with it.
        host: the address that the server binds and that clients use.
        ports: picks this many free ports of a host; another process may bind them first.
        warm: whether ``start`` warms the server up before it returns.
        wait: how ``start`` and ``stop`` wait for the server.
        cpus: the CPUs on which the server runs; (): any.
        versions: versions of the server's programs, once it is started.
        sources: where these programs were found.
    """

    program: ServerProgram
    cluster: ServerCluster
    folder: Path
    _: KW_ONLY
    log: Path | None = None
    host: str = "127.0.0.1"
    ports: Callable[[str, int], list[int]] = free_ports
    warm: bool = True
    wait: Waiting = wait_alone
    cpus: Sequence[int] = ()
    versions: Mapping[str, str] = field(default_factory=dict, init=False)
    sources: Mapping[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self._log = (self.log or self.folder / LOG).resolve()
        self._running: SupervisedProcess | None = None
        self._created = False
        self._address = self._endpoint = ""
        self._join: Mapping[str, Any] | None = None
        self._returning: WorkerThread | None = None  # starts the server that was killed
        self._returned: Future[None] | None = None

    @property
    def address(self) -> str:
        """The server's address for clients.

        Raises:
            ServerError: the server is not started.
        """
        if not self._address:
            raise ServerError(f"the local {self.program.title} is not started", "call start() first")
        return self._address

    @property
    def pids(self) -> tuple[int, int] | None:
        """Process ids of the supervisor and of the server; None if the server is not running."""
        return (self._running.pid, self._running.command_pid) if self._running else None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> str:
        """Starts the server, waits until it answers, warms it up, and returns its address for clients.

        Raises:
            ServerError: the server did not start within ``timeout_s``; the text has the last lines of its log.
            MissingDependencyError: a program that the server needs is missing.
        """
        title = self.program.title
        if self._running is not None:
            raise ServerError(f"the local {title} is started already", "stop it first")
        if self.folder.exists() and any(self.folder.iterdir()):
            raise ServerError(f"the folder {self.folder} of the {title} is not empty", "name a new one")
        with contextlib.closing(WorkerThread(self.wait)) as background:
            self.versions = background.ask(self.program.prepare, PREPARE_TIMEOUT_S)
            self.sources = self.program.sources()
            deadline = time.monotonic() + timeout_s
            for _ in range(PORT_ATTEMPTS):
                if self._start(background, self.ports(self.host, self.program.ports), deadline):
                    return self._address
        raise ServerError(f"the {title} found its ports taken {PORT_ATTEMPTS} times in a row", "try again")

    def alive(self) -> bool:
        """Whether the server's process is running; costs one system call."""
        return self._running is not None and not self._running.wait_for_end(0.0)

    def failure(self) -> str:
        """A text that the server's process ended, with the end of its log; "" if it is running (one system call)."""
        return "" if self.alive() else f"the local {self.program.title} ended: {tail(self._log)}"

    def endpoints(self) -> Sequence[str]:
        """The endpoint at which the server listens; [] if it is not started."""
        return [self._endpoint] if self._address else []

    def processes(self) -> Sequence[int]:
        """The id of the server's process; [] if it is not running."""
        return [self._running.command_pid] if self._running else []

    def kill(self, address: str, when: str) -> None:  # noqa: ARG002
        """Raises an error: without the only server, no server would be left."""
        raise ServerError(f"the {self.program.title} at {address} is the only one", "ask for several")

    def halt(self) -> str:
        """Kills the server by SIGKILL and keeps its folder; returns its endpoint."""
        if self._running is not None:
            self._running.kill()
        return self._endpoint

    def start_again(self) -> None:
        """Starts the killed server again on a thread of its own."""
        self._forget_return()
        self._returning = WorkerThread()
        self._returned = self._returning.submit(self._return)

    def is_back(self) -> bool:
        """Whether the server answers again; errors are those of :meth:`_return`."""
        returned = self._returned
        if returned is None or not returned.done():
            return False
        self._forget_return()
        returned.result()
        return True

    def _return(self) -> None:
        """Starts the killed server with the same settings, folder and endpoint, and waits until it answers.

        Raises:
            ServerError: it does not answer within ``START_TIMEOUT_S``, or ended.
        """
        if self._running is None:
            raise ServerError(f"the local {self.program.title} is not started", "call start() first")
        self._running.abandon()
        command = self.program.command(self.folder, self._endpoint, self._join)
        self._running = SupervisedProcess(command, self.folder, self._log, cpus=self.cpus)
        deadline = time.monotonic() + START_TIMEOUT_S
        host, _, port = self._endpoint.split(",")[0].rpartition(":")
        while not (accepts(host, int(port)) and self.cluster.up(self._address)):
            if self._running.wait_for_end(_LOOK_EVERY_S) or time.monotonic() > deadline:
                raise ServerError(f"the {self.program.title} did not return: {tail(self._log)}", "see its log")

    def detach(self) -> None:
        """Keeps the server running after this process ends; SIGTERM to the supervisor ends the server."""
        if self._running is not None:
            self._running.detach()

    def stop(self) -> None:
        """Ends the server and removes its folder; may be called twice, or without ``start``."""
        self._forget_return()
        running, self._running, self._address = self._running, None, ""
        created, self._created = self._created, False

        def clear() -> None:
            if running is not None:
                running.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

        if created:
            # On a separate thread, because a call of an interrupted start may still be running on the other one.
            with contextlib.closing(WorkerThread(self.wait)) as background:
                background.ask(clear, STOP_TIMEOUT_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _forget_return(self) -> None:
        if self._returning is not None:
            self._returning.close()
        self._returning = self._returned = None

    def _start(self, background: WorkerThread, ports: list[int], deadline: float) -> bool:
        """Starts the server at these ports; False if another process has bound one of them."""
        title = self.program.title
        endpoint = endpoint_of(self.host, ports)
        (join,) = self.cluster.join([endpoint])
        self._join = join
        address = self.cluster.address([endpoint])
        self._created = True
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            command = self.program.command(self.folder, endpoint, join)
            self._running = SupervisedProcess(command, self.folder, self._log, cpus=self.cpus)
            if self._wait_until_up(background, self._running, ports[0], address, deadline):
                self._address, self._endpoint = address, endpoint
                if self.warm:
                    self._warm_up(background)
                return True
            last = tail(self._log)
        except OSError as e:
            self.stop()
            raise ServerError(f"the {title} could not be started: {e}") from None
        except BaseException:
            # This includes Ctrl-C: no process or file may be left behind.
            self.stop()
            raise
        self.stop()
        if _TAKEN not in last:
            raise ServerError(f"the {title} ended while it came up: {last}", "see its log and its settings")
        return False

    def _wait_until_up(
        self, background: WorkerThread, running: SupervisedProcess, port: int, address: str, deadline: float
    ) -> bool:
        """Waits until the server answers (True) or its process ends (False)."""
        answers = background.repeated(lambda: accepts(self.host, port) and self.cluster.up(address))
        if not self.wait(lambda: running.wait_for_end(0.0) or answers(), deadline - time.monotonic()):
            raise ServerError(
                f"the {self.program.title} did not answer in time: {tail(self._log)}", "see its log and its settings"
            )
        return not running.wait_for_end(0.0)

    def _warm_up(self, background: WorkerThread) -> None:
        address, title = self._address, self.program.title
        try:
            background.ask(lambda: self.cluster.warm_up(address), START_TIMEOUT_S)
        except TimeoutError:
            raise ServerError(
                f"the warm-up of the {title} at {address} took longer than {START_TIMEOUT_S:.0f} s"
            ) from None
