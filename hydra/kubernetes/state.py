"""The state and the decisions of a run on Kubernetes: nodes, Pods, groups. Pure: time is an argument, calls a result.

The owner of a :class:`KubernetesState` passes it the messages of the driver's process, calls
:meth:`KubernetesState.tick` often, and carries out :attr:`KubernetesState.calls` and :attr:`KubernetesState.events`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hydra.engine.placement import place, refusal
from hydra.errors import ClusterError
from hydra.kubernetes import affinity, api_errors, nodes, object_names, pod_status, pods
from hydra.kubernetes.node_inventory import Inventory, TerminatingPods
from hydra.kubernetes.pod_status import HOPELESS_S, NODE_WITHIN_S, START_WITHIN_S, WAIT_S
from hydra.kubernetes.pods import RunObjects
from hydra.kubernetes.run_health import RunHealth
from hydra.model import Agent, Group, GroupEvent, GroupState, Launch

Json = dict[str, Any]

CREATED_WITHIN_S: Final = 75.0
"""How long a Pod's creation may take: the driver repeats the call for a minute."""
WHY_WITHIN_S: Final = 5.0
KILL_AGAIN_S: Final = 10.0
LOOK_WITHIN_S: Final = 5.0
"""How long to wait for the answer whether the run still exists, after other processes deleted Pods of it."""
GRACE_S: Final = 5

Phase = Literal["creating", "starting", "running"]


@dataclass(slots=True)
class _Pod:
    """A group's Pod, from its placement to its end."""

    launch: Launch
    name: str
    secret: str
    wanted: Json
    """The request that creates the Pod; {} once the Pod exists."""
    since: float
    sent: float
    """When its creation was last requested."""
    phase: Phase = "creating"
    status: pod_status.PodStatus | None = None
    killed: float | None = None
    """When it was last asked to end."""
    queried_s: float | None = None
    """When its events were requested, to find what keeps it from starting."""
    waits_since: float = 0.0
    """When its present wait began."""
    hopeless: float | None = None
    uid: str = ""
    full: str = ""
    """A quota's rejection, while Pods of this run that the quota counts are still ending."""
    held: tuple[float, str] | None = None
    """When another process deleted it, and the message for that once Hydra knows whether the run still exists."""


class KubernetesState:
    """The state of one run.

    A group is placed at once on a node whose known free resources suffice. The group's Pod prefers that node, or is
    bound to it if a constraint has no translation; a ``running`` event contains the node on which the Pod really is.

    Attributes:
        family: what the run's objects have in common.
        calls: calls for the driver, oldest first; the owner takes them.
        events: events of groups, oldest first; the owner takes them.
        standing: whether the run can continue, and the message at its end.
        looking: whether the answer to :meth:`check_owner` is outstanding.
    """

    def __init__(self, family: RunObjects, ports: nodes.Ports) -> None:
        """Begins without nodes.

        Args:
            family: what the run's objects have in common.
            ports: the ranges of ports for servers.
        """
        self.family = family
        self.calls: list[Json] = []
        self.events: list[GroupEvent] = []
        self.standing = RunHealth(family)
        self._nodes = Inventory(family, ports)
        self._pods: dict[str, _Pod] = {}
        self._environments: set[str] = set()
        self._leaving: dict[int, set[str]] = {}
        self.looking = False
        self._done: set[str] = set()
        self._ending = TerminatingPods()

    # --- what the engine is asked ------------------------------------------------------------------------------------

    @property
    def fatal(self) -> tuple[str, str]:
        """Why nothing more can be launched, and what to try; ("", "") while it can."""
        return self.standing.fatal

    def agents(self) -> list[Agent]:
        """The nodes, with the free resources that Hydra knows of."""
        return self._nodes.less(pod.launch for pod in self._pods.values())

    def awaits_nodes(self, now: float) -> bool:
        """Whether a placement must wait for a new list of nodes, which this method requests if needed."""
        if self.fatal[0] or self._nodes.is_fresh(now):
            return False
        self._refresh(now)
        return self._nodes.is_awaited(now)

    def launch(self, groups: Sequence[Group], now: float, archived: Container[str] = ()) -> list[Launch]:
        """Places all of the groups or none, and has their Pods created; ``events`` then reports their states.

        Args:
            groups: the groups, each with the command of its container.
            now: the time in s.
            archived: ids of the groups that need the archive.

        Raises:
            PlacementError: a group fits nowhere.
            ClusterError: an id cannot be used, or nothing can be launched any more.
        """
        if self.fatal[0]:
            raise ClusterError(*self.fatal)
        taken = {pod.launch.group.id for pod in self._pods.values()}
        for group in groups:
            if group.id in taken:
                raise ClusterError(f"group {group.id!r} is running already", "give every group an id of its own")
            taken.add(group.id)
        placed = [replace(group, demand=pods.requested_resources(group.demand, group.count)) for group in groups]
        # Groups on a lost node will be reported as lost: placement does not spread others around them.
        running = [pod.launch for pod in self._pods.values() if pod.launch.agent.id in self._nodes.answering]
        launches, unplaced = place(self.agents(), placed, running)
        if unplaced:
            self._refresh(now)
            raise refusal(unplaced, "change the constraints or the demand, or look at hydra agents")
        self._create(launches, now, archived)
        return launches

    def kill(self, groups: Iterable[str], now: float) -> None:
        """Ends these groups' Pods; an unknown one is ignored."""
        named = set(groups)
        ending = [pod for pod in self._pods.values() if pod.launch.group.id in named and pod.killed is None]
        self._delete(ending, now)

    def _create(self, launches: Sequence[Launch], now: float, archived: Container[str]) -> None:
        secrets: list[Json] = []
        wanted: list[Json] = []
        # The scheduler does not count Pods that are being deleted.
        staying = [pod.launch for pod in self._pods.values() if pod.killed is None and pod.held is None]
        uneven = affinity.uneven([*staying, *launches], self._nodes.spread_over)
        for launch in launches:
            secret = pods.environment(self.family, launch.group.environment)
            name = secret["metadata"]["name"]
            if name not in self._environments:
                self._environments.add(name)
                secrets.append(self._wanted("secrets", secret))
            group = launch.group
            body = pods.group_pod(
                self.family,
                launch,
                group.command,
                name,
                archive=group.id in archived,
                grace_s=GRACE_S,
                decided=group.role in uneven,
            )
            pod = _Pod(launch, body["metadata"]["name"], name, self._wanted("pods", body), now, now)
            self._pods[pod.name] = pod
            wanted.append(pod.wanted)
        self.calls.append({"call": "create", "first": secrets, "then": wanted})

    def _wanted(self, kind: str, body: Json) -> Json:
        path = f"/api/v1/namespaces/{self.family.namespace}/{kind}"
        return {"tag": body["metadata"]["name"], "path": path, "body": body}

    def _delete(self, ending: Sequence[_Pod], now: float, grace_s: int = GRACE_S) -> None:
        for pod in ending:
            pod.killed = now
            if pod.phase != "creating":
                self._ending.begin(pod.name)
            self._leave(pod.launch.group.id, grace_s)
        self._send_off()

    def _leave(self, group: str, grace_s: int) -> None:
        """Has the Pods of a group deleted, in one call with other groups."""
        self._leaving.setdefault(grace_s, set()).add(group)

    def _send_off(self) -> None:
        for grace_s, groups in self._leaving.items():
            self.calls.append({"call": "delete", "groups": sorted(groups), "grace": grace_s})
        self._leaving.clear()

    def _refresh(self, now: float) -> None:
        """Has the nodes listed again, unless they were requested in the last 5 s."""
        if self._nodes.ask(now):
            self.calls.append({"call": "nodes"})

    # --- messages of the driver --------------------------------------------------------------------------------------

    def handle(self, message: Mapping[str, Any], now: float) -> None:
        """Takes one message of the driver's process (``driver.py`` lists them)."""
        match message["kind"]:
            case "nodes":
                self._nodes.take(message, now)
            case "pod":
                self._take_pod(message["pod"], now, is_deleted=message["gone"])
            case "pods":
                self._take_names(frozenset(message["names"]), now)
            case "refused":
                self._take_refusal(message, now)
            case "found":
                self.looking = False
                self._let_go(now)
            case "made":
                self._take_made(message["tag"], now)
            case "why":
                self._take_why(message, now)
            case "failed":
                self.standing.fatal = (message["what"], message["remedy"])

    def driver_ended(self, why: str) -> None:
        """Records that the driver has ended although the engine did not stop it."""
        if not self.fatal[0]:
            self.standing.fatal = (why, "begin again with --resume")

    def tick(self, now: float) -> None:
        """Gives up Pods that have waited for too long, and repeats calls without an answer."""
        overdue = [p for p in self._pods.values() if p.killed is not None and now - p.killed >= KILL_AGAIN_S]
        self._delete(overdue, now)
        self._try_again(now)
        for pod in [p for p in self._pods.values() if p.killed is None]:
            if pod.phase == "creating" and now - pod.since >= CREATED_WITHIN_S:
                self._end(pod, "lost", "the API server did not answer", now)
            elif pod.phase == "starting" and pod.status is not None:
                self._wait(pod, pod.status, now)
        self._let_go(now, LOOK_WITHIN_S)
        self._send_off()

    def _try_again(self, now: float) -> None:
        """Has Pods created again that a quota rejected, when other Pods of the run are deleted."""
        again: list[Json] = []
        for pod in [pod for pod in self._pods.values() if pod.full]:
            if pod.killed is not None or now - pod.since >= NODE_WITHIN_S or not self._ending.may_have_room(pod.sent):
                self._end(pod, "failed", pod.full, now, refused=True, exists=False)
            elif self._ending.has_room(pod.sent, now):
                pod.full, pod.sent = "", now
                again.append(pod.wanted)
        if again:
            self.calls.append({"call": "create", "first": [], "then": again})

    def _wait(self, pod: _Pod, status: pod_status.PodStatus, now: float) -> None:
        if pod.hopeless is not None and now - pod.hopeless >= HOPELESS_S:
            self._end(pod, "failed", status.detail, now, refused=True)
        elif now - pod.waits_since < WAIT_S.get(status.waits_for, START_WITHIN_S):
            pass
        elif status.waits_for != "start":
            self._refresh(now)
            unseen = f"; {nodes.UNSEEN}" if self._nodes.partial and status.waits_for == "node" else ""
            self._end(pod, "failed", status.detail + unseen, now, refused=True)
        elif pod.queried_s is None:
            pod.queried_s = now
            self.calls.append({"call": "why", "pod": pod.name, "uid": pod.uid})
        elif now - pod.queried_s >= WHY_WITHIN_S:
            self._end(pod, "failed", f"the group did not start within {START_WITHIN_S:g} s", now, refused=True)

    def _take_pod(self, seen: Json, now: float, *, is_deleted: bool) -> None:
        name = seen["metadata"]["name"]
        pod = self._pods.get(name)
        if is_deleted:
            self._ending.deleted(name, now)
        deleted = is_deleted or bool(seen["metadata"].get("deletionTimestamp"))
        if pod is None:
            self._take_other(seen, deleted=deleted)
            return
        if pod.killed is not None and not is_deleted and seen["status"].get("phase") not in nodes.ENDED:
            return  # it was asked to end, and has not ended yet
        before, status = pod.status, pod_status.status(seen)
        pod.status, pod.uid, pod.wanted = status, seen["metadata"].get("uid", ""), {}
        if status.node and status.node != pod.launch.agent.id:
            pod.launch = replace(pod.launch, agent=self._nodes.named(status.node, pod.launch.agent))
        if deleted and pod.killed is None and status.state in ("starting", "running", "lost"):
            # Another process has deleted the Pod, or the whole run; check_owner() finds out which.
            pod.held = pod.held or (now, status.detail or "the group's Pod was deleted")
            if not is_deleted:
                self._ending.begin(name)
            self.check_owner()
        elif is_deleted or status.state in ("finished", "failed", "killed", "lost"):
            refused = status.state == "failed" and status.hopeless
            self._end(pod, status.state, status.detail, now, refused=refused, exists=not is_deleted)
        elif status.state == "running":
            if pod.phase != "running":
                pod.phase = "running"
                self._note(pod, "running", f"Pod {name}")
        else:
            pod.phase = "starting"
            if before is None or before.waits_for != status.waits_for:
                pod.waits_since = now
            if not status.hopeless:
                pod.hopeless = None
            elif pod.hopeless is None:
                pod.hopeless = now

    def _take_other(self, seen: Json, *, deleted: bool) -> None:
        """Takes a Pod of no known group: the keeper's, or that of a group given up before its Pod was created."""
        labels = seen["metadata"].get("labels", {})
        if labels.get(object_names.PART) == "keeper" and deleted:
            self.check_owner()  # its Job creates another Pod, or the whole run was removed
        elif labels.get(object_names.PART) == "group" and not deleted and seen["metadata"]["name"] not in self._done:
            self._done.add(seen["metadata"]["name"])
            self._leave(labels.get(object_names.GROUP, ""), 0)  # another Pod runs its clients by now

    def check_owner(self) -> None:
        """Asks whether the Job that owns the run's objects still exists."""
        if self.family.owner and not self.looking:
            self.looking = True
            path = f"/apis/batch/v1/namespaces/{self.family.namespace}/jobs/{self.family.owner['name']}"
            self.calls.append({"call": "look", "tag": "owner", "path": path})

    def _let_go(self, now: float, after_s: float = 0.0) -> None:
        """Ends the groups whose Pods another process deleted, ``after_s`` or more before."""
        for pod in [p for p in self._pods.values() if p.held is not None and now - p.held[0] >= after_s]:
            self._end(pod, "lost", pod.held[1] if pod.held else "", now, exists=False)

    def _take_made(self, name: str, now: float) -> None:
        """Records that a Pod exists, which the watch may not have reported yet."""
        pod = self._pods.get(name)
        if pod is not None and pod.phase == "creating":
            pod.phase, pod.waits_since, pod.wanted = "starting", now, {}

    def _take_names(self, names: Collection[str], now: float) -> None:
        """Takes the names of all Pods after a broken watch: Pods without a name there were deleted in between."""
        self._ending.only(names, now)
        for pod in [pod for pod in self._pods.values() if pod.status is not None and pod.name not in names]:
            self._end(
                pod, "killed" if pod.killed is not None else "lost", "the group's Pod was deleted", now, exists=False
            )

    def _take_refusal(self, message: Mapping[str, Any], now: float) -> None:
        tag, status = message["tag"], message["status"]
        kind = "pods" if tag in self._pods else "secrets" if tag in self._environments else tag
        making = kind in ("pods", "secrets")
        refusal = self.standing.refusal(message, f"create {kind}" if making else f"list {kind}")
        if tag == "nodes":
            self._nodes.refused(now)
        elif tag == "owner":
            self.looking = False
            if status == 404:
                self.standing.lose_owner()
            self._let_go(now)
        elif tag in self._environments:
            self._environments.discard(tag)
            for pod in [pod for pod in self._pods.values() if pod.phase == "creating" and pod.secret == tag]:
                self._end(pod, "failed", _line(refusal), now, refused=True, exists=False)
        elif tag in self._pods and api_errors.is_full(message["message"]) and self._may_wait(self._pods[tag], now):
            self._pods[tag].full = _line(refusal)
        elif tag in self._pods:
            # Without an answer the object may exist all the same.
            self._end(self._pods[tag], "failed", _line(refusal), now, refused=True, exists=not refusal.final)
        self.standing.refused(refusal, making=making)

    def _may_wait(self, pod: _Pod, now: float) -> bool:
        """Whether a Pod that a quota rejected may get room in the quota within the time limit of its placement."""
        return pod.killed is None and self._ending.may_have_room(pod.sent) and now - pod.since < NODE_WITHIN_S

    def _take_why(self, message: Mapping[str, Any], now: float) -> None:
        pod = self._pods.get(message["pod"])
        if pod is None or pod.phase != "starting" or pod.status is None:
            return
        if pod.status.waits_for != "start":
            pod.queried_s = None  # it has made progress since the question
        else:
            why = api_errors.not_started(message["events"]) or "the Pod's events give no reason"
            self._end(pod, "failed", f"the group did not start within {START_WITHIN_S:g} s: {why}", now, refused=True)

    # --- events of groups --------------------------------------------------------------------------------------------

    def _end(
        self, pod: _Pod, state: GroupState, detail: str, now: float, *, refused: bool = False, exists: bool = True
    ) -> None:
        """Emits the last event of a group and has its Pod deleted, so its resources are free."""
        if pod.killed is not None:
            state, refused = "killed", False
        del self._pods[pod.name]
        if pod.status is not None:  # _take_other() deletes a Pod that appears only later
            self._done.add(pod.name)
            if exists:
                self._ending.begin(pod.name)
        self._note(pod, state, detail, refused=refused)
        if state == "lost":
            self._refresh(now)
        if exists and pod.killed is None:
            self._leave(pod.launch.group.id, 0 if state == "lost" else GRACE_S)

    def _note(self, pod: _Pod, state: GroupState, detail: str, *, refused: bool = False) -> None:
        self.events.append(GroupEvent(pod.launch.group.id, state, pod.launch.agent.id, detail, refused=refused))


def _line(refusal: api_errors.ApiFailure) -> str:
    return f"{refusal.what}; {refusal.remedy}" if refusal.remedy else refusal.what
