"""What a Mesos framework of Hydra knows and decides: offers, agents, tasks. Pure: time is passed in, calls come out.

Whoever owns a :class:`MesosState` feeds it what the driver's process says, calls :meth:`MesosState.tick` often, and
carries out :attr:`MesosState.calls` and :attr:`MesosState.events`.
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
"""How often a launch is tried whose offer was gone before it arrived; nothing has run by then."""
OFFER_WITHIN_S: Final = 30.0
"""How long a placed group waits for an offer of its agent that holds what it needs."""
HOLD_S: Final = 10.0
"""How long offers are kept that nothing needs, so that a run finds them when it begins."""
LINGER_S: Final = 2.0
"""The same after a launch: the subscribers' groups come right after the publishers'."""
REFUSE_S: Final = 3600.0
"""The filter on declined offers; a revive, which comes before every launch, lifts it."""
REFUSE_SHORTLY_S: Final = 1.0
"""The filter while groups still wait for more."""
ASK_AGAIN_S: Final = 10.0
"""How often a kill, or the question for a task's state, is repeated until it is answered."""
BENCH_S: Final = 60.0
"""How long an agent that failed to launch a group is the last choice."""
AUTOPSY_S: Final = 5.0
"""How long the end of a failed group's stderr is waited for."""
KILL_GRACE_S: Final = 5.0

Phase = Literal["waiting", "launched", "running"]


@dataclass(frozen=True, slots=True)
class TaskProgram:
    """How tasks get the program: what the fetcher unpacks, and how a group's command reads in the sandbox."""

    uris: tuple[mesos.Uri, ...] = ()
    prefix: tuple[str, ...] = ()
    """Put before a group's own command; the first word is an absolute path."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Task:
    """A group's task, from its placement to its end."""

    launch: Launch
    since: float
    attempt: int = 1
    phase: Phase = "waiting"
    killed: bool = False
    asked: float | None = None
    """When a kill was last sent, or, of a task that is not confirmed, when its state was last asked for."""
    confirmed: bool = True

    @property
    def id(self) -> str:
        return f"{self.launch.group.id}.{self.attempt}"

    @property
    def agent(self) -> str:
        return self.launch.agent.id


class MesosState:
    """The state of one framework.

    A group is placed at once on what is known to be free, and launched when an offer of its agent comes. Offers that
    hold less than that are believed only when a group has waited for more in vain.

    Attributes:
        program: how tasks get the program.
        calls: what the driver shall do, oldest first; taken by the owner.
        events: what happened to groups, oldest first; taken by the owner.
        framework: its id, "" before it is registered.
        connected: whether a master listens now.
        fatal: why this framework can do no more, or "".
        agents_there: how many agents the master has, None if it did not tell.
    """

    def __init__(self, program: TaskProgram) -> None:
        self.calls: list[Json] = []
        self.events: list[GroupEvent] = []
        self.framework = ""
        self.connected = False
        self.fatal = ""
        self.agents_there: int | None = None
        self.program = program
        self._offered = FrameworkOffers()
        self._tasks: dict[str, _Task] = {}
        self._autopsies: dict[str, tuple[GroupEvent, float]] = {}
        self._reviving = True
        self._revived: float | None = None
        self._idle_since: float | None = None

    # --- what the engine is asked ------------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        """The agents that were offered, with what is free on each as far as is known."""
        return [known.agent for known in self._offered.known.values()]

    def offered_all(self) -> bool:
        """Whether every agent that the master has was offered."""
        known = self._offered.known
        return bool(known) and self.agents_there is not None and len(known) >= self.agents_there

    def require_framework(self) -> None:
        """Raises ClusterError if the framework is no more."""
        if self.fatal:
            raise ClusterError(f"the Mesos framework is gone: {self.fatal}", "start the run again with --resume")

    def launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        """Places all of the groups or none; they are launched as offers allow, and ``events`` tell what became of them.

        Raises:
            PlacementError: a group fits nowhere.
            ClusterError: an id cannot be used, or the framework is no more.
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
        """Ends these groups' tasks; what was not launched yet never will be."""
        named = set(groups)
        for task in [t for t in self._tasks.values() if t.launch.group.id in named and not t.killed]:
            if task.phase == "waiting":
                self._end(task, GroupEvent(task.launch.group.id, "killed", task.agent, "before it was launched"))
            else:
                task.killed, task.asked = True, now
                self.calls.append({"call": "kill", "task": task.id})

    def running(self) -> list[str]:
        """The ids of the groups that have not ended."""
        return [task.launch.group.id for task in self._tasks.values()]

    # --- what the master says ----------------------------------------------------------------------------------------

    def handle(self, message: Json, now: float) -> None:
        """Takes note of one message of the driver's process (``driver.py`` lists them)."""
        match message["kind"]:
            case "registered":
                self._registered(message, now)
            case "agents":
                self.agents_there = message["count"]
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
        """Takes note that the driver has ended, though nobody asked it to."""
        if not self.fatal:
            self._died(why)

    def tick(self, now: float) -> None:
        """Repeats what was not answered and gives up what has waited for too long."""
        for task in list(self._tasks.values()):
            if task.phase == "waiting" and self.connected and now - task.since >= OFFER_WITHIN_S:
                self._give_up(task)
            elif task.killed and task.asked is not None and now - task.asked >= ASK_AGAIN_S:
                task.asked = now
                self.calls.append({"call": "kill", "task": task.id})
        unconfirmed = [
            t
            for t in self._tasks.values()
            if not t.confirmed and self.connected and (t.asked is None or now - t.asked >= ASK_AGAIN_S)
        ]
        if unconfirmed:
            for task in unconfirmed:
                task.asked = now
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
        # Offers of an earlier subscription are worth nothing, and a filter or a suppression does not survive it.
        self._offered.offers.clear()
        for task in self._tasks.values():
            if task.phase == "waiting":
                task.since = now
            else:
                task.confirmed, task.asked = False, None
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
            # Also when offers were required already: an earlier filter may keep back what is needed now.
            self._reviving, self._revived = True, now
            self.calls.append({"call": "revive"})

    def _rest(self, now: float) -> None:
        """Gives offers back that nothing needs; they are held for a moment before the first launch."""
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
        """Launches what the offers at hand allow: one ACCEPT for each agent."""
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
        """The agent does not offer what was thought to be free: from now on the offers at hand are believed."""
        offered = self._offered.held(task.agent)
        text = f"no offer of {task.launch.agent.hostname} held what it needs within {OFFER_WITHIN_S:g} s"
        held = format_resources(offered) or "nothing"
        self._end(task, GroupEvent(task.launch.group.id, "lost", task.agent, f"{text}; it offers {held}"))
        self._offered.set_free(task.agent, offered)

    # --- what became of tasks ----------------------------------------------------------------------------------------

    def _updated(self, update: TaskUpdate, status: Json, now: float) -> None:
        task = self._tasks.get(update.task)
        if task is None:
            if update.means in ("starting", "running") and update.state != "TASK_KILLING":
                # Given up as lost, or of an earlier life of this framework: nobody waits for it any more.
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
            # What it said last is worth a moment.
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
        task.phase, task.since, task.confirmed, task.asked = "waiting", now, True, None
        self._tasks[task.id] = task
        self._want(now)
        self._match(now)

    def _call_failed(self, message: Json, now: float) -> None:
        """A call did not get through. ``tick`` repeats kills and questions, the master its updates."""
        if message["call"] != "accept":
            return
        for task in [self._tasks[t] for t in message["tasks"] if t in self._tasks]:
            if message["sure"]:
                self._try_again_or_lose(task, message["message"], now)
            else:
                task.confirmed, task.asked = False, None

    def _try_again_or_lose(self, task: _Task, why: str, now: float) -> None:
        if task.attempt < ATTEMPTS:
            self._try_again(task, now)
        else:
            self._end(task, GroupEvent(task.launch.group.id, "lost", task.agent, f"it could not be launched: {why}"))

    def _agent_lost(self, agent: str, now: float) -> None:
        self._offered.forget_agent(agent)
        if self.agents_there is not None:
            self.agents_there = max(0, self.agents_there - 1)
        for task in [t for t in self._tasks.values() if t.agent == agent]:
            if task.phase == "waiting":
                self._end(task, GroupEvent(task.launch.group.id, "lost", agent, "its agent is gone"))
            else:  # an update of each is on its way; asking makes sure of it
                task.confirmed, task.asked = False, now

    def _end(self, task: _Task, event: GroupEvent) -> None:
        self._remove(task)
        self.events.append(event)

    def _remove(self, task: _Task) -> None:
        del self._tasks[task.id]
        self._offered.add_free(task.agent, taken_by(task.launch))
