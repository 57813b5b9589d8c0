"""Calls of a Mesos master's and its agents' HTTP endpoints for operators: agents, sandboxes, frameworks and their end.

Every call waits for its answer, at most 10 s; the engine therefore leaves these calls to the driver's process.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from hydra.client import network_interfaces as address
from hydra.errors import ClusterError, MissingDependencyError, UsageError
from hydra.mesos import translate
from hydra.mesos.settings import MesosSettings
from hydra.model import Agent

DEFAULT_PORT: Final = 5050
INSTALL: Final = "pip install ./shims/http-parser '.[mesos]'"
CREDENTIALS: Final = "set principal and secret under [mesos], or HYDRA_MESOS_PRINCIPAL and HYDRA_MESOS_SECRET"
_HOST: Final = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?")
_GLOG: Final = re.compile(r"[IW]\d{4,8} \d\d:\d\d:\d\d\.\d+ .*?\] ")
"""A log line of glog: ``I20261120 15:58:59.997551 29086 exec.cpp:164] …``; older versions write no year."""
_TIMEOUT_S: Final = 10.0
_ZOOKEEPER_TIMEOUT_S: Final = 2.0
_TAIL_BYTES: Final = 2048
_TAIL_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework in a master's state, with its tasks that have not ended: (id, state, agent)."""

    id: str
    name: str
    connected: bool
    tasks: tuple[tuple[str, str, str], ...]


def hosts(master: str) -> list[tuple[str, int]]:
    """Every (host, port) in ``host``, ``host:port`` or ``zk://h1:2181,h2:2181/mesos``.

    Raises:
        UsageError: ``master`` has none of these forms.
    """
    rest, port = master, DEFAULT_PORT
    if "@" in master:  # not repeated in the message: it may contain a password
        raise UsageError("--master takes no user or password", "pymesos cannot log in to ZooKeeper: name the master")
    if master.startswith("zk://"):
        rest, slash, path = master.removeprefix("zk://").partition("/")
        port = 2181
        if not slash or not path:
            raise UsageError(f"--master {master} names no path", "write for example zk://h1:2181,h2:2181/mesos")
    found = []
    for part in rest.split(","):
        host, colon, number = part.strip().partition(":")
        if not _HOST.fullmatch(host) or (colon and not (number.isdigit() and 0 < int(number) < 65536)):
            raise UsageError(f"--master {master} is no address", "write local, host:5050 or zk://h1:2181,h2:2181/mesos")
        found.append((host, int(number) if colon else port))
    if len(found) > 1 and not master.startswith("zk://"):
        raise UsageError(f"--master {master} names several hosts", "name one, or the masters' ZooKeeper: zk://…/mesos")
    return found


def leader(master: str) -> str:
    """``host:port`` of the leading master.

    Raises:
        UsageError: ``master`` is no address of a master, or no master or ZooKeeper answers there.
        ClusterError: no master leads.
    """
    address = _in_zookeeper(master) if master.startswith("zk://") else "{}:{}".format(*hosts(master)[0])
    try:
        status, headers, _ = OperatorApi(address).request("GET", "/redirect")
    except ClusterError as e:
        raise UsageError(e.what, e.remedy) from e
    if status == http.client.TEMPORARY_REDIRECT:
        return urlsplit(headers["location"]).netloc or address
    raise ClusterError(f"the Mesos master at {address} knows no leader (status {status})", "wait until one is elected")


def _in_zookeeper(master: str) -> str:
    """The address of the leading master: its entry has the lowest number, as it is the oldest."""
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ImportError as e:
        raise MissingDependencyError("ZooKeeper needs kazoo, which is not installed", INSTALL) from e
    hosts(master)
    client = KazooClient(master.removeprefix("zk://"), timeout=_ZOOKEEPER_TIMEOUT_S, logger=_silent())
    try:
        client.start(timeout=_ZOOKEEPER_TIMEOUT_S)
        names = sorted(name for name in client.get_children("") if name.startswith("json.info"))
        if not names:
            raise ClusterError(f"no Mesos master is registered at {master}", "check the path, and that a master runs")
        address = json.loads(client.get("/" + names[0])[0])["address"]
        return f"{address['ip']}:{address['port']}"
    except KazooTimeoutError:
        raise UsageError(
            f"no ZooKeeper answers at {master} within {_ZOOKEEPER_TIMEOUT_S:g} s", "check --master, and that it runs"
        ) from None
    except KazooException as e:
        raise ClusterError(f"ZooKeeper at {master} does not return the master: {e!r}", "check the address") from e
    finally:
        client.stop()
        client.close()


def _silent() -> logging.Logger:
    """A logger that drops its lines, as kazoo raises its errors too."""
    logger = logging.getLogger("hydra.kazoo")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


class OperatorApi:
    """Calls one master or agent, with basic authentication if a principal is given.

    Every method raises ClusterError if there is no answer, or an unexpected one.
    """

    def __init__(self, address: str, principal: str = "", secret: str = "") -> None:
        self.address = address
        self._headers = {"Accept": "application/json"}
        if principal:
            token = base64.b64encode(f"{principal}:{secret}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def agents(self) -> list[Agent]:
        """The master's active agents with the free resources of each."""
        return translate.agents(self._get("/slaves"))

    def frameworks(self) -> list[Framework]:
        """The master's frameworks that have not ended."""
        found = []
        for row in self._get("/state").get("frameworks", ()):
            its = [task for task in row.get("tasks", ()) if task["state"] in translate.LIVE]
            tasks = tuple((t["id"], t["state"], t["slave_id"]) for t in its)
            found.append(Framework(row["id"], row["name"], bool(row.get("connected", True)), tasks))
        return found

    def teardown(self, framework: str) -> None:
        """Ends a framework and all its tasks."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({"frameworkId": framework})
        status, _, answer = self.request("POST", "/teardown", body, headers)
        if status != http.client.OK:
            raise ClusterError(f"{self.address} does not end framework {framework}: {status} {answer.strip()}")

    def sandbox_tail(self, framework: str, task: str) -> str:
        """The last lines of a task's stderr on this agent, joined into one; "" if it is empty."""
        folder = self._sandbox(framework, task)
        path = f"{folder}/stderr"
        size = self._get("/files/read", {"path": path, "offset": -1})["offset"]
        # One byte more: the first line is whole if that byte ends a line.
        begin = max(0, size - _TAIL_BYTES - 1)
        text = str(self._get("/files/read", {"path": path, "offset": begin, "length": _TAIL_BYTES + 1})["data"])
        return last_lines(text, whole=begin == 0)

    def _sandbox(self, framework: str, task: str) -> str:
        state = self._get("/state")
        for known in (*state.get("frameworks", ()), *state.get("completed_frameworks", ())):
            if known["id"] == framework:
                for executor in (*known.get("executors", ()), *known.get("completed_executors", ())):
                    if executor["id"] == task:
                        return str(executor["directory"])
        raise ClusterError(f"the agent at {self.address} has no sandbox of task {task}")

    def _get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        target = f"{path}?{urlencode(query)}" if query else path
        status, headers, body = self.request("GET", target)
        if status == http.client.UNAUTHORIZED:
            raise ClusterError(f"{self.address}{path} requires credentials", CREDENTIALS)
        if status == http.client.TEMPORARY_REDIRECT:
            raise ClusterError(f"{self.address} does not lead; the leader is {urlsplit(headers['location']).netloc}")
        if status != http.client.OK:
            raise ClusterError(f"{self.address}{path} answers {status}: {body.strip()[:200]}")
        try:
            return json.loads(body)
        except ValueError as e:
            raise ClusterError(f"{self.address}{path} answers no JSON: {e}") from e

    def request(
        self, method: str, target: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Makes one request; returns status, headers by lower-case name, and body."""
        host, _, port = self.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=_TIMEOUT_S)
        with contextlib.closing(connection):
            try:
                connection.request(method, target, body, {**self._headers, **(headers or {})})
                answer = connection.getresponse()
                text = answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException) as e:
                raise ClusterError(
                    f"no answer from {self.address}: {getattr(e, 'strerror', '') or e or type(e).__name__}",
                    "check --master, and that the master runs",
                ) from e
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


def last_lines(text: str, *, whole: bool) -> str:
    """The last lines of a task's stderr, joined into one, without those that executor and fetcher write there.

    Args:
        text: the end of stderr.
        whole: whether it is all of stderr; otherwise it begins within a line, which may be theirs.
    """
    lines = text.split("\n")[0 if whole else 1 :]
    own = [line.strip() for line in lines if line.strip() and not _GLOG.match(line)]
    return " | ".join(own[-_TAIL_LINES:])


def route_to(master: str) -> str:
    """The address of this machine from which packets to the master leave; agents can probably reach it.

    Raises:
        UsageError: ``master`` is no address of a master, the master's name cannot be resolved, or there is no route.
    """
    host, port = hosts(master)[0]
    try:
        return address.route_to(host, port)
    except OSError as e:
        why = e.strerror or e
        raise UsageError(f"no route to the Mesos master {host}: {why}", "check --master, or name --advertise") from e


def leftovers(master: str, settings: MesosSettings) -> list[dict[str, object]]:
    """A row for each run with a framework that has not ended, for ``hydra ps``.

    Raises:
        UsageError, ClusterError: there is no such master, or it does not answer as expected.
    """
    prefix = settings.framework("")
    return [
        {
            "run": framework.name.removeprefix(prefix),
            "framework": framework.id,
            "connected": "yes" if framework.connected else "no",
            "tasks": len(framework.tasks),
            "agents": len({agent for _, _, agent in framework.tasks}),
        }
        for framework in operator_api(settings, master).frameworks()
        if framework.name.startswith(prefix)
    ]


def end_run(master: str, settings: MesosSettings, run: str) -> list[str]:
    """Tears down the frameworks that are left of a run; returns a line for each.

    Raises:
        UsageError: the master has no such run.
        ClusterError: the master does not answer, or rejects the call.
    """
    api = operator_api(settings, master)
    found = [framework.id for framework in api.frameworks() if framework.name == settings.framework(run)]
    if not found:
        raise UsageError(f"the master knows no run {run!r}", f"hydra ps --master {master} lists those it knows")
    for framework in found:
        api.teardown(framework)
    return [f"framework {framework}" for framework in found]


def operator_api(settings: MesosSettings, master: str) -> OperatorApi:
    """The endpoints of the leading master, with the credentials in the settings.

    Raises:
        UsageError, ClusterError: there is no such master.
    """
    return OperatorApi(leader(master), settings.principal, settings.secret)
