"""A control channel without sockets and with a clock of its own, for what a step decides."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec
from pyroaring import BitMap

from hydra import model
from hydra.client.host_monitor import HostMonitor
from hydra.config import plugins
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario
from hydra.control.roster import Roster
from hydra.run.deployment import Deployment
from hydra.run.step import StepRunner
from hydra.system import DeliveryRules, MessageLog, RunServers, System
from hydra.wire import messages as wire
from hydra.wire import report_batch as batch
from hydra.wire.clock import StepClock
from tests.control.golden_messages import COUNTERS, FROM_CLIENT
from tests.control.rosters import HERE, NETWORK, hello
from tests.run.contexts import context

_TICK_NS = 10_000_000
PUBLISHER = 0
THREAD = model.BusyThread(4711, "sends", 12.5)
"""The busiest one of the publisher's group."""
Loss = Callable[[int, wire.FromController | wire.FromClient, int], bool]
"""Whether the n-th message of its type and epoch (from 1) to or from a client is lost."""


def joined(clients: list[int], incarnation: int = 0, pid: int | None = None) -> wire.Joined:
    """These clients are there, in one process."""
    pids = [1000 + clients[0] if pid is None else pid] * len(clients)
    return wire.Joined(ids=clients, seq=2, incarnations=[incarnation] * len(clients), pids=pids)


def framed(answer: wire.FromClient) -> tuple[bytes, bytes | None]:
    """A relay's message in frames: a batch has the report of a subscriber."""
    if not isinstance(answer, wire.Batch):
        return wire.encode(answer), None
    columns, payload = batch.encode([(answer.ids[0], _received())], ())
    return wire.encode(msgspec.structs.replace(answer, columns=columns)), payload


@dataclass
class Channel(System, RunServers):
    """A publisher and subscribers that answer at once, each by a relay, over a channel that loses chosen messages.

    ``report_after_s`` is how long a subscriber drains, ``start_ack_after_s`` how long a client takes to acknowledge a
    start, ``unacknowledged`` what the publisher reports as that, ``proof_of`` what readiness depends on beside the
    processes, ``log`` how much is in the servers' log, one time that it is asked for after the other,
    ``reads_stored`` whether subscribers read when all is sent, ``all_sent_after_s`` when the publisher has sent 500,
    ``elsewhere`` which clients are on another host, each on one of its own, and what that host's clock shows at a time
    of the test (ns), where it has COUNTERS; ``timed_messages`` has the messages to clients, with time and id, ``told``
    without the time; ``polls`` is how often it was looked what has come.
    """

    subscribers: range
    loses: Loss = lambda *_: False
    report_after_s: Callable[[int], float] = lambda _: 0.0
    start_ack_after_s: Callable[[int], float] = lambda _: 0.0
    unacknowledged: list[tuple[int, int]] = field(default_factory=list)
    proof_of: Callable[[model.Settings], Hashable] = lambda _: None
    log: list[int] = field(default_factory=list)
    reads_stored: bool = False
    all_sent_after_s: float | None = None
    elsewhere: Mapping[int, Callable[[int], int]] = field(default_factory=dict)
    now_ns: int = 10**12
    polls: int = 0
    timed_messages: list[tuple[int, int, wire.FromController]] = field(default_factory=list)
    evicted: list[int] = field(default_factory=list)
    died: BitMap = field(default_factory=BitMap)
    renewed: BitMap = field(default_factory=BitMap)
    roster: Roster = field(default_factory=lambda: Roster(HERE, NETWORK))

    def __post_init__(self) -> None:
        self.servers = self
        self.publishers = range(PUBLISHER, PUBLISHER + 1)
        everyone = [*self.publishers, *self.subscribers]
        self._seq = 0
        self._counts: defaultdict[tuple[object, ...], int] = defaultdict(int)
        self._coming: list[tuple[int, int, int, wire.FromClient]] = []
        self._sent = 0
        self._started: dict[int, int] = {}
        for client in everyone:
            present = {"boot_id": f"boot-{client}"} if client in self.elsewhere else {}
            role = "publisher" if client in self.publishers else "subscriber"
            agent = self.agents()[client]
            text = hello([client], group=f"g-{client}", role=role, agent=agent, **present)
            self.roster.expect(text.group, [client])
            self._hear(client, text)
            self._hear(client, joined([client]))
        self._watchers = {client: self._watcher(client) for client in everyone}

    def _watcher(self, client: int) -> HostMonitor:
        return HostMonitor(
            [client],
            lambda message: self._send(client, message, _TICK_NS / 1e9),
            lambda: COUNTERS,
            (lambda: [THREAD]) if client in self.publishers else None,
            lambda: self.elsewhere[client](self.now_ns) if client in self.elsewhere else self.now_ns,
        )

    def stepper(self, *, drain_max_s: float = 5.0) -> StepRunner:
        """One that measures on this channel, its first step as epoch 1."""
        scenario = replace(load_scenario("zmqfixed"), ready_timeout_s=30.0, drain_max_s=drain_max_s)
        run = context(
            resolved=ResolvedScenario(scenario, replace(plugins.system("zmq"), delivery=self.delivery)),
            system=self,
            controller=self,
            epoch=1,
            clock_ns=lambda: self.now_ns,
        )
        return StepRunner(run, cast(Deployment, self))

    @property
    def data(self) -> list[tuple[int, wire.FromController]]:
        return [(client, message) for _, client, message in self.timed_messages]

    # --- a controller ----------------------------------------------------------------------------------------------

    def send_to(self, ids: BitMap, message: wire.FromController) -> None:
        for client in ids:
            self.timed_messages.append((self.now_ns, client, message))
            if not self._lost(client, message):
                for answer, after_s in self._answers(client, message):
                    self._send(client, answer, after_s)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        until_ns = self.now_ns + timeout_s * 1e9
        while not condition():
            if self.now_ns >= until_ns:
                return False
            self.poll(_TICK_NS / 1e9)
        return True

    def poll(self, timeout_s: float) -> None:
        self.polls += 1
        until_ns, heard = self.now_ns + timeout_s * 1e9, False
        while not heard and self.now_ns < until_ns:
            self.now_ns += _TICK_NS
            while self._coming and self._coming[0][0] <= self.now_ns:
                heard = True
                _, _, client, message = heapq.heappop(self._coming)
                self._hear(client, message)
            for identity, time_ns in self.roster.timekeeper.due(self.now_ns):
                self._pinged(int(identity), wire.Ping(time_ns=time_ns, reply=True))
            self._watched()

    def _pinged(self, client: int, ping: wire.Ping) -> None:
        """The relay of a client elsewhere answers half a tick later, and is heard after another half."""
        if not self._lost(client, ping):
            shown_ns = self.elsewhere[client](self.now_ns + _TICK_NS // 2)
            answer = wire.Ack(ids=[client], seq=1, epoch=0, command="ping", time_ns=shown_ns, echo=ping.time_ns)
            self._send(client, answer, _TICK_NS / 1e9)

    def watch_hosts(self, epoch: int, every_s: float) -> None:
        self.roster.watch.begin(epoch, every_s)

    def end_watch(self) -> None:
        self.roster.watch.end()

    def _watched(self) -> None:
        """Every relay hears at once what it is sent, and does what is due."""
        for identity, watch in self.roster.watch.due(self.now_ns):
            client = int(identity)
            if not self._lost(client, watch):
                self._watchers[client].take(watch)
        for watcher in self._watchers.values():
            watcher.work()

    def complain(self, text: str) -> None:
        """The publisher reports that it cannot continue."""
        epoch = self.roster.answers.epoch
        self._send(PUBLISHER, wire.Error(ids=[PUBLISHER], seq=1, epoch=epoch, message=text), 0)

    # --- a deployment ----------------------------------------------------------------------------------------------

    def begin_step(self) -> None: ...

    def watch(self) -> None: ...

    def take_renewed(self) -> BitMap:
        renewed, self.renewed = self.renewed, BitMap()
        return renewed

    def agents(self) -> dict[int, str]:
        return {c: f"agent-{c}" if c in self.elsewhere else "here" for c in (*self.publishers, *self.subscribers)}

    @property
    def deaths(self) -> dict[str, BitMap]:
        return {"SIGKILL": self.died}

    def alive(self, ids: BitMap) -> BitMap:
        return ids - self.died

    def evict(self, clients: BitMap) -> None:
        self.evicted += clients

    # --- a system and its specification ----------------------------------------------------------------------------

    def delivery(self, _: model.Scenario, settings: model.Settings) -> DeliveryRules:
        log, group = MessageLog(read_after=self.reads_stored), f"group-{settings.message_size}"
        return DeliveryRules("its queue", group=group, log_acknowledges=True, log=log)

    def configure(self, settings: model.Settings) -> dict[str, object]:
        return {"where": "here"}

    def finish(self) -> dict[str, object]:
        return {"until": "now"}

    def proof(self, settings: model.Settings) -> Hashable:
        return self.proof_of(settings)

    def log_end(self, settings: model.Settings) -> int | None:
        return self.log.pop(0) if self.log else None

    # --- the clients -----------------------------------------------------------------------------------------------

    def _lost(self, client: int, message: wire.FromController | wire.FromClient) -> bool:
        kind = (client, type(message), getattr(message, "epoch", 0), getattr(message, "command", ""))
        self._counts[kind] += 1
        return self.loses(client, message, self._counts[kind])

    def _send(self, client: int, answer: wire.FromClient, after_s: float) -> None:
        """The client's relay sends it that much later, unless it is lost."""
        if not self._lost(client, answer):
            self._sent += 1
            heapq.heappush(self._coming, (self.now_ns + round(after_s * 1e9), self._sent, client, answer))

    def _hear(self, client: int, answer: wire.FromClient) -> None:
        self._seq += 1
        frame, payload = framed(msgspec.structs.replace(answer, seq=self._seq))
        self.roster.receive(b"%d" % client, frame, self.now_ns, payload)

    def _answers(self, client: int, message: wire.FromController) -> Iterable[tuple[wire.FromClient, float]]:
        publishes = client in self.publishers
        of: dict[str, Any] = {name: getattr(message, name, 0) for name in ("epoch", "number")}
        match message:
            case wire.Configure():
                yield wire.Ack(ids=[client], seq=1, **of, command="configure"), 0
                if publishes or message.probe:
                    yield wire.Ready(ids=[client], seq=1, **of), 0
            case wire.Start():
                self._started[client] = message.epoch
                acknowledged = wire.Ack(ids=[client], seq=1, **of, command="start")
                yield acknowledged, self.start_ack_after_s(client)
                if publishes and self.all_sent_after_s is not None:
                    done_ns = message.start_at_ns + round(self.all_sent_after_s * 1e9)
                    after_s = (StepClock(message.clock).monotonic_ns_of(done_ns) - self.now_ns) / 1e9
                    progress = wire.Progress(ids=[client], seq=1, epoch=message.epoch, messages=500, time_ns=done_ns)
                    yield progress, after_s
            case wire.Stop() if publishes and self._started.get(client) == message.epoch:
                yield wire.Report(ids=[client], seq=1, **of, publisher=_sent(self.unacknowledged)), 0
            case wire.Stop() if not publishes:
                yield wire.Ack(ids=[client], seq=1, **of, command="stop"), 0
            case wire.Finish() if not publishes:
                yield wire.Batch(ids=[client], seq=1, epoch=message.epoch, columns=[]), self.report_after_s(client)
            case wire.Ping():
                yield wire.Ack(ids=[client], seq=1, epoch=0, command="ping", echo=message.time_ns), 0


def _sent(unacknowledged: list[tuple[int, int]]) -> model.PublisherReport:
    golden = FROM_CLIENT["report-publisher-zmq"]
    assert isinstance(golden, wire.Report)
    return replace(golden.publisher, unacknowledged=unacknowledged)


def _received() -> model.SubscriberReport:
    ledger = model.LedgerCounts(publisher=PUBLISHER, received=9, in_window=9, missing=0)
    return model.SubscriberReport([ledger], 1, 9, 1, 1, 216, 0, model.Histogram(), model.ProcessUsage())
