"""A Mesos master for tests: it answers as a real one in the recordings, and its agents really run their tasks."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qs

from tests.mesos import pool
from tests.mesos.agent import TERMINAL, Agent, Task
from tests.mesos.http import Answer, Request, Response, Server, Stream

Json = dict[str, Any]
CALLS = {"SUBSCRIBE", "TEARDOWN", "ACCEPT", "DECLINE", "REVIVE", "SUPPRESS", "KILL", "ACKNOWLEDGE", "RECONCILE"}


@dataclass
class Framework:
    id: str
    info: Json
    stream: Stream | None = None
    stream_id: str = ""
    suppressed: bool = False
    filters: dict[str, tuple[pool.Pool, float]] = field(default_factory=dict)
    """Agent → what was refused, and until when."""
    registered_time: float = field(default_factory=time.time)

    @property
    def role(self) -> str:
        return str((self.info.get("roles") or [self.info.get("role", "*")])[0])

    @property
    def multi_role(self) -> bool:
        return any(c.get("type") == "MULTI_ROLE" for c in self.info.get("capabilities", ()))


@dataclass(frozen=True)
class Offer:
    id: str
    framework: Framework
    agent: Agent
    resources: pool.Pool


class Master:
    """One master. ``leads`` False and ``leader`` an address: it redirects there; without one it is recovering."""

    def __init__(
        self, *, allocation_s: float = 0.2, ping_timeout_s: float = 1.0, credentials: tuple[str, str] | None = None
    ) -> None:
        self.id = str(uuid.uuid4())
        self.leads = True
        self.leader = ""
        self.agents: dict[str, Agent] = {}
        self.frameworks: dict[str, Framework] = {}
        self.removed: set[str] = set()
        self.offers: dict[str, Offer] = {}
        self.calls: list[Json] = []
        self._allocation_s = allocation_s
        self._ping_timeout_s = ping_timeout_s
        self._credentials = credentials
        self._server = Server(self._answer)
        self._numbers: defaultdict[str, count[int]] = defaultdict(count)
        self._jobs: list[asyncio.Task[None]] = []

    # --- running it --------------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.port}"

    async def start(self) -> None:
        await self._server.start()
        self._jobs = [asyncio.create_task(self._allocate_regularly()), asyncio.create_task(self._beat())]

    async def stop(self) -> None:
        for job in self._jobs:
            job.cancel()
        await self._server.stop()

    def register(self, agent: Agent) -> None:
        """A new agent, or one of the former master's with its tasks."""
        if not agent.id:
            agent.id = f"{self.id}-S{next(self._numbers['agent'])}"
        self.agents[agent.id] = agent
        agent.deliver = self._deliver
        agent.send_again()

    async def forget_agent(self, agent: Agent) -> None:
        """The agent's host is lost; the master notices after the ping timeout."""
        await agent.stop()
        await asyncio.sleep(self._ping_timeout_s)
        self.agents.pop(agent.id, None)
        self.rescind(*self._offers_of(agent=agent))
        for task in agent.tasks.values():
            framework = self.frameworks.get(task.framework)
            if framework is not None and (task.state not in TERMINAL or task.updates):
                why = ("TASK_UNREACHABLE", "health check timed out", "REASON_AGENT_REMOVED")
                self._send_update(framework, task.id, *why, agent.id, unreachable_time={"nanoseconds": time.time_ns()})
        for framework in self.frameworks.values():
            self._event(framework, "failure", {"agent_id": {"value": agent.id}})

    def rescind(self, *offers: Offer) -> None:
        for offer in offers:
            del self.offers[offer.id]
            self._event(offer.framework, "rescind", {"offer_id": {"value": offer.id}})

    def hang_up(self) -> None:
        """Every stream ends, as when the master's process is killed; frameworks and tasks are remembered."""
        for framework in self.frameworks.values():
            if framework.stream is not None:
                framework.stream.close()
                framework.stream = None
        self.offers.clear()

    def tasks(self) -> list[Task]:
        return [task for agent in self.agents.values() for task in agent.tasks.values()]

    # --- what frameworks hear ----------------------------------------------------------------------------------------

    def _event(self, framework: Framework, kind: str, body: Json | None = None) -> None:
        if framework.stream is not None:
            framework.stream.send({"type": kind.upper(), **({kind: body} if body is not None else {})})

    def _send_update(
        self, framework: Framework, task: str, state: str, message: str, reason: str, agent: str = "", **more: Json
    ) -> None:
        """An update by the master itself: it is not acknowledged."""
        text = {"message": message, "source": "SOURCE_MASTER", "reason": reason, "timestamp": time.time()}
        where = {"agent_id": {"value": agent}} if agent else {}
        status = {"task_id": {"value": task}, "state": state, **text, **where, **more}
        self._event(framework, "update", {"status": status})

    def _deliver(self, agent: Agent, task: Task, status: Json) -> None:
        framework = self.frameworks.get(task.framework)
        if framework is not None and agent.id in self.agents and self.leads:
            self._event(framework, "update", {"status": status})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(15)
            for framework in self.frameworks.values():
                self._event(framework, "heartbeat")

    async def _allocate_regularly(self) -> None:
        while True:
            self._allocate()
            await asyncio.sleep(self._allocation_s)

    def _allocate(self) -> None:
        """Every agent's free resources to the framework that has the least, except those that its filters reject."""
        fresh: dict[str, list[Offer]] = {}
        now = time.monotonic()
        for agent in self.agents.values():
            free = pool.minus(agent.total, pool.plus(agent.used(), self._offered(agent)))
            if not free or not agent.alive:
                continue
            for framework in sorted(self.frameworks.values(), key=lambda f: len(fresh.get(f.id, ()))):
                own = {key: amount for key, amount in free.items() if key[1] in ("*", framework.role)}
                refused, until = framework.filters.get(agent.id, ({}, 0.0))
                filtered = until > now and pool.minus(refused, own) is not None
                if not own or filtered or framework.suppressed or framework.stream is None:
                    continue
                offer = Offer(f"{self.id}-O{next(self._numbers['offer'])}", framework, agent, own)
                self.offers[offer.id] = offer
                fresh.setdefault(framework.id, []).append(offer)
                break
        for identity, offers in fresh.items():
            framework = self.frameworks[identity]
            self._event(framework, "offers", {"offers": [self._offer(offer) for offer in offers]})

    def _offers_of(self, *, framework: Framework | None = None, agent: Agent | None = None) -> list[Offer]:
        """Those at hand of a framework, or of an agent."""
        return [offer for offer in self.offers.values() if offer.framework is framework or offer.agent is agent]

    def _offer(self, offer: Offer) -> Json:
        agent, framework = offer.agent, offer.framework
        address = {"hostname": agent.hostname, "ip": agent.address, "port": agent.port}
        ids = {"id": offer.id, "framework_id": framework.id, "agent_id": agent.id}
        return {
            **{name: {"value": value} for name, value in ids.items()},
            "hostname": agent.hostname,
            "url": {"scheme": "http", "address": address, "path": "/slave(1)"},
            "resources": pool.messages(offer.resources, allocated=framework.role, multi_role=framework.multi_role),
            "attributes": agent.attributes,
            **({"allocation_info": {"role": framework.role}} if framework.multi_role else {}),
        }

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> Answer:
        if request.path == "/version":
            built = {"build_date": "2026-11-20 00:00:00 UTC", "build_time": 1795132800.0, "build_user": "local"}
            return Response.json({**built, "version": "1.11.0"})
        if request.path == "/redirect":
            leader = self.address if self.leads else self.leader
            return Response(307, b"", {"Location": f"//{leader}"}) if leader else Response.text(503, "")
        if self._credentials and request.headers.get("authorization") != _basic(*self._credentials):
            return Response.text(401, "", **{"WWW-Authenticate": 'Basic realm="mesos-master-scheduler"'})
        if not self.leads:
            if self.leader:
                return Response(307, b"", {"Location": f"//{self.leader}{request.path}"})
            return Response.text(503, "Master is recovering")
        match request.path:
            case "/slaves":
                return Response.json({"slaves": [self._slave(a) for a in self.agents.values()], "recovered_slaves": []})
            case "/state":
                return Response.json(self._state())
            case "/teardown":
                return self._operator_teardown(request)
            case "/api/v1/scheduler":
                return self._scheduler(request, writer)
        return Response.text(404, "")

    def _offered(self, agent: Agent) -> pool.Pool:
        return pool.total(offer.resources for offer in self._offers_of(agent=agent))

    def _slave(self, agent: Agent) -> Json:
        total, used, offered = map(pool.plain, (agent.total, agent.used(), self._offered(agent)))
        pid = f"slave(1)@127.0.0.1:{agent.port}"
        who = {"id": agent.id, "hostname": agent.hostname, "port": agent.port, "pid": pid}
        registered = {
            "registered_time": agent.registered_time,
            "active": True,
            "deactivated": False,
            "version": "1.11.0",
        }
        has = {"resources": total, "unreserved_resources": total, "reserved_resources": {}, "used_resources": used}
        attributes = {a["name"]: _plain(a) for a in agent.attributes}
        return {**who, **registered, **has, "offered_resources": offered, "attributes": attributes}

    def _state(self) -> Json:
        rows = []
        for framework in self.frameworks.values():
            executor = {"framework_id": framework.id, "executor_id": ""}
            tasks = [
                {"id": task.id, "name": task.info["name"], **executor, "slave_id": agent.id, "state": task.state}
                for agent in self.agents.values()
                for task in agent.tasks.values()
                if task.framework == framework.id and task.state not in TERMINAL
            ]
            known = {"id": framework.id, "name": framework.info["name"], "registered_time": framework.registered_time}
            present = framework.stream is not None
            rows.append({**known, "active": present, "connected": present, "tasks": tasks})
        return {"version": "1.11.0", "id": self.id, "frameworks": rows, "completed_frameworks": []}

    def _operator_teardown(self, request: Request) -> Response:
        (identity,) = parse_qs(request.body.decode()).get("frameworkId", [""])
        framework = self.frameworks.get(identity)
        if framework is None:
            return Response.text(400, "No framework found with specified ID")
        self._tear_down(framework)
        return Response.text(200, "")

    def _scheduler(self, request: Request, writer: asyncio.StreamWriter) -> Answer:
        if request.method != "POST":
            body = f"405 Method Not Allowed. Expecting one of {{ 'POST' }}, but received '{request.method}'."
            return Response.text(405, body, Allow="POST")
        if request.headers.get("content-type") not in ("application/json", "application/x-protobuf"):
            return Response.text(415, "Expecting 'Content-Type' of application/json or application/x-protobuf")
        try:
            call = json.loads(request.body)
        except ValueError:
            near = request.body.decode(errors="replace").lstrip("{ ")
            return Response.text(400, f"Failed to parse body into JSON: syntax error at line 1 near: {near}")
        kind = call.get("type")
        if kind not in CALLS:
            return Response.text(400, "Failed to validate scheduler::Call: Expecting 'type' to be present")
        if kind == "SUBSCRIBE":
            return self._subscribe(call, writer)
        if "framework_id" not in call:
            return Response.text(400, "Failed to validate scheduler::Call: Expecting 'framework_id' to be present")
        framework = self.frameworks.get(call["framework_id"]["value"])
        if framework is None or framework.stream is None:
            return Response.text(400, "Framework cannot be found")
        stream_id = request.headers.get("mesos-stream-id")
        if stream_id is None:
            return Response.text(400, "All non-subscribe calls should include the 'Mesos-Stream-Id' header")
        if stream_id != framework.stream_id:
            why = f"The stream ID '{stream_id}' included in this request didn't match the stream ID currently"
            return Response.text(400, f"{why} associated with framework ID {framework.id}")
        self.calls.append(call)
        self._call(framework, kind, call.get(kind.lower(), {}))
        return Response(202)

    def _subscribe(self, call: Json, writer: asyncio.StreamWriter) -> Stream:
        self.calls.append(call)
        info = call["subscribe"]["framework_info"]
        stream_id = str(uuid.uuid4())
        stream = Stream(writer, {"Mesos-Stream-Id": stream_id, "Content-Type": "application/json"})
        identity = call.get("framework_id", {}).get("value")
        if identity in self.removed:
            stream.send({"type": "ERROR", "error": {"message": "Framework has been removed"}})
            stream.close()
            return stream
        if identity is None:
            identity = f"{self.id}-{next(self._numbers['framework']):04d}"
        framework = self.frameworks.setdefault(identity, Framework(identity, info))
        if framework.stream is not None:
            self._event(framework, "error", {"message": "Framework failed over"})
            framework.stream.close()
        for offer in self._offers_of(framework=framework):
            del self.offers[offer.id]
        framework.info, framework.stream, framework.stream_id = info, stream, stream_id
        framework.suppressed = False
        framework.filters.clear()
        host, _, port = self.address.partition(":")
        known = {"id": self.id, "ip": 16777343, "port": int(port), "pid": f"master@{self.address}", "hostname": host}
        address = {"hostname": host, "ip": host, "port": int(port)}
        capabilities = [{"type": "AGENT_UPDATE"}, {"type": "AGENT_DRAINING"}, {}]
        master = {**known, "version": "1.11.0", "address": address, "capabilities": capabilities}
        subscribed = {"framework_id": {"value": identity}, "heartbeat_interval_seconds": 15.0, "master_info": master}
        self._event(framework, "subscribed", subscribed)
        self._event(framework, "heartbeat")
        for agent in self.agents.values():
            agent.send_again()
        return stream

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, framework: Framework, kind: str, body: Json) -> None:
        match kind:
            case "ACCEPT":
                self._accept(framework, body)
            case "DECLINE":
                for offer in self._take(framework, body["offer_ids"])[0]:
                    self._filter(framework, offer.agent, offer.resources, body)
            case "REVIVE":
                framework.suppressed = False
                framework.filters.clear()
                self._allocate()
            case "SUPPRESS":
                framework.suppressed = True
            case "KILL":
                self._kill(framework, body["task_id"]["value"])
            case "ACKNOWLEDGE":
                agent = self.agents.get(body["agent_id"]["value"])
                if agent is not None:
                    agent.acknowledge(framework.id, body["task_id"]["value"], body["uuid"])
            case "RECONCILE":
                self._reconcile(framework, [t["task_id"]["value"] for t in body["tasks"]])
            case "TEARDOWN":
                self._tear_down(framework)

    def _take(self, framework: Framework, ids: list[Json]) -> tuple[list[Offer], list[str]]:
        """The offers that are still valid, which they are no more, and the ids of the others."""
        wanted, valid = [i["value"] for i in ids], {offer.id for offer in self._offers_of(framework=framework)}
        return [self.offers.pop(i) for i in wanted if i in valid], [i for i in wanted if i not in valid]

    def _accept(self, framework: Framework, body: Json) -> None:
        offers, ended = self._take(framework, body["offer_ids"])
        infos = [i for operation in body["operations"] for i in operation["launch"]["task_infos"]]
        if ended or len({offer.agent.id for offer in offers}) != 1:
            why = (
                f"Offer {ended[0]} is no longer valid" if ended else "Aggregated offers must belong to one single agent"
            )
            for info in infos:
                text = f"Task launched with invalid offers: {why}"
                lost = (info["task_id"]["value"], "TASK_DROPPED", text, "REASON_INVALID_OFFERS")
                self._send_update(framework, *lost, info["agent_id"]["value"])
            return
        agent = offers[0].agent
        left = pool.total(offer.resources for offer in offers)
        for info in infos:
            wanted = pool.read(info["resources"])
            rest = pool.minus(left, wanted)
            if rest is None:
                text = (
                    f"Total resources {pool.words(wanted, framework.role)} required by task and its executor is more "
                    f"than available {pool.words(left, framework.role)}"
                )
                refused = (info["task_id"]["value"], "TASK_ERROR", text, "REASON_TASK_INVALID")
                self._send_update(framework, *refused, info["agent_id"]["value"])
                continue
            left = rest
            agent.launch(framework.id, info)
        self._filter(framework, agent, left, body)

    def _filter(self, framework: Framework, agent: Agent, resources: pool.Pool, body: Json) -> None:
        seconds = body.get("filters", {}).get("refuse_seconds", 5.0)
        framework.filters[agent.id] = (resources, time.monotonic() + seconds)

    def _kill(self, framework: Framework, task: str) -> None:
        for agent in self.agents.values():
            if (framework.id, task) in agent.tasks:
                agent.kill(framework.id, task)
                return
        self._reconcile(framework, [task])

    def _reconcile(self, framework: Framework, tasks: list[str]) -> None:
        known = {
            task.id: (agent.id, task)
            for agent in self.agents.values()
            for (owner, _), task in agent.tasks.items()
            if owner == framework.id and (task.state not in TERMINAL or task.updates)
        }
        for identity in tasks or known:
            agent, state, text = "", "TASK_UNKNOWN", "Reconciliation: Task is unknown"
            if identity in known:
                agent, task = known[identity]
                state = task.updates[0]["state"] if task.updates else task.state
                text = "Reconciliation: Latest task state"
            self._send_update(framework, identity, state, text, "REASON_RECONCILIATION", agent)

    def _tear_down(self, framework: Framework) -> None:
        del self.frameworks[framework.id]
        self.removed.add(framework.id)
        for offer in self._offers_of(framework=framework):
            del self.offers[offer.id]
        for agent in self.agents.values():
            agent.shut_down(framework.id)
        if framework.stream is not None:
            framework.stream.close()


def _basic(principal: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{principal}:{secret}".encode()).decode()


def _plain(attribute: Json) -> Any:
    found = attribute[attribute["type"].lower()]
    return found["value"] if "value" in found else pool.ranges(found["range"])
