"""The program of a process group: a parent that forks a relay and its clients, and the code of these processes.

The parent has one thread and no sockets, so it can fork at any time. It forks the next client when an earlier one
was welcomed, so a limited number connect at once: thousands would overflow the listen queue. When the parent's
lifeline (a pipe from the process that started it) closes, it kills all its processes and ends.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar, cast

from hydra.client.linux_process import confine_to, die_with_parent, thread_count
from hydra.client.publisher import TransportPublisher
from hydra.client.relay import KILL, RelayPipes, relay_main
from hydra.client.subscriber import TransportSubscriber
from hydra.client.transport import Driver, Kind, PublisherTransport, SubscriberTransport, prepare_system
from hydra.control import curve_security
from hydra.control.control_client import ClientIdentity, ControlClient, ProcessLocation
from hydra.wire import (
    CPUS_VARIABLE,
    EXIT_DISMISSED,
    EXIT_RELAY_DIED,
    EXIT_STRANDED,
    EXIT_USAGE,
    WELCOME_WITHIN_S,
)
from hydra.wire.messages import Error, Quit, Welcome

_N = TypeVar("_N", int, float)


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The command line of a group."""

    kind: str
    group: str
    first_id: int
    count: int
    fork_window: int
    respawns: int


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; see --help\n")


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or int(text) >= 2**32:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least}")
        return int(text)

    return parse


def parse(arguments: Sequence[str], kinds: Sequence[str]) -> GroupOptions:
    """The options in a command line; exits with 2 and one line on stderr if they are invalid."""
    parser = _OneLineParser(
        description="A group of Hydra clients; started by hydra on an agent.",
        allow_abbrev=False,
        # Asking the terminal for its width would import compression modules.
        formatter_class=partial(argparse.HelpFormatter, width=100),
    )
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("--group", required=True, help="id of the process group")
    parser.add_argument("--first-id", required=True, type=_whole(0), help="id of the first client of the process group")
    parser.add_argument("--count", required=True, type=_whole(1), help="number of clients to fork")
    parser.add_argument(
        "--fork-window", type=_whole(1), default=128, help="most forked clients that wait for their welcome"
    )
    parser.add_argument("--respawns", type=_whole(0), default=3, help="how often a client that died is replaced")
    return GroupOptions(**vars(parser.parse_args(arguments)))


def main(kinds: Mapping[str, Kind], arguments: Sequence[str] | None = None) -> int:
    """Runs a group until its clients were dismissed or its lifeline closes; returns the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments, sorted(kinds))
    try:
        confine_to(os.environ.get(CPUS_VARIABLE, ""))
        credentials = curve_security.credentials(os.environ)
        lifeline = from_environment("HYDRA_LIFELINE", int)
        welcome_within_s = from_environment("HYDRA_WELCOME_S", float)
    except ValueError as e:
        sys.stderr.write(f"hydra group {options.group}: {e}\n")
        return EXIT_USAGE
    if lifeline is not None:
        die_with_parent(os.getppid())
    prepare_system(kinds[options.kind].system)
    # All clients share the present objects; frozen for the garbage collector, their pages stay shared.
    gc.collect()
    gc.freeze()
    within_s = WELCOME_WITHIN_S if welcome_within_s is None else welcome_within_s
    return _Parent(options, kinds[options.kind], credentials, lifeline, within_s).run()


def from_environment(name: str, number: Callable[[str], _N]) -> _N | None:
    """The number in an environment variable; None if the variable is not set."""
    text = os.environ.get(name)
    if not text:
        return None
    try:
        return number(text)
    except ValueError:
        raise ValueError(f"the environment variable {name} is no number: {text!r}") from None


class _Parent:
    """The group's parent process."""

    def __init__(
        self,
        options: GroupOptions,
        kind: Kind,
        credentials: curve_security.Credentials,
        lifeline: int | None,
        welcome_within_s: float,
    ) -> None:
        self._options = options
        self._kind = kind
        self._credentials = credentials
        self._lifeline = lifeline
        self._welcome_within_s = welcome_within_s
        self._clients: dict[int, int] = {}
        self._incarnations: dict[int, int] = {}
        self._unwelcomed: set[int] = set()
        self._waiting = list(reversed(range(options.first_id, options.first_id + options.count)))
        self._identity = ClientIdentity(
            ids=range(options.first_id, options.first_id + options.count),
            role=kind.role,
            group=options.group,
            incarnation=0,
            implementation=kind.implementation,
            versions={},
            here=ProcessLocation.read(),
        )
        self._relay = 0
        self._ipc = ""
        self._ending = False
        self._stranded = False

    def run(self) -> int:
        self._welcomes, self._welcome_pipe = os.pipe()
        self._deaths, self._death_pipe = os.pipe()
        self._kills, self._kill_pipe = os.pipe()
        self._place, self._place_pipe = os.pipe()
        self._wakeups, wakeup_pipe = os.pipe()
        for fd in (self._wakeups, wakeup_pipe, self._welcomes):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup_pipe, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._relay = self._fork(self._run_relay)
        for fd in (self._deaths, self._kill_pipe, self._place_pipe):
            os.close(fd)
        self._ipc = self._open_socket()
        poller = select.poll()
        for fd in (self._welcomes, self._wakeups, self._kills, *(() if self._lifeline is None else (self._lifeline,))):
            poller.register(fd, select.POLLIN)
        while True:
            if self._ipc:
                self._fork_waiting()
            if not self._clients and not self._waiting:
                # The relay then sends what it has, and exits.
                os.close(self._death_pipe)
                os.waitpid(self._relay, 0)
                return EXIT_STRANDED if self._stranded else EXIT_DISMISSED
            for fd, _ in poller.poll():
                if fd == self._welcomes:
                    self._take_welcomes()
                elif fd == self._wakeups:
                    os.read(self._wakeups, 4096)
                elif fd == self._kills:
                    self._kill_clients()
                else:
                    self._kill_all()
                    return 0
            if self._ending:
                self._kill_all()
                return 0
            if (code := self._reap()) is not None:
                self._kill_all()
                return code

    def _open_socket(self) -> str:
        """The relay's endpoint for the clients; "" if there is none, because the relay has ended.

        The parent keeps the socket's file open and removes its path and folder: only processes that inherit the open
        file can connect, and nothing is left behind, however the group ends.
        """
        with os.fdopen(self._place, "rb") as place:
            name = place.read().rstrip(b"\n")
        if not name:
            return ""
        path = Path(os.fsdecode(name))
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        path.unlink()
        path.parent.rmdir()
        return f"ipc:///proc/self/fd/{file}"

    # --- forking ---------------------------------------------------------------------------------------------------

    def _fork_waiting(self) -> None:
        while self._waiting and len(self._unwelcomed) < self._options.fork_window:
            client = self._waiting.pop()
            incarnation = self._incarnations.get(client, -1) + 1
            self._incarnations[client] = incarnation
            identity = replace(self._identity, ids=[client], incarnation=incarnation)
            pid = self._fork(partial(self._run_client, identity))
            self._clients[pid] = client
            self._unwelcomed.add(client)

    def _fork(self, child: Callable[[], int]) -> int:
        if thread_count() != 1:
            raise RuntimeError("a group's parent must have one thread when it forks")
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.close(self._welcomes)
            code = child()
        finally:
            # Never return to the parent's code, whatever the child raised.
            with contextlib.suppress(OSError):
                if sys.exc_info()[0] is not None:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _run_client(self, identity: ClientIdentity) -> int:
        os.close(self._death_pipe)
        os.close(self._kills)

        def welcomed() -> None:
            os.write(self._welcome_pipe, f"{identity.ids[0]}\n".encode())

        return client_main(self._kind, self._ipc, identity, self._welcome_within_s, welcomed)

    def _run_relay(self) -> int:
        for fd in (self._death_pipe, self._welcome_pipe, self._kills, self._place):
            os.close(fd)
        # Looking up versions takes longer than the rest of a client's start, so the relay sends them.
        identity = replace(self._identity, versions=self._kind.versions())
        pipes = RelayPipes(self._place_pipe, self._deaths, self._kill_pipe)
        return relay_main(self._credentials, identity, pipes, self._welcome_within_s, os.getppid())

    # --- events
    # --------------------------------------------------------------------------------------------------------

    def _take_welcomes(self) -> None:
        # A line is far below PIPE_BUF, so it is written at once. A read therefore ends at the end of a line, unless it
        # is full; the rest of the line is in the next read.
        data = os.read(self._welcomes, 65536)
        while not data.endswith(b"\n"):
            data += os.read(self._welcomes, 64)
        self._unwelcomed.difference_update(int(line) for line in data.split())

    def _reap(self) -> int | None:
        """Records every child that ended; returns the group's exit code if the relay ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            code = os.waitstatus_to_exitcode(status)
            if pid == self._relay:
                return code if code in (EXIT_STRANDED, EXIT_USAGE) else EXIT_RELAY_DIED
            self._client_ended(pid, code)

    def _client_ended(self, pid: int, code: int) -> None:
        client = self._clients.pop(pid)
        self._unwelcomed.discard(client)
        self._stranded = self._stranded or code == EXIT_STRANDED
        # A client may be without contact because the relay receives nothing; then it must not be replaced.
        ended = code in (EXIT_DISMISSED, EXIT_STRANDED)
        replaced = not ended and self._incarnations[client] < self._options.respawns
        incarnation = self._incarnations[client]
        death = {"id": client, "incarnation": incarnation, "pid": pid, "status": code, "replaced": replaced}
        line = json.dumps(death)
        os.write(self._death_pipe, line.encode() + b"\n")
        if replaced:
            self._waiting.append(client)

    def _kill_clients(self) -> None:
        """Kills the clients that the relay named; they count as dead and are replaced."""
        named = dict(KILL.iter_unpack(os.read(self._kills, 1 << 16)))
        for pid, client in self._clients.items():
            if self._incarnations[client] <= named.get(client, -1):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _terminate(self, *_: object) -> None:
        self._ending = True

    def _kill_all(self) -> None:
        for pid in (*self._clients, self._relay):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _ignore(*_: object) -> None:
    """Does nothing: SIGCHLD needs a Python handler, so the wakeup pipe is written."""


def await_welcome(control: ControlClient, endpoint: str, within_s: float) -> int | None:
    """Waits until the process that listens at ``endpoint`` welcomes this one: None; otherwise the exit code."""
    deadline = time.monotonic() + within_s
    while (left := deadline - time.monotonic()) > 0:
        message = control.receive(left)
        if isinstance(message, Welcome):
            return None
        if isinstance(message, Quit):
            return EXIT_DISMISSED
    sys.stderr.write(f"no welcome at {endpoint} within {within_s:g} s\n")
    return EXIT_STRANDED


def client_main(
    kind: Kind, relay: str, identity: ClientIdentity, welcome_within_s: float, welcomed: Callable[[], object]
) -> int:
    """Runs one client process, whose relay listens at the endpoint ``relay``; returns its exit code."""
    (client,) = identity.ids
    control = ControlClient(relay, identity)
    try:
        code = await_welcome(control, relay, welcome_within_s)
        if code is not None:
            return code
        welcomed()
        transport = kind.open(client, control)
        try:
            loop: TransportPublisher | TransportSubscriber | Driver
            if hasattr(transport, "run"):
                loop = cast(Driver, transport)
            elif kind.role == "publisher":
                loop = TransportPublisher(client, control, cast(PublisherTransport, transport))
            else:
                loop = TransportSubscriber(client, control, cast(SubscriberTransport, transport))
            loop.run()
        except Exception as e:
            control.send(Error(ids=[client], seq=1, epoch=0, message=f"{type(e).__name__}: {e}"[:4000], fatal=True))
            raise
        finally:
            transport.close()
        return EXIT_DISMISSED
    finally:
        control.close()
