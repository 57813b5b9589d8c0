"""What limited a point, and the figures that say so; whether it was the clients' own code. Pure.

Messages pass the publisher's loop, its library's threads, the network, servers (where a system has them), the network
again, and the subscribers. Whatever cannot keep up is at work all the time; what stands before it waits or drops, and
what stands behind it is idle. So the evidence is what each stage *wanted*: a thread that ran or had to wait for a core
all the time could do no more, whether other work took the core, or a quota.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra.events.value_formatting import number
from hydra.model import Role

BUSY_PCT: Final = 90.0
"""A thread that wanted a core for so much of the time could do no more: the rest is what sampling blurs."""
STARVED_PCT: Final = 60.0
STARVED_RATIO: Final = 20.0
"""A thread that waits for a core for so much of the time, and so many times as long as it runs, is starved of CPU: the
kernel counts a wait when it ends, and the waits of a quota are long, so that some of them are missing."""
BUSY_HOST_PCT: Final = 92.0
"""Mean use of all cores above which a host has no CPU left: the rest is what sampling and the kernel hide."""
BUSY_NETWORK: Final = 0.9
LOSSY_NETWORK: Final = 0.01
"""Part of the segments that TCP sends once more from which on the way is full, or lossy: a loss slows TCP down."""
WAITING: Final = 0.5
"""Part of the connections and of the time from which on what they waited for is what held them up."""
BLOCKED_SHARE: Final = 0.05
HELD_UP: Final = 0.01
"""Part of the window from which on waiting for a full queue may be why a publisher was too slow."""
OTHERS_PCT: Final = 5.0
"""Part of a host's CPU from which on other processes are named."""
IDLE_SERVER: Final = 0.1
"""A server whose threads for requests are idle for less of the time takes no more of them."""
CROWDED_PCT: Final = 30.0
"""A thread that waits for a core for so much of the time shares its host with more than the host can do."""
SUBSCRIBERS_CPU: Final = 0.5
"""The part of a host's CPU from which on it is subscribers who take it from others."""

REQUESTED: Final = "requested rate"
PUBLISHER: Final = "publisher"
NETWORK: Final = "network"
SERVER: Final = "server"
SUBSCRIBERS: Final = "subscriber hosts"
UNDECIDED: Final = "undecided: "


@dataclass(frozen=True, slots=True)
class BusyWorker:
    """The thread of several processes that wanted most CPU: for what part of the time (%) it ran, and waited to."""

    name: str
    run_pct: float
    wait_pct: float

    @property
    def wanted_pct(self) -> float:
        """The part of the time in which it had something to do."""
        return self.run_pct + self.wait_pct

    @property
    def busy(self) -> bool:
        """Whether it could do no more."""
        return self.at_work or self.starved

    @property
    def at_work(self) -> bool:
        """Whether it wanted a core all the time: without that nobody knows that more would have been sent."""
        return self.wanted_pct >= BUSY_PCT

    @property
    def starved(self) -> bool:
        """Whether it hardly ever got a core when it had something to do, as under a small quota."""
        return self.wait_pct >= STARVED_PCT and self.wait_pct >= STARVED_RATIO * self.run_pct

    def __str__(self) -> str:
        waited = f", waited {self.wait_pct:.0f} % for CPU" if self.wait_pct >= 1 else ""
        return f"{self.name} ran {self.run_pct:.0f} %{waited}"


@dataclass(frozen=True, slots=True)
class TcpWaits:
    """What the TCP connections out of several processes waited for, over the window.

    ``reader`` and ``network`` are parts (0 to 1) of the connections and of the time.
    """

    connections: float
    reader: float
    network: float
    unsent_bytes: float

    def __str__(self) -> str:
        return (
            f"{number(self.connections)} connections waited {100 * self.reader:.0f} % for their reader, "
            f"{100 * self.network:.0f} % for the network, {number(self.unsent_bytes / 1e6)} MB unsent"
        )


@dataclass(frozen=True, slots=True)
class BottleneckEvidence:
    """What is known of a step. What was not measured is None.

    Attributes:
        queue: what fills when the system is too slow, such as ``high-water mark``.
        direct: no server stands between publishers and subscribers: only subscribers empty the queue.
        held: the publishers sent what was due; None at rate ``max``.
        behind: subscribers lost messages, or got them later than the rule of a passing rate allows.
        losing: some messages were lost or never came, however few.
        blocked_share: part of the window in which a publisher waited for a full queue.
        lag_p99_ms: how late the publishers sent; None at rate ``max``.
        publisher: of the publishers' processes.
        library: the same without the first thread of each process, which is the one that sends.
        subscribers: of the subscribers' processes, or some of them.
        server: of the servers' processes.
        server_idle: part of the time in which the busiest server's threads for requests had none.
        out_of_publishers, out_of_servers: their connections.
        subscriber_host_pct: mean CPU use of the busiest host with subscribers, steal included.
        subscribers_cpu: part of the CPU of that host (0 to 1) that they used themselves.
        steal_pct: part of the CPU that hypervisors gave to others; the host that it took most of.
        others_pct: part of the CPU of that host that processes used which are no clients or servers of the run.
        crossing: messages cross a network: not where all clients are on one host and no server is between them.
        network_share: part of its speed that the busiest interface of any host used.
        segments_retransmitted: part of its TCP segments that a host with clients or servers sent once more, the
            highest.
        drops: packets that interfaces dropped.
    """

    queue: str
    direct: bool
    held: bool | None
    behind: bool
    losing: bool = False
    blocked_share: float = 0.0
    lag_p99_ms: float | None = None
    publisher: BusyWorker | None = None
    library: BusyWorker | None = None
    subscribers: BusyWorker | None = None
    server: BusyWorker | None = None
    server_idle: float | None = None
    out_of_publishers: TcpWaits | None = None
    out_of_servers: TcpWaits | None = None
    subscriber_host_pct: float | None = None
    subscribers_cpu: float | None = None
    steal_pct: float | None = None
    others_pct: float | None = None
    network_share: float | None = None
    segments_retransmitted: float | None = None
    drops: int = 0
    crossing: bool = True

    @property
    def stuck(self) -> bool:
        """Whether something behind the publishers' loops did not keep up."""
        return self.behind or self.blocked_share >= BLOCKED_SHARE

    @property
    def out_to_subscribers(self) -> TcpWaits | None:
        """The connections that end at subscribers."""
        return self.out_of_publishers if self.direct else self.out_of_servers


@dataclass(frozen=True, slots=True)
class Verdict:
    """``cause`` is what limited the point, or ``undecided: A or B``; ``evidence`` the figures that say so."""

    cause: str
    evidence: str


def verdict(evidence: BottleneckEvidence) -> Verdict:
    """What limited the point, with the figures for it.

    The cause is ``requested rate``, ``publisher``, ``network``, ``server``, ``subscriber hosts``, the name of the
    queue where nobody was busy and it was full all the same, or ``undecided:`` and those that come into question.
    """
    causes = _causes(evidence)
    said = "; ".join(_figures(evidence, causes))
    return Verdict(causes[0] if len(causes) == 1 else UNDECIDED + " or ".join(causes), said)


def _causes(e: BottleneckEvidence) -> list[str]:
    if e.held and not e.behind:
        # A loss that is just within the target is the limit's all the same, where one shows.
        return (_of_connections(e) or list(_suspects(e)) if e.losing else []) or [REQUESTED]
    if not e.stuck:
        return _slow(e)
    found = _of_connections(e) or list(_suspects(e))
    if found:
        return found
    lossy = [NETWORK] if e.crossing and _may_be_lossy(e) else []
    if e.direct or e.queue == SERVER or e.server is not None or e.server_idle is not None:
        return [*lossy, *([] if _seen(e) else [SUBSCRIBERS]), e.queue]
    return [*lossy, SERVER, e.queue]


def _slow(e: BottleneckEvidence) -> list[str]:
    """Why the publishers sent less than they were asked for, though everything arrived at once."""
    if _crowded_out(e):
        return [SUBSCRIBERS]
    at_work = any(worker is not None and worker.at_work for worker in (e.publisher, e.library))
    behind_them = [cause for cause in (_of_connections(e) or _suspects(e)) if cause != PUBLISHER]
    if at_work:
        return [PUBLISHER, *behind_them] if e.blocked_share >= HELD_UP else [PUBLISHER]
    # Nobody is known to be at work all the time: they waited, for a timer, an acknowledgement or somebody's answer.
    return behind_them or [PUBLISHER, e.queue if e.direct else SERVER]


def _of_connections(e: BottleneckEvidence) -> list[str]:
    """What the kernel says of each connection: it is about the very messages that are late."""
    to_subscribers = e.out_to_subscribers
    if _reader_waited_for(to_subscribers) or (not e.crossing and _waits(to_subscribers)):
        return [SUBSCRIBERS]
    if _waits_for_network(e):
        return [NETWORK]
    if _waits(to_subscribers):
        return [SUBSCRIBERS, NETWORK]
    if not e.direct and _reader_waited_for(e.out_of_publishers):
        return [SERVER]
    return []


def _suspects(e: BottleneckEvidence) -> Iterator[str]:
    """Whoever could do no more, where something did not keep up."""
    # The loop itself is behind, or a thread of its library, which it only hands messages to.
    loop = e.publisher if e.held is False and e.blocked_share < BLOCKED_SHARE else None
    if any(worker is not None and worker.at_work for worker in (loop, e.library)):
        yield PUBLISHER
    if e.crossing and (e.network_share or 0.0) >= BUSY_NETWORK:
        yield NETWORK
    if (e.server is not None and e.server.busy) or (e.server_idle is not None and e.server_idle <= IDLE_SERVER):
        yield SERVER
    if e.subscribers.busy if e.subscribers is not None else (e.subscriber_host_pct or 0.0) >= BUSY_HOST_PCT:
        yield SUBSCRIBERS


def _reader_waited_for(flow: TcpWaits | None) -> bool:
    return flow is not None and flow.reader >= WAITING


def _waits(flow: TcpWaits | None) -> bool:
    """Whether they waited for anything: on one host that can only be the reader, who answers late."""
    return flow is not None and flow.reader + flow.network >= WAITING


def _waits_for_network(e: BottleneckEvidence) -> bool:
    flows = (e.out_of_publishers, e.out_of_servers)
    return e.crossing and any(flow is not None and flow.network >= WAITING for flow in flows)


def _may_be_lossy(e: BottleneckEvidence) -> bool:
    """Whether nothing but segments that were sent again speaks of the network, and nothing against it.

    A link that is known to be idle, or connections that did not wait for it, held nothing up: some segments are sent
    again on every link.
    """
    flows = [flow for flow in (e.out_of_publishers, e.out_of_servers) if flow is not None]
    idle = bool(flows) or (e.network_share is not None and e.network_share < WAITING)
    return (e.segments_retransmitted or 0.0) >= LOSSY_NETWORK and not idle


def _crowded_out(e: BottleneckEvidence) -> bool:
    """Whether the publishers had to wait for CPU that subscribers used."""
    if (e.subscriber_host_pct or 0.0) < BUSY_HOST_PCT or (e.subscribers_cpu or 0.0) < SUBSCRIBERS_CPU:
        return False
    return e.publisher is not None and e.publisher.wait_pct >= CROWDED_PCT


def _seen(e: BottleneckEvidence) -> bool:
    """Whether it is known how busy subscribers were: only then is nobody busy."""
    return e.subscribers is not None or e.subscriber_host_pct is not None


def _figures(e: BottleneckEvidence, causes: list[str]) -> Iterator[str]:
    """What was measured, what speaks for the causes first."""
    if e.held and not e.behind:
        yield "the rate was held and passed" + (", though messages were lost" if e.losing else "")
    elif not e.stuck and not e.blocked_share:
        yield "everything arrived"
    else:
        arrived = "" if e.stuck else "everything arrived; "
        blocked = f"publishers were blocked {100 * e.blocked_share:.0f} % of the time" if e.blocked_share else ""
        yield f"{arrived}{blocked}" if blocked else "subscribers lost messages or were behind"
    of = {
        PUBLISHER: list(_of_publishers(e)),
        NETWORK: list(_of_network(e)),
        SERVER: list(_of_servers(e)),
        SUBSCRIBERS: list(_of_subscribers(e)),
    }
    for stage in sorted(of, key=lambda stage: stage not in causes):
        yield from of[stage]


def _of_publishers(e: BottleneckEvidence) -> Iterator[str]:
    if e.publisher is not None:
        yield f"publishers: {e.publisher}"
    if e.library is not None and e.library != e.publisher:
        yield f"their library: {e.library}"
    if e.lag_p99_ms is not None:
        yield f"schedule lag p99 {number(e.lag_p99_ms)} ms"


def _of_network(e: BottleneckEvidence) -> Iterator[str]:
    if e.out_of_publishers is not None:
        yield f"publishers' {e.out_of_publishers}"
    if e.out_of_servers is not None:
        yield f"servers' {e.out_of_servers}"
    if e.network_share is not None:
        yield f"busiest link {_two_digits(100 * e.network_share)} % of its speed"
    if e.segments_retransmitted is not None:
        yield f"TCP sent {_two_digits(100 * e.segments_retransmitted)} % again"
    if e.drops:
        yield f"interfaces dropped {e.drops:,} packets"


def _of_servers(e: BottleneckEvidence) -> Iterator[str]:
    if e.server_idle is not None:
        yield f"servers' request threads idle {100 * e.server_idle:.0f} %"
    if e.server is not None:
        yield f"servers: {e.server}"


def _of_subscribers(e: BottleneckEvidence) -> Iterator[str]:
    if e.subscribers is not None:
        yield f"subscribers: {e.subscribers}"
    if e.subscriber_host_pct is not None:
        stolen = f", {e.steal_pct:.0f} % stolen" if e.steal_pct is not None and e.steal_pct >= 1 else ""
        others = e.others_pct if e.others_pct is not None and e.others_pct >= OTHERS_PCT else None
        by = "" if others is None else f", about {others:.0f} % by other processes"
        yield f"subscribers' hosts {e.subscriber_host_pct:.0f} % busy{stolen}{by}"


def _two_digits(value: float) -> str:
    return number(float(f"{value:.2g}"))


NEAR: Final = 0.9
"""From this part of its ceiling on, a figure is the generator's."""
CLIENTS_SHARE: Final = 0.5
"""The part of a host's CPU from which on clients, and not servers or others, used it up."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What so many clients of one role can do together on one host without a system, messages/s.

    ``language`` is what their loops are written in: ``python`` or ``native``.
    """

    language: str
    role: Role
    clients: int
    message_size: int
    pps: float


def ceiling(measured: Iterable[Ceiling], language: str, role: Role, clients: int, message_size: int) -> float | None:
    """The ceiling of so many clients with messages of this size; None where none was measured.

    Between those that were measured it is interpolated, sizes and counts on logarithmic scales; beyond them it is that
    of the nearest.
    """
    sizes: dict[int, list[Ceiling]] = {}
    for each in measured:
        if (each.language, each.role) == (language, role):
            sizes.setdefault(each.clients, []).append(each)
    if not sizes or clients < 1 or message_size < 1:
        return None
    of_counts = {count: _between(its, lambda c: c.message_size, message_size) for count, its in sizes.items()}
    points = [Ceiling(language, role, count, message_size, pps) for count, pps in of_counts.items()]
    return _between(points, lambda c: c.clients, clients)


def _between(points: Sequence[Ceiling], at: Callable[[Ceiling], int], where: int) -> float:
    ordered = sorted(points, key=at)
    found = np.interp(np.log(where), np.log([at(p) for p in ordered]), np.log([p.pps for p in ordered]))
    return float(np.exp(found))


def limited(
    reached: Iterable[tuple[float | None, float | None]], host_pct: float | None, clients_share: float, busy_pct: float
) -> bool | None:
    """Whether the generator is what was measured; None: nothing says so, and no ceiling says that it was not.

    Args:
        reached: figures, each with its ceiling.
        host_pct: mean CPU use of a host with clients.
        clients_share: the part of its CPU (0 to 1) that clients used.
        busy_pct: from which use on it has none left.
    """
    known = [(figure, most) for figure, most in reached if figure is not None and most is not None]
    near = any(figure >= NEAR * most for figure, most in known)
    if near or ((host_pct or 0.0) >= busy_pct and clients_share >= CLIENTS_SHARE):
        return True
    return False if known else None
