"""The state and the decisions of a Mesos framework: offers, agents, tasks. Pure: time is an argument, calls a result.

The owner of a :class:`MesosState` passes it the messages of the driver's process, calls :meth:`MesosState.tick` often,
and carries out :attr:`MesosState.calls` and :attr:`MesosState.events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from hydra.engine.placement import place, refusal
from hydra.engine.resources import format_resources, need_of, taken_by
from hydra.errors import ClusterError
from hydra.mesos import translate as mesos
from hydra.mesos.offers import FrameworkOffers
from hydra.mesos.translate import AgentOffer, Json, TaskUpdate
from hydra.model import Agent, Group, GroupEvent, Launch

ATTEMPTS: Final = 4
"""How often a launch is tried if its offer is withdrawn before the launch arrives, so nothing has run."""
OFFER_WITHIN_S: Final = 30.0
"""How long a placed group waits for a sufficient offer of its agent."""
HOLD_S: Final = 10.0
"""How long offers that no group needs are kept, so a run finds them when it begins."""
LINGER_S: Final = 2.0
"""How long they are kept after a launch, as the subscribers' groups follow the publishers' at once."""
REFUSE_S: Final = 3600.0
"""The filter on declined offers; a revive, which precedes every launch, removes it."""
REFUSE_SHORTLY_S: Final = 1.0
"""The filter while groups still wait for larger offers."""
ASK_AGAIN_S: Final = 10.0
"""The pause before a kill, or a request for a task's state, is sent again without an answer."""
BENCH_S: Final = 60.0
"""How long placement avoids an agent that failed to launch a group."""
AUTOPSY_S: Final = 5.0
"""How long to wait for the end of a failed group's stderr."""
KILL_GRACE_S: Final = 5.0

Phase = Literal["waiting", "launched", "running"]


@dataclass(frozen=True, slots=True)
class TaskProgram:
    """The program of the tasks: the archives that the fetcher unpacks, and how the sandbox starts a command."""

    uris: tuple[mesos.Uri, ...] = ()
    prefix: tuple[str, ...] = ()
    """Words before a group's command; the first one is an absolute path."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Task:
    """A group's task, from its placement to its end."""

    launch: Launch
    since: float
    attempt: int = 1
    phase: Phase = "waiting"
    killed: bool = False
    queried_s: float | None = None
    """When a kill was last sent, or when the state of an unconfirmed task was last requested."""
    confirmed: bool = True

    @property
    def id(self) -> str:
        return f"{self.launch.group.id}.{self.attempt}"

    @property
    def agent(self) -> str:
        return self.launch.agent.id


class MesosState:
    """The state of one framework.

    A group is placed at once by the known free resources, and launched when an offer of its agent arrives. Offers with
    fewer resources lower the known ones only when a group has waited in vain for more.

    Attributes:
        program: the program of the tasks.
        calls: calls for the driver, oldest first; the owner takes them.
        events: events of groups, oldest first; the owner takes them.
        framework: the framework's id; "" before it is registered.
        connected: whether a master is connected now.
        fatal: why this framework cannot continue, or "".
        agent_count: how many agents the master has; None if the master did not report it.
    """

    def __init__(self, program: TaskProgram) -> None:
        self.calls: list[Json] = []
        self.events: list[GroupEvent] = []
        self.framework = ""
        self.connected = False
        self.fatal = ""
        self.agent_count: int | None = None
        self.program = program
        self._offered = FrameworkOffers()
        self._tasks: dict[str, _Task] = {}
        self._autopsies: dict[str, tuple[GroupEvent, float]] = {}
        self._reviving = True
        self._revived: float | None = None
        self._idle_since: float | None = None

    # --- what the engine is asked ------------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        """The agents that were offered, with their known free resources."""
        return [known.agent for known in self._offered.known.values()]

    def offered_all(self) -> bool:
        """Whether every agent that the master has was offered."""
        known = self._offered.known
        return bool(known) and self.agent_count is not None and len(known) >= self.agent_count

    def require_framework(self) -> None:
        """Raises ClusterError if the framework has ended."""
        if self.fatal:
            raise ClusterError(f"the Mesos framework has ended: {self.fatal}", "start the run again with --resume")

    def launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        """Places all of the groups or none; offers decide when they are launched, and ``events`` reports their states.

        Raises:
            PlacementError: a group fits nowhere.
            ClusterError: an id cannot be used, or the framework has ended.
        """
        self.require_framework()
        taken = {task.launch.group.id for task in self._tasks.values()}
        for group in groups:
            if group.id in taken:
                raise ClusterError(f"group {group.id!r} is running already", "give every group an id of its own")
            if group.id in ("", ".", "..") or "/" in group.id or not group.id.isprintable():
                raise ClusterError(f"group id {group.id!r} cannot be a task id", "use letters, digits, - and _")
            taken.add(group.id)
        required = [replace(group, demand=mesos.rounded_demand(group.demand, group.count)) for group in groups]
        launches = self._place(required, now)
        for launch in launches:
            self._offered.subtract_free(launch.agent.id, taken_by(launch))
            task = _Task(launch, now)
            self._tasks[task.id] = task
        self._want(now)
        self._match(now)
        return launches

    def kill(self, groups: Iterable[str], now: float) -> None:
        """Ends these groups' tasks; a task that was not launched yet will not be launched."""
        named = set(groups)
        for task in [t for t in self._tasks.values() if t.launch.group.id in named and not t.killed]:
            if task.phase == "waiting":
                self._end(task, GroupEvent(task.launch.group.id, "killed", task.agent, "before it was launched"))
            else:
                task.killed, task.queried_s = True, now
                self.calls.append({"call": "kill", "task": task.id})

    def running(self) -> list[str]:
        """The ids of the groups that have not ended."""
        return [task.launch.group.id for task in self._tasks.values()]

    # --- messages of the master --------------------------------------------------------------------------------------

    def handle(self, message: Json, now: float) -> None:
        """Takes one message of the driver's process (``driver.py`` lists them)."""
        match message["kind"]:
            case "registered":
                self._registered(message, now)
            case "agents":
                self.agent_count = message["count"]
            case "offers":
                self._take_offers([mesos.offer(offer) for offer in message["offers"]], now)
            case "rescinded":
                self._offered.offers.pop(message["offer"], None)
            case "update":
                self._updated(mesos.update(message["status"]), message["status"], now)
            case "agent_lost":
                self._agent_lost(message["agent"], now)
            case "disconnected":
                self.connected = False
                self._offered.offers.clear()
            case "failed":
                self._call_failed(message, now)
            case "sandbox":
                self._autopsied(message["task"], message["text"])
            case "error" | "aborted":
                self._died(message["message"])

    def driver_ended(self, why: str) -> None:
        """Records that the driver has ended although the engine did not stop it."""
        if not self.fatal:
            self._died(why)

    def tick(self, now: float) -> None:
        """Repeats calls without an answer and gives up tasks that have waited for too long."""
        for task in list(self._tasks.values()):
            if task.phase == "waiting" and self.connected and now - task.since >= OFFER_WITHIN_S:
                self._give_up(task)
            elif task.killed and task.queried_s is not None and now - task.queried_s >= ASK_AGAIN_S:
                task.queried_s = now
                self.calls.append({"call": "kill", "task": task.id})
        unconfirmed = [
            t
            for t in self._tasks.values()
            if not t.confirmed and self.connected and (t.queried_s is None or now - t.queried_s >= ASK_AGAIN_S)
        ]
        if unconfirmed:
            for task in unconfirmed:
                task.queried_s = now
            self.calls.append({"call": "reconcile", "tasks": [task.id for task in unconfirmed]})
        if self._revived is not None and self.connected and now - self._revived >= ASK_AGAIN_S:
            self._want(now)
        for task_id, (_, until) in list(self._autopsies.items()):
            if now >= until:
                self._autopsied(task_id, "")
        self._rest(now)

    # --- registration ------------------------------------------------------------------------------------------------

    def _registered(self, message: Json, now: float) -> None:
        self.framework, self.connected = message["framework"], True
        # A new subscription invalidates earlier offers, filters and suppression.
        self._offered.offers.clear()
        for task in self._tasks.values():
            if task.phase == "waiting":
                task.since = now
            else:
                task.confirmed, task.queried_s = False, None
        if message["again"]:
            self.calls.append({"call": "reconcile", "tasks": []})
            if not self._reviving:
                self.calls.append({"call": "suppress"})

    def _died(self, why: str) -> None:
        self.fatal, self.connected = why, False
        for task in list(self._tasks.values()):
            self._end(task, GroupEvent(task.launch.group.id, "lost", task.agent, why))

    # --- offers ------------------------------------------------------------------------------------------------------

    def _take_offers(self, offers: Sequence[AgentOffer], now: float) -> None:
        self._offered.take(offers)
        for agent in {offer.agent.id for offer in offers}:
            waiting = (taken_by(t.launch) for t in self._tasks.values() if t.agent == agent and t.phase == "waiting")
            self._offered.raise_free(agent, waiting)
        self._match(now)

    def _want(self, now: float) -> None:
        """Asks for offers if groups wait for them."""
        if any(task.phase == "waiting" for task in self._tasks.values()):
            self._idle_since = None
            # Also if offers were requested before: an earlier filter may withhold an offer that is needed now.
            self._reviving, self._revived = True, now
            self.calls.append({"call": "revive"})

    def _rest(self, now: float) -> None:
        """Declines offers that no group needs, some seconds after the last group was launched."""
        if any(task.phase == "waiting" for task in self._tasks.values()) or not self.connected:
            self._idle_since = None
            return
        self._idle_since = now if self._idle_since is None else self._idle_since
        if now - self._idle_since < (LINGER_S if self._tasks else HOLD_S):
            return
        if self._offered.offers:
            self.calls.append({"call": "decline", "offers": sorted(self._offered.offers), "refuse_s": REFUSE_S})
            self._offered.offers.clear()
        if self._reviving:
            self._reviving, self._revived = False, None
            self.calls.append({"call": "suppress"})

    # --- placing and launching ---------------------------------------------------------------------------------------

    def _place(self, groups: Sequence[Group], now: float) -> list[Launch]:
        running = [task.launch for task in self._tasks.values()]
        everyone = list(self._offered.known.values())
        good = [known.agent for known in everyone if known.benched_until <= now]
        benched = [known.agent for known in everyone if known.benched_until > now]
        launches, unplaced = place(good, groups, running, benched)
        if unplaced and benched:
            launches, unplaced = place([known.agent for known in everyone], groups, running)
        if unplaced:
            raise refusal(
                unplaced,
                "see hydra agents --master …, and change the constraints, the demand, or the agents' attributes",
            )
        return launches

    def _match(self, now: float) -> None:
        """Launches the groups that the unused offers allow, with one ACCEPT for each agent."""
        waiting: dict[str, list[_Task]] = {}
        for task in self._tasks.values():
            if task.phase == "waiting":
                waiting.setdefault(task.agent, []).append(task)
        for agent, tasks in waiting.items():
            offers = self._offered.of(agent)
            parts = [part for offer in offers for part in offer.parts]
            infos = []
            for task in tasks:
                got = mesos.take(parts, need_of(task.launch.group.demand, task.launch.group.count))
                if got is not None:
                    taken, parts, ports = got
                    infos.append(self._info(task, taken, ports))
                    task.phase, task.since = "launched", now
            if infos:
                short = any(task.phase == "waiting" for task in tasks)
                self.calls.append(
                    {
                        "call": "accept",
                        "offers": [offer.id for offer in offers],
                        "operations": [mesos.launch_operation(infos)],
                        "tasks": [info["task_id"]["value"] for info in infos],
                        "refuse_s": REFUSE_SHORTLY_S if short else REFUSE_S,
                    }
                )
                self._offered.drop(offers)

    def _info(self, task: _Task, taken: Sequence[Json], ports: Sequence[int]) -> Json:
        group, known = task.launch.group, self._offered.known[task.agent]
        environment = {
            **group.environment,
            **self.program.environment,
            "HYDRA_AGENT": task.agent,
            "HYDRA_PORTS": ",".join(map(str, ports)),
        }
        if known.ip:
            environment["HYDRA_DATA_HOST"] = known.ip
        return mesos.task_info(
            task=task.id,
            name=group.id,
            agent=task.agent,
            resources=taken,
            command=mesos.command_info((*self.program.prefix, *group.command), environment, self.program.uris),
            grace_s=KILL_GRACE_S,
        )

    def _give_up(self, task: _Task) -> None:
        """Gives up a task whose agent does not offer enough, and takes the agent's offers as its free resources."""
        offered = self._offered.held(task.agent)
        text = f"no offer of {task.launch.agent.hostname} had enough for the group within {OFFER_WITHIN_S:g} s"
        held = format_resources(offered) or "nothing"
        self._end(task, GroupEvent(task.launch.group.id, "lost", task.agent, f"{text}; the agent offers {held}"))
        self._offered.set_free(task.agent, offered)

    # --- states of tasks ---------------------------------------------------------------------------------------------

    def _updated(self, update: TaskUpdate, status: Json, now: float) -> None:
        task = self._tasks.get(update.task)
        if task is None:
            if update.means in ("starting", "running") and update.state != "TASK_KILLING":
                # The task was given up as lost, or this framework started it before a restart: it is not needed.
                self.calls.append({"call": "kill", "task": update.task})
        else:
            task.confirmed = True
            self._apply(task, update, now)
        if update.uuid:
            self.calls.append({"call": "acknowledge", "status": status})

    def _apply(self, task: _Task, update: TaskUpdate, now: float) -> None:
        group, means = task.launch.group.id, update.means
        if means in ("starting", "running"):
            if task.phase == "waiting":
                return
            if means == "running" and task.phase != "running" and update.state == "TASK_RUNNING":
                task.phase = "running"
                self.events.append(GroupEvent(group, "running", task.agent, f"task {task.id}"))
            return
        never_ran = task.phase == "launched" and means == "lost" and update.reason in mesos.NEVER_LAUNCHED
        if never_ran and not task.killed and task.attempt < ATTEMPTS:
            self._try_again(task, now)
            return
        known = self._offered.known.get(task.agent)
        if update.reason in mesos.AGENT_AT_FAULT and known is not None:
            known.benched_until = now + BENCH_S
        state = "killed" if task.killed and means in ("finished", "failed") else means
        event = GroupEvent(group, state, task.agent, update.detail)
        if state == "failed" and known is not None and known.address and update.state == "TASK_FAILED":
            # The last lines of its stderr are worth a short wait.
            self._autopsies[task.id] = (event, now + AUTOPSY_S)
            self.calls.append({"call": "sandbox", "agent": known.address, "task": task.id})
            self._remove(task)
        else:
            self._end(task, event)

    def _autopsied(self, task: str, text: str) -> None:
        event, _ = self._autopsies.pop(task, (None, 0.0))
        if event is not None:
            self.events.append(replace(event, detail=f"{text} ({event.detail})") if text else event)

    def _try_again(self, task: _Task, now: float) -> None:
        del self._tasks[task.id]
        task.attempt += 1
        task.phase, task.since, task.confirmed, task.queried_s = "waiting", now, True, None
        self._tasks[task.id] = task
        self._want(now)
        self._match(now)

    def _call_failed(self, message: Json, now: float) -> None:
        """Handles a failed call: only launches; ``tick`` repeats kills and requests, and the master its updates."""
        if message["call"] != "accept":
            return
        for task in [self._tasks[t] for t in message["tasks"] if t in self._tasks]:
            if message["sure"]:
                self._try_again_or_lose(task, message["message"], now)
            else:
                task.confirmed, task.queried_s = False, None

    def _try_again_or_lose(self, task: _Task, why: str, now: float) -> None:
        if task.attempt < ATTEMPTS:
            self._try_again(task, now)
        else:
            self._end(task, GroupEvent(task.launch.group.id, "lost", task.agent, f"it could not be launched: {why}"))

    def _agent_lost(self, agent: str, now: float) -> None:
        self._offered.forget_agent(agent)
        if self.agent_count is not None:
            self.agent_count = max(0, self.agent_count - 1)
        for task in [t for t in self._tasks.values() if t.agent == agent]:
            if task.phase == "waiting":
                self._end(task, GroupEvent(task.launch.group.id, "lost", agent, "its agent was removed"))
            else:  # the master sends an update of each; Hydra requests it if none arrives
                task.confirmed, task.queried_s = False, now

    def _end(self, task: _Task, event: GroupEvent) -> None:
        self._remove(task)
        self.events.append(event)

    def _remove(self, task: _Task) -> None:
        del self._tasks[task.id]
        self._offered.add_free(task.agent, taken_by(task.launch))
