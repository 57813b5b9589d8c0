"""Begins a run on a Kubernetes cluster, or raises an error with the reason in one line."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Final

from hydra.client.network_interfaces import resolved, route_to
from hydra.engine.driver_engine import DriverProcess
from hydra.engine.interface import Engine
from hydra.engine.specification import Opening
from hydra.errors import ClusterError, UsageError
from hydra.kubernetes import api_errors, keeper_job
from hydra.kubernetes.api_client import Json, check_context, context_of, require_client
from hydra.kubernetes.engine import KubernetesEngine
from hydra.kubernetes.node_listing import ports_of
from hydra.kubernetes.pod_scripts.keeper_pod import digest
from hydra.kubernetes.pods import RunObjects, own_image, source
from hydra.kubernetes.program_delivery import ProgramDelivery, sources
from hydra.kubernetes.run_removal import AGAIN, TRIES_S
from hydra.kubernetes.settings import KubernetesSettings
from hydra.kubernetes.state import KubernetesState

ANSWERS_WITHIN_S: Final = 15.0
"""How long the API server may take to list its nodes, or to create the keeper's Job."""
CLEARED_WITHIN_S: Final = 60.0
"""How long an earlier process's objects may take to disappear: its keeper tries for 20 s and may hang."""
_AGAIN_S: Final = 1.0
_NOTICE_AFTER_S: Final = 3.0
"""After this time Hydra prints what the first Pod waits for."""
POD_IP: Final = "HYDRA_POD_IP"
"""The environment variable with the address of a controller that runs in a Pod."""


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that has begun: its engine, and the keeper's message about the image and its Pod."""

    engine: KubernetesEngine
    hello: Json


@contextlib.contextmanager
def opened(opening: Opening) -> Iterator[Engine]:
    """The engine for a run; see :func:`begun`."""
    with begun(opening) as run:
        yield run.engine


@contextlib.contextmanager
def begun(opening: Opening) -> Iterator[StartedRun]:
    """Begins a run: creates the keeper that owns its Pods, and proves that Pods reach this machine.

    Raises:
        UsageError, ClusterError, MissingDependencyError: the cluster cannot be used; no object is left there.
    """
    require_client()
    context, settings = context_of(opening.master), opening.settings
    advertised = _advertised(settings)
    check_context(context)  # before any object is created
    programs = opening.programs()
    opening.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        driver = DriverProcess("hydra.kubernetes.driver", opening.folder / "kubernetes.log")
        stack.callback(driver.close)
        beginning = _Beginning(driver, opening.notify)
        nonce = secrets.token_hex(4)
        found = beginning.connect(context, settings.namespace, opening.run, nonce)
        address = advertised or _address(found["nodes"])
        delivery = stack.enter_context(contextlib.closing(ProgramDelivery(programs, settings, address)))
        image = settings.python_image or own_image(settings, version("hydra-scale"))
        family = RunObjects(opening.run, beginning.namespace, {}, settings, image, delivery.every, nonce)
        state = KubernetesState(family, ports_of(settings))
        state.handle(found, time.monotonic())
        engine = stack.enter_context(contextlib.closing(KubernetesEngine(driver, state, delivery, address)))
        state.family = beginning.keep(family, address)
        for message in beginning.unread:
            state.handle(message, time.monotonic())
        yield StartedRun(engine, {**beginning.hello, "address": address})


def _advertised(settings: KubernetesSettings) -> str:
    """The address of this machine that the settings name; "" if they name none.

    Raises:
        UsageError: it is not an address of this machine, or Pods cannot reach it.
    """
    # The cluster file of a Pod may have the address of another machine.
    if own := os.environ.get(POD_IP):
        return resolved(own)
    if not settings.advertise:
        return ""
    # Pods in their node's network may be on this machine.
    return resolved(settings.advertise, loopback=bool(settings.pod.get("hostNetwork")))


def _address(nodes: Sequence[Json]) -> str:
    """The address at which Pods probably reach this machine; the keeper then proves it.

    Raises:
        ClusterError: there is no route to any node.
    """
    tried, found = [], [addresses for node in nodes for addresses in node.get("status", {}).get("addresses", ())]
    inside = [addresses["address"] for addresses in found if addresses["type"] == "InternalIP"]
    for address in [address for address in inside if ":" not in address]:
        try:
            return route_to(address)
        except OSError as e:
            tried.append(f"{address}: {e.strerror or e}")
    if inside and not tried:
        raise ClusterError(f"the nodes have IPv6 addresses only, such as {inside[0]}", "Hydra needs IPv4 between Pods")
    raise ClusterError(
        f"there is no route from here to a node ({', '.join(tried) or 'none has an address'})",
        "name this machine's address as Pods reach it (--advertise), or run in the cluster (--in-cluster)",
    )


class _Beginning:
    """Sends the driver one call after another, and waits for each answer."""

    def __init__(self, driver: DriverProcess, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self.namespace = ""
        self.hello: Json = {}
        self._driver = driver
        self.unread: list[Json] = []
        self._server = ""
        self._offline: tuple[float, ClusterError] | None = None

    def connect(self, context: str, namespace: str, run: str, opening: str) -> Json:
        """Has the driver read the kubeconfig and list the nodes; returns the message with the nodes.

        Raises:
            ClusterError: the cluster does not answer, or rejects the request.
        """
        request = {"context": context, "namespace": namespace, "run": run, "opening": opening}
        self._driver.send([{"call": "open", **request}])
        opened = self._await(lambda m: m["kind"] == "opened", ANSWERS_WITHIN_S, "report the kubeconfig")
        self.namespace, self._server = opened["namespace"], opened["server"]
        return self._await(lambda m: m["kind"] == "nodes", ANSWERS_WITHIN_S, f"answer at {self._server}")

    def keep(self, family: RunObjects, address: str) -> RunObjects:
        """Creates the keeper and waits until it has reached this machine; returns the family with its owner.

        Raises:
            ClusterError: the cluster rejected the keeper, or the keeper did not start or does not reach this machine.
            UsageError: the image cannot be used.
        """
        self._driver.send([{"call": "door", "address": address}])
        door = self._await(lambda m: m["kind"] == "door", ANSWERS_WITHIN_S, "open a port")
        if door["message"]:
            raise ClusterError(f"cannot listen at {address}: {door['message']}", "name another with --advertise")
        body = keeper_job.job(family, source("keeper_pod"), f"{address}:{door['port']}", family.image)
        owner = keeper_job.owner(self._made(body))
        self.hello = self._keeper(family, address, owner)
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        what, remedy = keeper_job.refusal(
            self.hello,
            version("hydra-scale"),
            digest(str(sources())),
            python,
            archive=family.archive,
            image=family.image,
        )
        if what:
            raise UsageError(what, remedy)
        return replace(family, owner=owner)

    @property
    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    def _made(self, body: Json) -> Json:
        """The Job as the API server has created it.

        A Job of an earlier process of this run disappears when its keeper loses that process; a Job that stays belongs
        to a run that is still running.
        """
        tag = body["metadata"]["name"]
        wanted = {"tag": tag, "path": self._jobs, "body": body}
        deadline = time.monotonic() + CLEARED_WITHIN_S
        while True:
            self._driver.send([{"call": "create", "first": [wanted], "then": []}])
            answer = self._await(lambda m: m.get("tag") == tag, ANSWERS_WITHIN_S, "take the keeper's Job", refused=tag)
            if answer["kind"] == "made":
                return {"metadata": answer}
            if answer["reason"] != "AlreadyExists":
                raise self._refused(answer, "create jobs")
            if time.monotonic() >= deadline:
                raise ClusterError(
                    f"a run of this name is running in namespace {self.namespace}",
                    "give this one another name (--out), or end that one: hydra ps, hydra kill",
                )
            time.sleep(_AGAIN_S)

    def _keeper(self, family: RunObjects, address: str, owner: Json) -> Json:
        """Waits for the first message of the run's first Pod (the keeper), and returns it."""
        began, reported = time.monotonic(), ""
        arrival = keeper_job.KeeperStartup(family, address, owner["uid"], began)
        while True:
            message = self._next(0.2) or {}
            match message:
                case {"kind": "keeper", "hello": hello}:
                    return dict(hello)
                case {"kind": "refused"}:
                    raise self._refused(message, "watch pods")
                case {"kind": "pod", "pod": pod, "gone": False}:
                    arrival.see(pod)
                case {"kind": "why", "events": events}:
                    arrival.take_events(events)
            if arrival.needs_events(time.monotonic()):
                self._driver.send([{"call": "why", "pod": owner["name"], "uid": owner["uid"]}])
            # While the API server is not reachable, the Pod's state is unknown.
            what, remedy = ("", "") if self._offline else arrival.failure(time.monotonic())
            if what:
                raise ClusterError(what, remedy)
            if (waits := arrival.waits()) != reported and time.monotonic() - began > _NOTICE_AFTER_S:
                reported = waits
                self._notify(f"waiting for the first Pod, of the image {family.image}: {waits}")

    # --- messages -----------------------------------------------------------------------------------------------------

    def _await(self, wanted: Callable[[Json], bool], within_s: float, what: str, *, refused: str = "") -> Json:
        deadline = time.monotonic() + within_s
        while (left_s := deadline - time.monotonic()) > 0:
            message = self._next(min(left_s, 0.2))
            if message is None:
                continue
            if wanted(message):
                return message
            if message["kind"] == "refused" and message["tag"] != refused:
                raise self._refused(message, f"list {message['tag']}")
        if self._offline:
            raise self._offline[1]
        raise ClusterError(f"the Kubernetes cluster did not {what} within {within_s:g} s", "see kubectl cluster-info")

    def _next(self, wait_s: float) -> Json | None:
        """The next message, None if there is none; raises an error that ends the run."""
        if self._offline and time.monotonic() - self._offline[0] > TRIES_S:
            raise self._offline[1]
        if not self.unread:
            self.unread = self._driver.receive(wait_s)
        if not self.unread:
            if self._driver.closed:
                raise ClusterError(self._driver.ended())
            return None
        message = self.unread.pop(0)
        if message["kind"] == "failed":
            raise ClusterError(message["what"], message["remedy"])
        if message["kind"] == "online":
            self._offline = None
        if message["kind"] == "offline":
            refused = self._refused({"reason": "", **message}, "watch pods")
            if message["status"] not in AGAIN:
                raise refused
            self._offline = time.monotonic(), refused
        return message

    def _refused(self, message: Json, doing: str) -> ClusterError:
        refusal = api_errors.api_failure(
            message["status"], message["reason"], message["message"], doing=doing, namespace=self.namespace
        )
        return ClusterError(refusal.what, refusal.remedy)
