"""An agent of the test master: it really runs its command tasks, as Mesos' fetcher and command executor do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import time
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.mesos import pool
from tests.mesos.http import Request, Response, Server
from tests.suite.bare_python import bare_python

Json = dict[str, Any]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The folders of programs on every agent, after the one with its Python."""
TERMINAL = {"TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_ERROR", "TASK_LOST", "TASK_DROPPED", "TASK_GONE"}


@dataclass
class Task:
    """A task on an agent; ``updates`` are those without an acknowledgement, oldest first."""

    info: Json
    framework: str
    container: str = field(default_factory=lambda: str(uuid.uuid4()))
    state: str = "TASK_STAGING"
    updates: list[Json] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None
    killed: bool = False
    resend: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return str(self.info["task_id"]["value"])

    def send_no_more(self) -> None:
        if self.resend is not None:
            self.resend.cancel()


class Agent:
    """One agent. ``deliver(agent, task, status)`` hands an update to whatever master leads."""

    def __init__(self, hostname: str, attributes: str, resources: str, folder: Path, *, resend_s: float) -> None:
        self.id = ""
        self.hostname = hostname
        self.attributes = pool.attributes(attributes)
        self.total = pool.parse(resources)
        self.tasks: dict[tuple[str, str], Task] = {}
        self.alive = True
        self.registered_time = time.time()
        self.deliver: Callable[[Agent, Task, Json], None] = lambda *_: None
        self.address = "127.0.0.1"
        self.namespace = ""  # the network namespace that its tasks run in
        self.ahead_s = 0  # by how much their CLOCK_MONOTONIC is ahead of this machine's, in a time namespace
        self.python = bare_python(folder.absolute() / "python")
        self.environment = {"PATH": f"{self.python}:{PATH}", "TMPDIR": str(folder.absolute() / "tmp")}
        self.fetched: list[str] = []
        self._folder = folder
        self._resend_s = resend_s
        self._server = Server(self._answer)
        self._jobs: set[asyncio.Task[None]] = set()
        self._fetching: dict[str, asyncio.Lock] = {}

    @property
    def port(self) -> int:
        return self._server.port

    async def start(self) -> None:
        (self._folder / "tmp").mkdir(parents=True, exist_ok=True)
        await self._server.start()

    async def stop(self) -> None:
        """Ends all at once, as when the host loses its power."""
        self.alive = False
        await self._server.stop()
        for task in self.tasks.values():
            _signal(task, signal.SIGKILL)
            task.send_no_more()
        await asyncio.gather(*self._jobs, return_exceptions=True)

    def used(self) -> pool.Pool:
        return pool.total(pool.read(t.info["resources"]) for t in self.tasks.values() if t.state not in TERMINAL)

    # --- tasks -------------------------------------------------------------------------------------------------------

    def launch(self, framework: str, info: Json) -> None:
        task = Task(info, framework)
        self.tasks[framework, task.id] = task
        job = asyncio.create_task(self._run(task))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def kill(self, framework: str, task_id: str) -> None:
        task = self.tasks.get((framework, task_id))
        if task is None or task.state in TERMINAL or task.killed:
            return
        task.killed = True
        nanoseconds = task.info.get("kill_policy", {}).get("grace_period", {}).get("nanoseconds", 3e9)
        _signal(task, signal.SIGTERM)
        asyncio.get_running_loop().call_later(nanoseconds / 1e9, _signal, task, signal.SIGKILL)

    def shut_down(self, framework: str) -> None:
        """The framework was torn down: its executors end, and no process receives their messages."""
        for (owner, _), task in list(self.tasks.items()):
            if owner == framework:
                task.send_no_more()
                task.updates.clear()
                task.killed = True
                _signal(task, signal.SIGKILL)

    def acknowledge(self, framework: str, task_id: str, update: str) -> None:
        task = self.tasks.get((framework, task_id))
        # A lost host receives nothing, and sends nothing more.
        if not self.alive or task is None or not task.updates or task.updates[0]["uuid"] != update:
            return
        task.updates.pop(0)
        task.send_no_more()
        if task.updates:
            self._send(task)

    def send_again(self) -> None:
        """After a failover: every update that no process acknowledged."""
        for task in self.tasks.values():
            if task.updates:
                self._send(task)

    async def _run(self, task: Task) -> None:
        sandbox = self.sandbox(task)
        sandbox.mkdir(parents=True)
        command = task.info["command"]
        with (sandbox / "stdout").open("ab") as stdout, (sandbox / "stderr").open("ab") as stderr:
            for uri in command.get("uris", ()):
                if not await self._fetch(uri, sandbox, stderr):
                    fetch = f"Failed to fetch all URIs for container '{task.container}': exited with status 1"
                    why = {"source": "SOURCE_AGENT", "reason": "REASON_CONTAINER_LAUNCH_FAILED"}
                    self._update(task, "TASK_FAILED", f"Failed to launch container: {fetch}", **why)
                    return
            if self._has_ended(task):
                self._update(task, "TASK_KILLED", "Killed before it was launched")
                return
            self._update(task, "TASK_STARTING")
            variables = command.get("environment", {}).get("variables", ())
            program = command["value"]
            words = ["/bin/sh", "-c", program] if command.get("shell", True) else [program, *command["arguments"][1:]]
            if self.namespace:
                words = ["/usr/sbin/ip", "netns", "exec", self.namespace, *words]
            if self.ahead_s:
                words = ["/usr/bin/unshare", "--time", "--monotonic", str(self.ahead_s), "--kill-child", *words]
            stderr.write(f"I20261120 15:58:59.997551 {os.getpid()} exec.cpp:164] Version: 1.11.0\n".encode())
            stderr.flush()
            given = {variable["name"]: variable["value"] for variable in variables}
            given = {"MESOS_SANDBOX": str(sandbox), "MESOS_TASK_ID": task.id, **given}
            try:
                task.process = await asyncio.create_subprocess_exec(
                    *words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=sandbox,
                    env={**self.environment, **given},
                    start_new_session=True,
                )
            except OSError as error:
                self._update(task, "TASK_FAILED", f"Failed to launch command: {error}")
                return
        self._update(task, "TASK_RUNNING")
        if self._has_ended(task):
            _signal(task, signal.SIGKILL)
        code = await task.process.wait()
        ended = f"terminated with signal {signal.strsignal(-code)}" if code < 0 else f"exited with status {code}"
        # The children that it has left: only now is the group's number still its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(task.process.pid, signal.SIGKILL)
        state = "TASK_KILLED" if task.killed else "TASK_FAILED" if code else "TASK_FINISHED"
        self._update(task, state, f"Command {ended}")

    def _has_ended(self, task: Task) -> bool:
        """What may have happened while something was awaited."""
        return task.killed or not self.alive

    async def _fetch(self, uri: Json, sandbox: Path, stderr: Any) -> bool:
        value = uri["value"]
        cached = self._folder / "fetch" / sha256(value.encode()).hexdigest()
        async with self._fetching.setdefault(value, asyncio.Lock()):
            if not (uri.get("cache") and cached.exists()):
                self.fetched.append(value)
                cached.parent.mkdir(exist_ok=True)
                try:
                    await asyncio.to_thread(urllib.request.urlretrieve, value, cached)
                except OSError as error:
                    stderr.write(f"Failed to fetch '{value}': {error}\n".encode())
                    return False
        words = ["tar", "-C", str(sandbox), "-xf", str(cached)]
        if not uri.get("extract", True):
            words = ["cp", str(cached), str(sandbox / value.rpartition("/")[2])]
        copier = await asyncio.create_subprocess_exec(*words, stderr=stderr)
        return await copier.wait() == 0

    def _update(self, task: Task, state: str, message: str = "", **more: str) -> None:
        task.state = state
        status: Json = {
            "task_id": {"value": task.id},
            "state": state,
            **({"message": message} if message else {}),
            "source": "SOURCE_EXECUTOR",
            **more,
            "agent_id": {"value": self.id},
            "executor_id": {"value": task.id},
            "timestamp": time.time(),
            "uuid": base64.b64encode(uuid.uuid4().bytes).decode(),
        }
        if task.process is not None:
            address = {"protocol": "IPv4", "ip_address": self.address}
            container = {"container_id": {"value": task.container}, "network_infos": [{"ip_addresses": [address]}]}
            status["container_status"] = {**container, "executor_pid": task.process.pid}
        task.updates.append(status)
        if len(task.updates) == 1 and self.alive:
            self._send(task)

    def _send(self, task: Task) -> None:
        task.send_no_more()
        task.resend = asyncio.create_task(self._send_until_acknowledged(task, task.updates[0]))

    async def _send_until_acknowledged(self, task: Task, status: Json) -> None:
        wait = self._resend_s
        while True:
            self.deliver(self, task, status)
            await asyncio.sleep(wait)
            wait = min(2 * wait, 600)

    # --- endpoints ---------------------------------------------------------------------------------------------------

    def sandbox(self, task: Task) -> Path:
        executor = f"slaves/{self.id}/frameworks/{task.framework}/executors/{task.id}"
        return self._folder.absolute() / executor / "runs" / task.container

    async def _answer(self, request: Request, _: asyncio.StreamWriter) -> Response:
        if request.path == "/state":
            return Response.json(self.state())
        if request.path == "/files/read":
            path = Path(request.query["path"])
            if not path.is_file():
                return Response.text(404, "")
            data, offset = path.read_bytes(), int(request.query.get("offset", 0))
            if offset < 0:
                return Response.json({"data": "", "offset": len(data)})
            end = offset + int(request.query["length"]) if "length" in request.query else len(data)
            return Response.json({"data": data[offset:end].decode(errors="replace"), "offset": offset})
        return Response.text(404, "")

    def state(self) -> Json:
        frameworks: dict[str, Json] = {}
        for (owner, _), task in self.tasks.items():
            known = frameworks.setdefault(owner, {"id": owner, "executors": [], "completed_executors": []})
            ended = task.state in TERMINAL and not task.updates
            row = {"id": task.id, "name": f"Command Executor (Task: {task.id})", "source": task.id}
            where = {"container": task.container, "directory": str(self.sandbox(task))}
            known["completed_executors" if ended else "executors"].append({**row, **where})
        return {"id": self.id, "hostname": self.hostname, "version": "1.11.0", "frameworks": list(frameworks.values())}


def _signal(task: Task, number: signal.Signals) -> None:
    """To the task's processes while it runs: the number of one that has ended may be another process's by now."""
    if task.process is not None and task.process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(task.process.pid, number)
