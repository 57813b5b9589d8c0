"""A framework without a library: it sends what the recordings sent and keeps every event."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from typing import Any

from tests.suite.waiting import LONG_S, SOON_S, wait_until

_CAPABILITIES = [{"type": name} for name in ("MULTI_ROLE", "PARTITION_AWARE", "RESERVATION_REFINEMENT")]
_WHO = {"user": "root", "name": "hydra", "principal": "hydra", "roles": ["*"], "capabilities": _CAPABILITIES}
INFO = {**_WHO, "failover_timeout": 120, "checkpoint": True}


def ask(
    address: str, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], str]:
    """Status, headers and body."""
    connection = http.client.HTTPConnection(address, timeout=SOON_S)
    connection.request(method, target, body, {"Accept": "application/json", **(headers or {})})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


class Framework:
    """Subscribes, and reads its stream in a thread."""

    def __init__(self, address: str, framework: str = "") -> None:
        self.address = address
        self.events: list[dict[str, Any]] = []
        self.closed = threading.Event()
        body: dict[str, Any] = {"type": "SUBSCRIBE", "subscribe": {"framework_info": INFO}}
        if framework:
            body["framework_id"] = {"value": framework}
        self._connection = http.client.HTTPConnection(address, timeout=LONG_S)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        self._connection.request("POST", "/api/v1/scheduler", json.dumps(body), headers)
        self.answer = self._connection.getresponse()
        self.stream_id = self.answer.getheader("Mesos-Stream-Id") or ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while line := self.answer.readline():
                self.events.append(json.loads(self.answer.read(int(line))))
        except (OSError, http.client.HTTPException, ValueError):
            pass
        self.closed.set()

    @property
    def id(self) -> str:
        return str(self.wait("SUBSCRIBED")["framework_id"]["value"])

    def wait(self, kind: str, number: int = 0) -> dict[str, Any]:
        """The body of the first, second … event of a type."""

        def found() -> list[dict[str, Any]]:
            return [e.get(kind.lower(), {}) for e in list(self.events) if e["type"] == kind][number:]

        return wait_until(found, f"event {kind} number {number}", saw=lambda: list(self.events))[0]

    def wait_for_task(self, task: str, state: str) -> dict[str, Any]:
        """The first status of a task in a state."""

        def found() -> list[dict[str, Any]]:
            updates = [e["update"]["status"] for e in list(self.events) if e["type"] == "UPDATE"]
            return [s for s in updates if (s["task_id"]["value"], s["state"]) == (task, state)]

        return wait_until(found, f"{state} of task {task}", saw=lambda: list(self.events))[0]

    def run(self, task: str) -> dict[str, Any]:
        """Launches a task that sleeps and acknowledges that it runs; gives the offer that was used."""
        offer: dict[str, Any] = self.wait("OFFERS")["offers"][0]
        self.launch(offer, task, {"value": "sleep 100"})
        for state in ("TASK_STARTING", "TASK_RUNNING"):
            self.acknowledge(self.wait_for_task(task, state))
        return offer

    def call(self, kind: str, body: dict[str, Any] | None = None) -> None:
        message = {"framework_id": {"value": self.id}, "type": kind, **({kind.lower(): body} if body else {})}
        headers = {"Content-Type": "application/json", "Mesos-Stream-Id": self.stream_id}
        status, _, text = ask(self.address, "POST", "/api/v1/scheduler", json.dumps(message).encode(), headers)
        assert (status, text) == (202, "")

    def acknowledge(self, status: dict[str, Any]) -> None:
        self.call("ACKNOWLEDGE", {key: status[key] for key in ("agent_id", "task_id", "uuid")})

    def launch(self, offer: dict[str, Any], task: str, command: dict[str, Any], *, cpus: float = 0.1) -> None:
        """As the recordings did."""
        role = {"allocation_info": {"role": "*"}}
        amounts = (("cpus", cpus), ("mem", 32))
        resources = [{"name": name, "type": "SCALAR", "scalar": {"value": value}, **role} for name, value in amounts]
        info = {"name": task, "task_id": {"value": task}, "agent_id": offer["agent_id"], "resources": resources}
        launch = {"task_infos": [{**info, "command": {"shell": True, **command}}]}
        operations = [{"type": "LAUNCH", "launch": launch}]
        self.call("ACCEPT", {"offer_ids": [offer["id"]], "operations": operations, "filters": {"refuse_seconds": 0.1}})

    def close(self) -> None:
        """Hangs up; the reader ends by that."""
        if self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(SOON_S)
        self._connection.close()
        self.answer.close()
