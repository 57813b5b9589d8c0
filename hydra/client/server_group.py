"""The program of a server's group: connects to the controller, and runs the server once it knows the other servers.

The server runs under the supervisor, so neither the server nor its data outlive this process, however it ends.
This process ends when it receives ``quit`` or SIGTERM, when its lifeline closes, when the controller has been silent
for too long, and when the server ends.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NoReturn

from hydra.client.host_monitor import monitor_of
from hydra.client.kernel_files import texts_for
from hydra.client.linux_process import confine_to, die_with_parent
from hydra.client.process_group import await_welcome, from_environment, parse
from hydra.client.server_interface import PROVE, ServerProgram, endpoint_of, kept_ports
from hydra.client.supervised_process import SupervisedProcess, tail
from hydra.control import curve_security
from hydra.control.control_client import ClientIdentity, ControlClient, ProcessLocation
from hydra.errors import EXIT_FAILED, HydraError, ServerError
from hydra.wire import (
    CPUS_VARIABLE,
    EXIT_DISMISSED,
    EXIT_STRANDED,
    EXIT_USAGE,
    RESEND_EVERY_S,
    WELCOME_WITHIN_S,
)
from hydra.wire.messages import Error, Halt, Join, Look, Ping, Quit, Ready, Watch

LOG: Final = "server.log"
FOLDER: Final = "server"
_POLL_S: Final = 0.2


def main(program: ServerProgram, arguments: Sequence[str] | None = None) -> int:
    """Runs one server until it is dismissed; returns the exit code, after one line on stderr unless the code is 0."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if PROVE in arguments:
        return _prove(program)
    options = parse(arguments, [program.kind])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's business
    signal.signal(signal.SIGTERM, _leave)
    try:
        confine_to(os.environ.get(CPUS_VARIABLE, ""))
        credentials = curve_security.credentials(os.environ)
        lifeline = from_environment("HYDRA_LIFELINE", int)
        ports = [int(port) for port in os.environ.get("HYDRA_PORTS", "").split(",") if port] or [0] * program.ports
        welcome_within_s = from_environment("HYDRA_WELCOME_S", float) or WELCOME_WITHIN_S
        if len(ports) < program.ports:
            raise ValueError(f"HYDRA_PORTS names {len(ports)} ports, and a {program.title} needs {program.ports}")
    except ValueError as e:
        sys.stderr.write(f"hydra group {options.group}: {e}\n")
        return EXIT_USAGE
    if lifeline is not None:
        die_with_parent(os.getppid())
    try:
        with ExitStack() as stack:
            node = _Node(stack, program, options.first_id, options.group, ports, local=lifeline is not None)
            control = node.dial(credentials)
            code = await_welcome(control, credentials.endpoint, welcome_within_s)
            return node.serve(control, lifeline) if code is None else code
    except (HydraError, OSError) as e:
        sys.stderr.write(f"hydra group {options.group}: {e}\n")
        return EXIT_FAILED


def _prove(program: ServerProgram) -> int:
    """Checks that this host has what the server needs; returns the exit code."""
    try:
        program.find()
    except (HydraError, OSError) as e:
        sys.stderr.write(f"{e}\n")
        return EXIT_FAILED
    return EXIT_DISMISSED


def _leave(*_: object) -> NoReturn:
    """Raises SystemExit, so a wait or another program in progress is ended by its own cleanup."""
    raise SystemExit(EXIT_DISMISSED)


class _Node:
    """The resources of one server's group; all of them end with ``stack``.

    Raises:
        MissingDependencyError, ServerError: the server's program is missing, or could not be prepared.
        OSError: a port is in use.
    """

    def __init__(
        self, stack: ExitStack, program: ServerProgram, client: int, group: str, ports: Sequence[int], *, local: bool
    ) -> None:
        self._stack = stack
        self._program = program
        self._id = client
        self._group = group
        # Missing programs must be noticed before the controller counts on this server.
        self._versions = program.prepare()
        # Without an address, a remote agent is known by its host name.
        host = os.environ.get("HYDRA_DATA_HOST") or ("127.0.0.1" if local else socket.gethostname())
        self._endpoint = endpoint_of(host, stack.enter_context(kept_ports(host, ports[: program.ports])))

    def dial(self, credentials: curve_security.Credentials) -> ControlClient:
        """Opens the connection to the controller and sends ``hello``."""
        identity = ClientIdentity(
            ids=[self._id],
            role="server",
            group=self._group,
            incarnation=0,
            implementation=self._program.kind,
            versions=dict(self._versions),
            here=ProcessLocation.read(),
            sources=dict(self._program.sources()),
        )
        control = ControlClient(credentials, identity)
        self._stack.callback(control.close)
        return control

    def serve(self, control: ControlClient, lifeline: int | None) -> int:
        """Sends this server's endpoint and then obeys the controller; returns the exit code.

        A server that was halted starts again with its folder when the controller sends the next start.

        Raises:
            ServerError: the server could not be started, or ended; the controller has received the error.
        """
        server: SupervisedProcess | None = None
        starts, is_halted = 0, False
        watcher = monitor_of([self._id], control.send, os.getpid())
        ready_s = 0.0
        while not (why := control.end_reason()):
            if not starts and time.monotonic() >= ready_s:
                ready_s = time.monotonic() + RESEND_EVERY_S
                control.send(Ready(ids=[self._id], seq=1, epoch=0, endpoint=self._endpoint))
            message = control.receive(min(_POLL_S, watcher.work()))
            if isinstance(message, Quit) or (lifeline is not None and select.select([lifeline], [], [], 0.0)[0]):
                return EXIT_DISMISSED
            if isinstance(message, Ping) and message.reply:
                control.answer(message)
            if isinstance(message, Watch):
                watcher.take(message)
            if isinstance(message, Look):
                control.send(texts_for(message, [self._id]))
            if isinstance(message, Halt) and server is not None and message.start == starts:
                server.kill()
                is_halted = True
                control.acknowledge(message)
            if isinstance(message, Join) and (server is None or is_halted) and message.start == starts + 1:
                if server is not None:
                    server.abandon()
                try:
                    server, starts, is_halted = self._start(message), message.start, False
                except (HydraError, OSError, ValueError) as e:
                    raise self._reported(control, f"the {self._program.title} could not be started: {e}") from e
            if server is not None and not is_halted and server.wait_for_end(0.0):
                raise self._reported(
                    control, f"the {self._program.title} ended with {server.status}: {tail(Path(LOG))}"
                )
        sys.stderr.write(f"hydra group {self._group}: the controller {why}\n")
        return EXIT_STRANDED

    def _reported(self, control: ControlClient, what: str) -> ServerError:
        control.send(Error(ids=[self._id], seq=1, epoch=0, message=what[:4000], fatal=True))
        return ServerError(what)

    def _start(self, join: Join) -> SupervisedProcess:
        folder = Path(FOLDER).absolute()
        # The supervisor does this as well, unless it was killed itself.
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(exist_ok=join.start > 1)
        command = self._program.command(folder, self._endpoint, join.system)
        # No grace: the data is deleted anyway, and a server that stops in order may wait for the others.
        server = SupervisedProcess(command, folder, Path(LOG).absolute(), grace_s=0.0)
        self._stack.callback(server.stop)
        return server
