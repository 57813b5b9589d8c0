"""The process with the connection to the API server: it makes the engine's calls and reports changes of Pods.

A call may wait seconds for its answer, and the official client uses threads: neither may happen in the process that
serves the control channel. The engine starts this process as ``python -m hydra.kubernetes.driver FD``; FD is its end
of a socket pair.
If the engine is killed (SIGKILL), this process still deletes the objects of the run.

The engine sends, by ``call``: ``open`` (context, namespace, run, opening), ``nodes``, ``door`` (address),
``create`` (first, then: lists of tag, path, body), ``delete`` (groups, grace), ``why`` (pod, uid), ``look`` (tag,
path), ``stop``.
This process sends, by ``kind``: ``opened`` (namespace, server), ``nodes`` (nodes, pods, partial), ``door`` (port,
message), ``made`` (tag, name, uid), ``found`` (tag), ``refused`` (tag, status, reason, message), ``keeper`` (hello),
``pod`` (pod, ``gone``), ``pods`` (names of all Pods of the run), ``why`` (pod, events), ``offline`` (status, message),
``online``, ``failed`` (what, remedy), ``stopped`` (left: the number of Pods that are left; -1 if the API server
rejected the removal, with status, reason, message).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from hydra.engine.driver_pipe import DriverPipe, Message, Outbox
from hydra.errors import HydraError
from hydra.kubernetes import object_names, pod_status
from hydra.kubernetes.api_client import ANSWER_S, Api, ApiError, Json, Query, forget_credentials
from hydra.kubernetes.keeper_listener import KeeperListener
from hydra.kubernetes.node_listing import listed
from hydra.kubernetes.nodes import trimmed_node, trimmed_pod
from hydra.kubernetes.run_removal import AGAIN, DELETED_WITHIN_S, TRIES_S, remove

CALLS_AT_ONCE: Final = 8
WATCH_S: Final = 240
STOP_WITHIN_S: Final = 12.0
STOP_EACH_S: Final = 0.2
"""Additional time for each Pod: a kubelet ends a few Pods a second."""
_NAMED_AT_ONCE: Final = 100
"""The largest number of groups in one call, as its URL contains their names."""
_TICK_S: Final = 0.5
_STEADY_S: Final = 5.0
"""A watch that lasts longer does not count as failed."""
_PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 3.0)


class _Process:
    """Moves messages between the engine and the API server until the engine stops this process or has ended."""

    def __init__(self, channel: DriverPipe) -> None:
        self._channel = channel
        self._outbox = Outbox()
        self._pool = ThreadPoolExecutor(CALLS_AT_ONCE, "calls")
        self._aside = ThreadPoolExecutor(4, "aside")
        # Launches run one after another: a second one may need the Secret of the first.
        self._launches = ThreadPoolExecutor(1, "launches")
        self._closing = threading.Event()
        self._stopped = threading.Event()
        self._door: KeeperListener | None = None
        self._created = False
        self._api: Api | None = None
        self._namespace, self._selector = "", ""
        self._stopping = threading.Lock()
        self._pod_names: set[str] = set()

    def run(self) -> None:
        while not self._channel.closed and not self._stopped.is_set():
            for message in self._channel.receive():
                self._obey(message)
            self._forward()
            self._channel.wait(_TICK_S, self._outbox.bell)
        # The engine may have been killed: this process removes the run's objects.
        self._stop()
        self._forward()

    def _forward(self) -> None:
        for message in self._outbox.take():
            self._channel.send(message)
        self._channel.flush()

    def _send(self, kind: str, **fields: Any) -> None:
        self._outbox.put({"kind": kind, **fields})

    def _obey(self, message: Message) -> None:
        match message["call"]:
            case "open":
                self._aside.submit(self._guarded, self._open, message)
            case "nodes":
                self._aside.submit(self._guarded, self._send_nodes, message)
            case "door":
                self._open_door(message["address"])
            case "create":
                self._created = True
                self._launches.submit(self._guarded, self._create, message)
            case "delete":
                self._pool.submit(self._guarded, self._delete, message)
            case "why":
                self._aside.submit(self._guarded, self._why, message)
            case "look":
                self._aside.submit(self._guarded, self._look, message)
            case "stop":
                threading.Thread(target=self._stop, name="stop", daemon=True).start()

    def _guarded(self, work: Callable[[Message], object], message: Message) -> None:
        """Does the work and reports every error, which the pool would drop."""
        try:
            work(message)
        except HydraError as e:
            self._send("failed", what=e.what, remedy=e.remedy)
        except Exception as e:  # noqa: BLE001  # the user must see any error that ends the run
            self._send("failed", what=f"the process that asks Kubernetes: {type(e).__name__}: {e}", remedy="")

    # --- what is asked ------------------------------------------------------------------------------------------------

    @property
    def api(self) -> Api:
        if self._api is None:
            raise AssertionError("open comes first")
        return self._api

    def _open(self, message: Message) -> None:
        self._api = Api(message["context"])
        self._namespace = message["namespace"] or self._api.namespace
        self._selector = object_names.selector(message["run"], opening=message["opening"])
        self._send("opened", namespace=self._namespace, server=self._api.server)
        self._send_nodes(message)
        threading.Thread(target=self._guarded, args=(self._watch, message), name="watch", daemon=True).start()

    def _send_nodes(self, _: Message) -> None:
        """Reports all nodes and the Pods on them, or only the Pods of the run's namespace if the rights end there."""
        try:
            nodes, pods, partial = listed(
                lambda path, query: self._patiently("GET", path, query=query), self._namespace
            )
        except ApiError as e:
            self._send("refused", tag="nodes", status=e.status, reason=e.reason, message=e.message)
            return
        self._send(
            "nodes",
            nodes=[trimmed_node(node) for node in nodes],
            pods=[trimmed_pod(pod) for pod in pods],
            partial=partial,
        )

    def _open_door(self, address: str) -> None:
        try:
            self._door = KeeperListener(address, lambda hello: self._send("keeper", hello=hello))
            self._send("door", port=self._door.port, message="")
        except OSError as e:
            self._send("door", port=0, message=e.strerror or str(e))

    def _create(self, message: Message) -> None:
        """Creates some objects, and then the others: a Pod needs its Secret when it starts."""
        made = [self._make(wanted) for wanted in message["first"]]
        for wanted in message["then"]:
            if all(made):
                self._pool.submit(self._guarded, self._make, wanted)
            else:
                self._send(
                    "refused",
                    tag=wanted["tag"],
                    status=424,
                    reason="",
                    message="the cluster refused an object that this object needs",
                )

    def _make(self, wanted: Message) -> bool:
        if self._closing.is_set():
            return False  # it would be created after the removal
        try:
            made = self._patiently("POST", wanted["path"], wanted["body"])
        except ApiError as e:
            self._send("refused", tag=wanted["tag"], status=e.status, reason=e.reason, message=e.message)
            return False
        name, uid = made["metadata"]["name"], made["metadata"].get("uid", "")
        if self._door is not None and wanted["path"].endswith("/jobs"):
            self._door.token = uid
        self._send("made", tag=wanted["tag"], name=name, uid=uid)
        return True

    def _look(self, message: Message) -> None:
        """Reports whether a Job exists and has neither ended nor is being deleted."""
        try:
            seen = self._patiently("GET", message["path"])
        except ApiError as e:
            self._send("refused", tag=message["tag"], status=e.status, reason=e.reason, message=e.message)
            return
        ended = any(
            c["type"] in ("Complete", "Failed") and c["status"] == "True"
            for c in seen.get("status", {}).get("conditions", ())
        )
        if ended or seen["metadata"].get("deletionTimestamp"):
            self._send("refused", tag=message["tag"], status=404, reason="NotFound", message="the Job is being removed")
        else:
            self._send("found", tag=message["tag"])

    def _delete(self, message: Message) -> None:
        """Deletes the Pods of some groups, with one call for up to 100 groups."""
        options = {"gracePeriodSeconds": message["grace"]}
        groups = message["groups"]
        for first in range(0, len(groups), _NAMED_AT_ONCE):
            named = object_names.among(groups[first : first + _NAMED_AT_ONCE])
            query = {"labelSelector": f"{self._selector},{named}"}
            with contextlib.suppress(ApiError):  # the engine repeats the call for Pods that stay
                self._patiently("DELETE", self._pods, options, query, DELETED_WITHIN_S)

    def _why(self, message: Message) -> None:
        """Reports the warnings about a Pod: only they contain what keeps it from starting."""
        query = {"fieldSelector": f"involvedObject.uid={message['uid']},type=Warning"}
        try:
            events = self._patiently("GET", f"/api/v1/namespaces/{self._namespace}/events", query=query)["items"]
        except ApiError as e:
            events = [{"type": "Warning", "reason": "the Pod's events cannot be read", "message": e.message}]
        self._send("why", pod=message["pod"], events=events)

    def _patiently(
        self, method: str, path: str, body: Json | None = None, query: Query | None = None, answer_s: float = ANSWER_S
    ) -> Json:
        """Makes a call, and repeats it for a minute, as the API server may be restarting."""
        deadline = time.monotonic() + TRIES_S
        unanswered = False
        for attempt in range(1_000):
            try:
                return self.api.call(method, path, body, query, answer_s)
            except ApiError as e:
                if e.reason == "AlreadyExists" and body is not None and (unanswered or not path.endswith("/jobs")):
                    # The object was created although the answer was lost: only this process uses these names.
                    if not path.endswith("/jobs"):
                        return {"metadata": {"name": body["metadata"]["name"]}}
                    method, path, body = "GET", f"{path}/{body['metadata']['name']}", None
                    continue
                unanswered = unanswered or e.status in (0, 500, 502, 503, 504)
                pause_s = _PAUSES_S[min(attempt, len(_PAUSES_S) - 1)]
                late = time.monotonic() + pause_s > deadline
                if e.status not in AGAIN or e.reason == "AlreadyExists" or late or self._closing.is_set():
                    raise
                self._closing.wait(pause_s)
        raise AssertionError("the deadline comes first")

    # --- what is watched ----------------------------------------------------------------------------------------------

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"

    def _watch(self, _: Message) -> None:
        """Reports every change of the run's Pods; lists all of them again after a broken watch."""
        query = {"labelSelector": self._selector}
        version, online, broken = "", True, 0
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                if not version:
                    version = self._list(query)
                if not online:
                    online = True
                    self._send("online")
                version = self._follow({**query, "resourceVersion": version})
            except ApiError as e:
                version = ""
                # 410: the API server no longer has the changes after this version.
                if online and e.status != 410:
                    online = False
                    self._send("offline", status=e.status, message=e.message)
            broken = 0 if time.monotonic() - began > _STEADY_S else broken + 1
            if broken:
                self._stopped.wait(_PAUSES_S[min(broken, len(_PAUSES_S)) - 1])

    def _list(self, query: Query) -> str:
        """Reports all Pods of the run; returns the version from which a watch continues."""
        listed = self.api.call("GET", self._pods, query=query)
        for pod in listed["items"]:
            self._send("pod", pod=pod_status.trimmed(pod), gone=False)
        self._pod_names = {pod["metadata"]["name"] for pod in listed["items"]}
        self._send("pods", names=sorted(self._pod_names))
        return str(listed["metadata"]["resourceVersion"])

    def _follow(self, query: Mapping[str, str]) -> str:
        """Reports the changes that one watch returns; returns the version from which to continue."""
        version = query["resourceVersion"]
        for event in self.api.watch(self._pods, query, WATCH_S):
            seen = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(int(seen.get("code") or 0), str(seen.get("reason")), str(seen.get("message")))
            version = seen["metadata"]["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            is_deleted = event["type"] == "DELETED"
            (self._pod_names.discard if is_deleted else self._pod_names.add)(seen["metadata"]["name"])
            self._send("pod", pod=pod_status.trimmed(seen), gone=is_deleted)
        return version

    # --- the end ------------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Deletes the objects of the run and waits until its Pods are deleted; does so once."""
        with self._stopping:
            if self._stopped.is_set():
                return
            self._closing.set()
            end: Json = {"left": 0}
            try:
                if self._created:
                    for pool in (self._launches, self._pool):
                        pool.shutdown(cancel_futures=True)  # nothing may be created after the removal
                    if self._door is not None:
                        self._door.close()
                    deadline = time.monotonic() + STOP_WITHIN_S + STOP_EACH_S * len(self._pod_names)
                    end = {"left": remove(self.api, self._namespace, self._selector, deadline)}
            except ApiError as e:
                # The keeper ends without the controller, and the cluster then removes everything.
                end = {"left": -1, "status": e.status, "reason": e.reason, "message": e.message}
                sys.stdout.write(f"not all was removed: {e}\n")
            finally:
                if self._door is not None:
                    self._door.close()
                self._send("stopped", **end)
                self._stopped.set()


def main() -> None:
    """Runs the process; its only argument is the number of its socket's file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine handles Ctrl-C
    _Process(DriverPipe(socket.socket(fileno=int(sys.argv[1])))).run()
    sys.stdout.flush()
    forget_credentials()
    # A call may still wait for an API server that does not answer.
    os._exit(0)


if __name__ == "__main__":
    main()
