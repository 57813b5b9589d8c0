"""The process with the connections to the hosts: it starts one ``ssh`` for each host, and a supervisor on it.

A host may be slow, and ssh may hang: neither may hold up the process that serves the control channel. The engine
starts this process as ``python -m hydra.ssh.driver FD``; FD is its end of a socket pair. If the engine is killed, this
process ends all supervisors; if this process is killed, their standard input closes, and they end by themselves.

The engine sends, by ``call``: ``open`` (script, hosts: name and command of each), ``prepare`` (archive, clients
and servers: the commands that prove their programs, reach: address and port), ``forward`` (host: the command with a
forwarded port), ``relay`` (address, port of the controller, to which forwarded connections lead), ``start`` (host,
group, environment, command), ``signal`` (host, group, signal), ``again`` (host: connect to a lost host as before, and
prepare it), ``stop``.
This process sends, by ``kind``: ``listening`` (port, for forwarded connections), ``hello`` (host, facts, forwarded:
the port of the host; 0 if none), ``ready`` (host, reach, no_servers: why none start there, or ""), ``refused`` (host,
what), ``started`` and ``ended`` (host and the fields of the supervisor's reply), ``lost`` (host, stderr, status),
``stopped``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, NamedTuple

from hydra.engine.driver_pipe import DriverPipe, Message
from hydra.ssh import host_scripts
from hydra.ssh.failures import CHANGED

_STOP_WITHIN_S: Final = 8.0
"""The supervisor gives groups 2 s to end, and then removes its folder."""
_TICK_S: Final = 0.05
_PIECE: Final = 1 << 18
_LONGEST_LINE: Final = 1 << 20
_KEPT_STDERR: Final = 8192
_FORWARDED: Final = re.compile(r"Allocated port (\d+) for remote forward")
_NOT_STARTED: Final = 127


class _Programs(NamedTuple):
    """The archive, and the commands that prove its programs: all clients' must start on a host, servers' need not."""

    archive: Path
    clients: list[list[str]]
    servers: list[list[str]]


class _Connection:
    """The connection to one host; if ``programs`` are given, it prepares them after the supervisor's hello.

    Attributes:
        facts: the facts that its supervisor reported.
    """

    def __init__(
        self, host: str, process: Process, driver: _HostsDriver, programs: _Programs | None, *, forwards: bool
    ) -> None:
        self.facts: dict[str, str] = {}
        self._programs = programs
        self._forwards = forwards
        self._host = host
        self._process = process
        self._driver = driver
        self._stderr = b""
        self._changed = False
        self._reach = ""
        self._tried: list[str] = []
        self._stored = asyncio.Event()
        self.retired = False
        self._errors, self._pings, self._reader = (
            asyncio.create_task(work) for work in (self._read_stderr(), self._keep(), self._read())
        )
        self._greeting: asyncio.Task[None] | None = None

    @property
    def stderr(self) -> str:
        """The end of what ssh has printed on standard error."""
        return self._stderr.decode(errors="replace")

    def send(self, *words: str) -> None:
        """Sends the supervisor a command."""
        self.write(host_scripts.line(*words))

    def write(self, data: bytes) -> None:
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(data)

    async def prepare(self, programs: _Programs, reach: tuple[str, int] | None) -> None:
        """Sends the archive unless the host has it; then proves the programs and the way to this machine."""
        self._programs = programs
        if self.facts.get("archive") != "kept":
            with programs.archive.open("rb") as file, contextlib.suppress(ConnectionError):
                while piece := file.read(_PIECE):
                    self.write(host_scripts.line("archive", str(len(piece))) + piece)  # pings go between the pieces
                    if self._process.stdin is not None:
                        await self._process.stdin.drain()
            self.send("unpack")
            await self._stored.wait()
        if reach is not None:
            self.send("reach", reach[0], str(reach[1]))
        for words in (*programs.clients, *programs.servers):
            self.send("prove", *words)

    async def close(self) -> None:
        """Ends the supervisor and waits for it; one that has not greeted has started nothing."""
        self.send("end")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._reader), _STOP_WITHIN_S if self.facts else 0)
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        for task in (self._errors, self._pings, self._reader, self._greeting):
            if task is not None:
                task.cancel()

    async def _greet(self) -> None:
        """Reports the first reply, with the forwarded port, which ssh prints on another stream."""
        while self._forwards and not _FORWARDED.search(self.stderr):
            await asyncio.sleep(_TICK_S)
        port = _FORWARDED.search(self.stderr)
        self._driver.report("hello", host=self._host, facts=self.facts, forwarded=int(port[1]) if port else 0)
        if self._programs is not None:
            await self.prepare(self._programs, None)

    async def _keep(self) -> None:
        while True:
            self.send("ping")
            await asyncio.sleep(host_scripts.PING_EVERY_S)

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        while stream is not None and (piece := await stream.read(4096)):
            self._stderr += piece
            self._changed |= CHANGED in self.stderr  # a long banner may follow
            self._stderr = self._stderr[-_KEPT_STDERR:]
            sys.stderr.write(f"{self._host}: {piece.decode(errors='replace')}")
            sys.stderr.flush()

    async def _read(self) -> None:
        stream = self._process.stdout
        try:
            while stream is not None and (line := await stream.readline()):
                if (found := host_scripts.reply(line.decode(errors="replace").rstrip("\n"))) is not None:
                    self._heard(found)
        except ValueError as e:  # a line that is too long: no supervisor answers
            self._stderr += f"\n{e}".encode()
        status = await self._process.wait()
        self._pings.cancel()
        await asyncio.wait({self._errors}, timeout=1.0)  # the rest of standard error
        if not self.retired:
            self._driver.report("lost", host=self._host, stderr=self.stderr, status=status)

    def _heard(self, found: Message) -> None:
        match found.pop("kind"):
            case "fact":
                self.facts[found["name"]] = found["value"]
            case "hello" if self._changed:  # ssh connects all the same with StrictHostKeyChecking=no
                self._driver.report("lost", host=self._host, stderr=CHANGED, status=None)
            case "hello":
                self._greeting = asyncio.create_task(self._greet())
            case "stored":
                self._stored.set()
            case "reach":
                self._reach = found["answer"]
            case "tried" if self._programs is not None:
                self._tried.append(found["failure"])
                self._judge(self._programs)
            case "refused" | "started" | "ended" as kind:
                self._driver.report(kind, host=self._host, **found)

    def _judge(self, programs: _Programs) -> None:
        """Reports the first failure of a client's program; or the host as ready, after the last program."""
        clients, servers = self._tried[: len(programs.clients)], self._tried[len(programs.clients) :]
        failed = list(filter(None, clients))
        if self._tried[-1] and len(failed) == 1 and not servers:
            self._driver.report("refused", host=self._host, what=failed[0])
        if not failed and len(self._tried) == len(programs.clients) + len(programs.servers):
            no_servers = next(filter(None, servers), "")
            self._driver.report("ready", host=self._host, reach=self._reach, no_servers=no_servers)


class _HostsDriver:
    """Moves messages between the engine and the supervisors until the engine stops this process or has ended."""

    def __init__(self, channel: DriverPipe, end: socket.socket) -> None:
        self._channel = channel
        self._end = end
        self._hosts: dict[str, _Connection] = {}
        self._commands: dict[str, list[str]] = {}
        self._script = ""
        self._programs: _Programs | None = None
        self._controller: tuple[str, int] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Serves both sides until the end."""
        asyncio.get_running_loop().add_reader(self._end, self._receive)
        while not self._channel.closed and not self._stopping.is_set():
            self._channel.flush()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _TICK_S)
        asyncio.get_running_loop().remove_reader(self._end)
        for task in self._background:
            task.cancel()
        for connection in self._hosts.values():
            connection.retired = True
        await asyncio.gather(*(connection.close() for connection in self._hosts.values()))
        self.report("stopped")
        self._channel.flush()

    def report(self, kind: str, **fields: Any) -> None:
        """Sends the engine a message."""
        if not self._channel.closed:
            self._channel.send({"kind": kind, **fields})

    def _receive(self) -> None:
        for message in self._channel.receive():
            self._obey(message)

    def _obey(self, message: Message) -> None:
        match message["call"]:
            case "open":
                self._script = message["script"]
                for name, command in message["hosts"].items():
                    self._later(self._connect(name, command))
                self._later(self._listen())
            case "prepare":
                reach = tuple(message["reach"]) if message["reach"] else None
                self._programs = _Programs(Path(message["archive"]), message["clients"], message["servers"])
                for name in message["hosts"]:
                    if (host := self._hosts.get(name)) is not None:
                        self._later(host.prepare(self._programs, reach))
            case "forward":
                self._later(self._replace(message["host"], message["command"]))
            case "again":
                self._later(self._connect(message["host"], self._commands[message["host"]], self._programs))
            case "relay":
                self._controller = message["address"], message["port"]
            case "start":
                variables = [f"{name}={value}" for name, value in message["environment"].items()]
                words = (message["group"], str(len(variables)), *variables, *message["command"])
                self._hosts[message["host"]].send("start", *words)
            case "signal":
                self._hosts[message["host"]].send("signal", message["group"], message["signal"])
            case "stop":
                self._stopping.set()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _connect(self, host: str, command: list[str], programs: _Programs | None = None) -> None:
        self._commands[host] = command
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LONGEST_LINE
            )
        except OSError as e:
            self.report("lost", host=host, stderr=str(e), status=_NOT_STARTED)
            return
        self._hosts[host] = connection = _Connection(host, process, self, programs, forwards="-R" in command)
        connection.write(self._script.encode())

    async def _replace(self, host: str, command: list[str]) -> None:
        self._hosts[host].retired = True
        await self._hosts[host].close()
        await self._connect(host, command)

    # --- forwarded connections ----------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Opens the port of this machine to which hosts forward; it leads to the controller, whose port comes later."""
        server = await asyncio.start_server(self._lead, "127.0.0.1", 0)
        self.report("listening", port=server.sockets[0].getsockname()[1])

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._controller is None:
            writer.close()
            return
        with contextlib.suppress(OSError):
            inbound, outbound = await asyncio.open_connection(*self._controller)
            await asyncio.gather(_copy(reader, outbound), _copy(inbound, writer))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(_PIECE):
            target.write(piece)
            await target.drain()
    finally:
        target.close()


def main() -> None:
    """Runs the process; its only argument is the number of its socket's file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine handles Ctrl-C
    end = socket.socket(fileno=int(sys.argv[1]))
    asyncio.run(_HostsDriver(DriverPipe(end), end).run())
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
