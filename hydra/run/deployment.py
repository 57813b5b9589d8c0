"""The clients of a run and their process groups: how clients are added, removed and replaced after a death."""

from __future__ import annotations

from collections import Counter
from typing import Final

from pyroaring import BitMap

from hydra.config.resource_needs import group_files
from hydra.control.roster import ProcessExit
from hydra.engine.group_sizing import split
from hydra.engine.interface import ENDED_STATES, with_real_agent
from hydra.engine.pinning import pin_environment
from hydra.errors import ClusterError, ReadinessError
from hydra.events.group_events import (
    ClientExit,
    ClientsConnected,
    Evicted,
    GroupExit,
    GroupRelaunched,
    Launched,
    cause,
    end_of,
)
from hydra.events.value_formatting import counted, id_ranges, ranges
from hydra.model import Group, GroupEvent, Launch, Role, RoleSpec
from hydra.run.client_sets import AgentOfClient, GroupClients
from hydra.run.context import RunContext
from hydra.wire import EXIT_DISMISSED, RESEND_EVERY_S

_RELAUNCHES: Final = 3
"""How often a client that died, or did not connect, is replaced before the run gives up."""
_SHARE_OF_TIMEOUT: Final = 0.25
"""Missing clients are replaced if no client connects for this share of ``ready_timeout_s``."""


class Deployment:
    """The clients of a run on its agents.

    Publishers have the ids 0 … publishers − 1, subscribers the ids that follow. A step may have fewer publishers than
    the scenario: then those with the first ids run, and the subscribers keep their ids.

    Attributes:
        launches: the running groups by id, with the agent of each.
        deaths: clients that died since :meth:`begin_step`, by how they ended.
    """

    def __init__(self, run: RunContext) -> None:
        self.launches: dict[str, Launch] = {}
        self.deaths: dict[str, BitMap] = {}
        self._run = run
        self._groups_made = 0
        self._publishers = 0
        self._subscribers = 0
        self._last_end = ""
        self._refused = ""
        self._relaunches: Counter[int] = Counter()
        self._homes = GroupClients()
        self._renewed = BitMap()
        self._started: set[str] = set()
        # Clients whose processes were asked to end, with their incarnations, until their end or replacement is known.
        self._evicted: dict[int, int] = {}
        # The pids of clients whose death is known only from the hello of their replacement.
        self._causes_awaited: dict[int, int] = {}
        self._evict_again_s = 0.0
        self._closing = False

    # --- present clients -------------------------------------------------------------------------------------------

    @property
    def publishers(self) -> range:
        """The ids of the publishers that take part in the step."""
        return range(self._publishers)

    @property
    def subscribers(self) -> range:
        """The ids of the subscribers that take part in the step."""
        return range(self._run.scenario.publishers, self._run.scenario.publishers + self._subscribers)

    @property
    def is_local(self) -> bool:
        """Whether the clients run on this host."""
        return self._run.engine.is_local

    def everyone(self) -> BitMap:
        """The clients that were launched and are not known to have ended for good."""
        return self._homes.everyone

    def agents(self) -> AgentOfClient:
        """The id of the present agent of each client."""
        return AgentOfClient((ids, self.launches[group].agent.id) for group, ids in self._homes.groups())

    def watch(self) -> None:
        """Records every newly known death; cheap, called during waits."""
        for exit_ in self._run.controller.roster.take_exits():
            for client in exit_.ids:
                self._ended(client, exit_)
        for event in self._run.events.take(self.launches):
            if event.state in ENDED_STATES:
                self._group_ended(event)
            elif event.state == "running":
                self._started.add(event.group)
                self.launches[event.group] = with_real_agent(self.launches[event.group], event)

    def begin_step(self) -> None:
        """Starts to count ``deaths`` for the next step; clients that are not connected now count as dead in it."""
        self.watch()
        self._await_causes_no_longer()
        self.deaths = {}
        self._died(self._required() - self._run.controller.roster.present(), "before the step")
        self._forget_evicted()

    @property
    def died(self) -> BitMap:
        """All clients that died since :meth:`begin_step`."""
        return BitMap().union(*self.deaths.values())

    def take_renewed(self) -> BitMap:
        """The clients whose process was replaced, or will be, since the last call."""
        renewed, self._renewed = self._renewed, BitMap()
        return renewed

    def _required(self) -> BitMap:
        return BitMap(self.publishers) | BitMap(self.subscribers)

    # --- growing, shrinking, replacing -------------------------------------------------------------------------------

    def scale(self, subscribers: int, publishers: int | None = None) -> bool:
        """Ends superfluous clients, launches missing ones, and waits until all are connected.

        Args:
            subscribers: the number of subscribers.
            publishers: the number of publishers; None: all of the scenario's.

        Returns whether any client was launched.

        Raises:
            PlacementError: they do not fit.
            ClusterError: a client died, or did not connect, too often; or the engine can launch no more groups.
            ReadinessError: clients had not connected before the deadline, or the cluster rejected them; the text names
                them, or the reason.
        """
        self.watch()
        self._refused = ""
        publishers = self._run.scenario.publishers if publishers is None else publishers
        required_before = self._required()
        self._publishers, self._subscribers = publishers, subscribers
        if superfluous := required_before - self._required():
            # A group that keeps some clients continues with them.
            self._run.controller.quit(superfluous)
            self._let_go(superfluous)
        before = self._groups_made
        began = self._run.now_s()
        deadline = began + self._run.scenario.ready_timeout_s
        complete = False
        while not complete:
            # Clients that die before they connect are launched again, until they have died too often.
            self._launch_missing("publisher", self.publishers, self._run.scenario.publisher)
            self._launch_missing("subscriber", self.subscribers, self._run.scenario.subscriber)
            complete = self._await_present(deadline)
            if self._refused:
                refused, self._refused = self._refused, ""
                self._run.engine.agents()  # raises its own error if no row can be launched
                raise ReadinessError(refused)
        if self._groups_made > before:
            self._run.journal.note(ClientsConnected(len(self._homes.everyone), self._run.now_s() - began))
        return self._groups_made > before

    def evict(self, clients: BitMap, why: str = "did not answer") -> None:
        """Has the processes of these clients killed; their groups replace them."""
        roster = self._run.controller.roster
        for group, members in self._homes.parts(clients):
            # All clients of a process end with it.
            ids = self._homes.of(group) & members.union(*map(roster.process, members & roster.present()))
            self._run.journal.note(Evicted(group, ids, why))
            self._evicted |= {client: roster.incarnation(client) for client in ids}
            self._renewed |= ids
            roster.disconnect(ids)
            self._ask_for_the_end(group, ids)
        self._evict_again_s = self._run.now_s() + RESEND_EVERY_S

    def confirm(self) -> None:
        """Checks that the run still exists in the cluster.

        Raises:
            ClusterError: a user ended it there, so the failed step is not a failure of the run itself.
        """
        self._run.engine.confirm(self._run.controller.wait_until)

    def close(self) -> None:
        """Sends every client the command to exit, waits, and has the engine end the remaining ones."""
        self._closing = True
        # Servers run on, because clients may still have something to send to them.
        self._run.controller.quit(self._required())
        self._run.controller.wait_until(self._all_ended, 2.0)
        self._await_causes_no_longer()
        self._run.engine.kill(list(self.launches))

    def _all_ended(self) -> bool:
        self.watch()
        return not self.launches

    def _launch_missing(self, role: Role, ids: range, spec: RoleSpec) -> None:
        missing = BitMap(ids) - self._homes.everyone
        if not missing:
            return
        self._refuse_hopeless(missing)
        self._run.controller.roster.forget(missing)
        self._renewed |= missing
        program = self._run.system.program(role)
        packed = self._run.scenario.native.clients_per_process if role == "subscriber" else 1
        most = self._run.cluster.most_in_group(packed)
        groups = []
        for run in ranges(missing):
            first = run.start
            for count in split(
                len(run),
                self._run.engine.agents(),
                spec,
                most,
                role=role,
                running=list(self.launches.values()),
            ):
                self._groups_made += 1
                group = f"{role}s-{self._groups_made}"
                flags = {
                    "--group": group,
                    "--first-id": first,
                    "--count": count,
                    "--fork-window": self._run.cluster.fork_window,
                    "--respawns": self._run.cluster.respawns,
                }
                groups.append(
                    Group(
                        id=group,
                        role=role,
                        first_client=first,
                        count=count,
                        command=(*program.command, *(str(word) for flag in flags.items() for word in flag)),
                        environment={
                            **program.environment,
                            **self._run.controller.environment,
                            **pin_environment(spec.pin),
                            "HYDRA_MEMORY_LIMIT_BYTES": str(round(self._run.scenario.publisher_memory_mb * 1e6)),
                        },
                        demand=spec.demand,
                        constraints=spec.constraints,
                        files=group_files(self._run.resolved, role, count),
                    )
                )
                self._run.controller.roster.expect(group, range(first, first + count))
                first += count
        for launch in self._run.engine.launch(groups):
            self.launches[launch.group.id] = launch
            first = launch.group.first_client
            self._homes.settle(launch.group.id, range(first, first + launch.group.count))
            self._run.journal.note(Launched.of(launch))

    def _refuse_hopeless(self, clients: BitMap) -> None:
        for client, count in self._relaunches.items():
            if count > _RELAUNCHES and client in clients:
                role = "publisher" if client < self.subscribers.start else "subscriber"
                raise ClusterError(
                    f"{role} {client} was lost {counted(count, 'time')}, last: {self._last_end}",
                    "see the events of the run and the stderr in its sandbox",
                )

    def _let_go(self, ids: BitMap) -> None:
        """Removes these clients from their groups; a group without clients is ended."""
        self._homes.leave(ids)
        for client in ids & BitMap(self._evicted):
            del self._evicted[client]
        for group, _ in [(group, left) for group, left in self._homes.groups() if not left]:
            self._homes.end(group)
            del self.launches[group]
            self._run.events.ignore(group)
            self._run.engine.kill([group])
        # The ids of these clients are free again: the next process with one of them is a new client.
        self._run.controller.roster.forget(ids)

    def _await_present(self, deadline: float) -> bool:
        """Waits until every client and every relay is connected; False if some must be launched again first."""
        required = self._required()
        roster = self._run.controller.roster
        limit_s = self._run.scenario.ready_timeout_s * _SHARE_OF_TIMEOUT
        heard: tuple[int, ...] = ()

        def hellos() -> tuple[int, ...]:
            return len(roster.present()), len(roster.relays()), len(self._started)

        def look() -> None:
            # The roster contains servers, too, which are no clients.
            self._run.observer.present(required.intersection_cardinality(roster.present()), len(required))

        # These conditions are checked after every few messages, with thousands of clients: counts are compared first.
        def all_launched() -> bool:
            return len(self._homes.everyone) == len(required)  # it holds no other clients

        def all_present() -> bool:
            return len(roster.present()) >= len(required) and not self._missing(required)

        def something_new() -> bool:
            self.watch()
            self._evict_again()
            return not all_launched() or hellos() != heard or all_present()

        while all_launched() and not all_present():
            left_s = deadline - self._run.now_s()
            if left_s <= 0:
                missing = self._missing(required)
                raise ReadinessError(
                    f"{len(missing)} of {counted(len(required), 'client')} did not dial in within "
                    f"{self._run.scenario.ready_timeout_s:g} s: {id_ranges(missing)}",
                    "look at the stderr of their groups in the run's sandbox, or raise ready_timeout_s",
                )
            heard = hellos()
            look()
            if not self._run.controller.wait_until(something_new, min(left_s, limit_s)) and left_s > limit_s:
                self._replace(self._missing(required))
        look()
        return all_launched()

    def _missing(self, required: BitMap) -> BitMap:
        """Clients that are not connected, or whose relay is not: no command reaches them without it."""
        roster = self._run.controller.roster
        mute = self.launches.keys() - roster.relays()
        return required - roster.present() | required & BitMap().union(*map(self._homes.of, mute))

    def _replace(self, missing: BitMap) -> None:
        """Replaces clients that have not connected: in their group first, in another group if that fails.

        A group that has not started yet may still be fetching its program, and its clients are not replaced.
        """
        late = missing & BitMap().union(*map(self._homes.of, self._started))
        given_up = late & BitMap(self._evicted)
        self._last_end = "the process did not connect to the controller"
        self._relaunches.update(late)
        self._refuse_hopeless(late)
        self.evict(late - given_up, "did not dial in")
        if given_up:
            self._run.journal.note(GroupRelaunched(given_up))
            self._let_go(given_up)

    def _evict_again(self) -> None:
        """Resends the command to end evicted clients whose end or replacement is not known yet."""
        if self._run.now_s() < self._evict_again_s:
            return
        self._evict_again_s = self._run.now_s() + RESEND_EVERY_S
        self._forget_evicted()
        for group, ids in self._homes.parts(BitMap(self._evicted)):
            self._ask_for_the_end(group, ids)

    def _ask_for_the_end(self, group: str, ids: BitMap) -> None:
        """Has the evicted processes of a group's clients ended, but not their replacements."""
        by_incarnation: dict[int, BitMap] = {}
        for client in ids:
            by_incarnation.setdefault(self._evicted[client], BitMap()).add(client)
        for incarnation, clients in by_incarnation.items():
            self._run.controller.evict(group, clients, incarnation)

    def _forget_evicted(self) -> None:
        """Forgets evicted clients that have connected again, as other processes."""
        for client in BitMap(self._evicted) & self._run.controller.roster.present():
            del self._evicted[client]

    # --- deaths ----------------------------------------------------------------------------------------------------

    def _ended(self, client: int, exit_: ProcessExit) -> None:
        """Records that a client's process ended, by itself or because it was evicted."""
        if self._closing and exit_.status == EXIT_DISMISSED:
            return  # it obeyed the command to exit
        self._renewed.add(client)
        if exit_.status is None:
            self._causes_awaited[client] = exit_.pid
        else:
            self._run.journal.note(ClientExit(client, exit_.pid, exit_.status, exit_.replaced))
            if self._causes_awaited.get(client) == exit_.pid:
                del self._causes_awaited[client]
                self._died(self.died & BitMap([client]), end_of(exit_.status))
                return  # its death is recorded already
        is_evicted = client in self._evicted
        self._evicted.pop(client, None)
        if not exit_.present and client in self._run.controller.roster.present():
            return  # its replacement is connected
        if exit_.present or not is_evicted:
            self._died(BitMap([client]), end_of(exit_.status))
            self._relaunches[client] += not exit_.replaced
            self._last_end = cause(exit_.pid, exit_.status)
        if not exit_.replaced:
            self._homes.leave(BitMap([client]))

    def _died(self, ids: BitMap, how: str) -> None:
        """Records how clients died, in place of an earlier record."""
        for others in self.deaths.values():
            others -= ids
        self.deaths[how] = self.deaths.get(how, BitMap()) | ids

    def _await_causes_no_longer(self) -> None:
        """Notes deaths that are known only from the replacement's hello, as the message with the cause is lost."""
        for client, pid in self._causes_awaited.items():
            self._run.journal.note(ClientExit(client, pid, None, replaced=True))
        self._causes_awaited.clear()

    def _group_ended(self, event: GroupEvent) -> None:
        del self.launches[event.group]
        ids = self._homes.end(event.group)
        if self._closing:
            return
        self._run.journal.note(GroupExit(event.group, event.state, event.agent, event.detail))
        self._last_end = f"group {event.group} {event.state}: {event.detail}"
        self._died(ids - self.died, f"group {event.state}")
        self._renewed |= ids
        if event.refused:
            # The clients are not the cause, and another launch at once would be rejected, too.
            self._refused = self._last_end
        else:
            self._relaunches.update(ids)
        self._run.controller.roster.forget(ids)
        for client in ids & BitMap(self._evicted):
            del self._evicted[client]

    def alive(self, ids: BitMap) -> BitMap:
        """The clients among ``ids`` that have not died in this step."""
        return ids - self.died
