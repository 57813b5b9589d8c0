"""The stage that limited a step, with the figures behind that verdict, and whether the clients themselves did. Pure.

Messages pass the publisher's loop, its library's threads, the network, servers (if the system has them), the network
again, and the subscribers. The stage that cannot keep up is busy all the time; stages before it wait or drop messages,
and stages after it are idle. So the evidence is the demand of each stage for CPU: a thread that ran or waited for a
core all the time could do no more, whether other work or a quota took the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hydra.events.value_formatting import number
from hydra.measure.acceptance import Acceptance
from hydra.measure.stage_load import CROWDED_PCT, BusyWorker, TcpWaits
from hydra.model import Evidence, Figure
from hydra.model.system_reports import BY_SERVER

BUSY_HOST_PCT: Final = 92.0
"""The least mean use of all cores of a host without free CPU; sampling and the kernel hide the rest."""
BUSY_NETWORK: Final = 0.9
LOSSY_NETWORK: Final = 0.01
"""The least share of retransmitted segments that shows a full or lossy network; a loss slows TCP down."""
WAITING: Final = 0.5
"""The least share of the connections' time in which they waited for something that delayed them."""
BLOCKED_SHARE: Final = 0.05
HELD_UP: Final = 0.01
"""The least share of the window in which waiting for a full queue may have slowed a publisher."""
OTHERS_PCT: Final = 5.0
"""The least share of a host's CPU at which other processes are mentioned."""
IDLE_SERVER: Final = 0.1
"""A server whose request threads are idle for at most this share of the time can accept no more requests."""
CROWDED_OUT_PCT: Final = 30.0
"""A thread that waits for a core for at least this share of the time is on an overloaded host."""
SUBSCRIBERS_CPU: Final = 0.5
"""The least share of a host's CPU at which subscribers take CPU from other processes."""

REQUESTED: Final = "requested rate"
PUBLISHER: Final = "publisher"
NETWORK: Final = "network"
SERVER: Final = "server"
SUBSCRIBERS: Final = "subscriber hosts"
HOST: Final = "host CPU"
"""A server, or clients, that waited for CPU that clients or other processes of their host used."""
EVENTS: Final = "planned events"
READ_LIMIT: Final = "receive_rate"
NOT_LET_IN: Final = "clients not let in"
LOST_CONNECTIONS: Final = "lost connections"
"""What the run itself did, and clients without a connection: these explain what is lost or late before any stage."""
UNDECIDED: Final = "undecided: "
NO_STAGE: Final = "no stage was busy"
_BETWEEN: Final = " or "

LOCAL: Final = frozenset({PUBLISHER, SUBSCRIBERS, HOST})
"""The causes at the hosts of the run's clients, which another machine may not have."""
OTHERS_SHARE: Final = 25.0
"""The least share (%) of the CPU of a full host at which its other processes may have delayed whatever waited there."""


@dataclass(frozen=True, slots=True)
class BottleneckEvidence:
    """The evidence of a step for its verdict. Values that were not measured are None.

    Attributes:
        queue: the name of the queue that fills if the system is too slow, such as ``high-water mark``.
        direct: whether no server is between publishers and subscribers, so only subscribers empty the queue.
        held: whether the publishers sent the messages due; None at rate ``max``.
        behind: whether subscribers lost messages, or received them later than a passing rate allows.
        losing: whether any message was lost or did not arrive.
        dropped: whether messages are known to be lost; undrained and unknown ones are not.
        planned: what the run itself did, and clients without a connection, as causes.
        shut_out: whether a limit of their own host, and nothing else, kept subscribers from connecting.
        unaccepted: what the system accepted, if the row fails by the messages that it did not accept.
        blocked_share: the share of the window in which a publisher waited for a full queue.
        lag_p99_ms: 99th percentile of the publishers' lag (send time − due time); None at rate ``max``.
        publisher: the busiest thread of the publishers' processes.
        library: the busiest thread except the first of each process, which is the sending one.
        subscribers: the busiest thread of the subscribers' processes, or of some of them.
        subscribers_library: the busiest of these threads except the first of each process.
        server: the busiest thread of the servers' processes.
        server_host_pct, server_others_pct: the mean CPU use of its host, and the part by other processes.
        server_host_non_server_pct: the part by clients and other processes.
        server_idle: the share of the time in which the request threads of the busiest server were idle.
        out_of_publishers, out_of_servers: the waits of their outgoing connections.
        subscriber_host_pct: mean CPU use of the busiest host with subscribers, steal included.
        subscribers_cpu: the share of the CPU of that host (0 to 1) that subscribers used.
        steal_pct: the share of the CPU that hypervisors gave to other guests; the host with the most.
        others_pct: the share of the CPU of that host that processes other than clients and servers of the run used.
        crossing: whether messages cross a network: false if all clients are on one host without a server between them.
        network_share: the used share of the speed of the busiest interface of any host.
        segments_retransmitted: the largest share of retransmitted TCP segments of any host with clients or servers.
        drops: the number of packets that interfaces dropped.
    """

    queue: str
    direct: bool
    held: bool | None
    behind: bool
    losing: bool = False
    dropped: bool = False
    planned: tuple[str, ...] = ()
    shut_out: bool = False
    unaccepted: Acceptance | None = None
    blocked_share: float = 0.0
    lag_p99_ms: float | None = None
    publisher: BusyWorker | None = None
    library: BusyWorker | None = None
    subscribers: BusyWorker | None = None
    subscribers_library: BusyWorker | None = None
    server: BusyWorker | None = None
    server_host_pct: float | None = None
    server_others_pct: float | None = None
    server_host_non_server_pct: float | None = None
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
        """Whether a stage after the publishers' loops did not keep up."""
        return self.behind or self.blocked_share >= BLOCKED_SHARE

    @property
    def out_to_subscribers(self) -> TcpWaits | None:
        """The connections that end at subscribers."""
        return self.out_of_publishers if self.direct else self.out_of_servers

    @property
    def server_crowded(self) -> bool:
        """Whether the server waited for a core that clients or others used, or may have done so.

        A thread that waits on a host without free CPU, much of which others use, may wait for its quota or for them.
        """
        if self.server is None:
            return False
        waits = max(self.server.wait_pct, self.server.quota_pct) >= CROWDED_PCT
        full = (self.server_host_pct or 0.0) >= BUSY_HOST_PCT and (self.server_others_pct or 0.0) >= OTHERS_SHARE
        # On a host of its own, threads of a server wait for each other.
        alone = self.server_host_non_server_pct is not None and self.server_host_non_server_pct < CROWDED_PCT
        return (self.server.crowded and not alone) or (waits and full)

    @property
    def full(self) -> bool:
        """Whether the queue is known to have been full: messages were dropped, or a publisher waited for it."""
        return self.dropped or self.blocked_share >= BLOCKED_SHARE


@dataclass(frozen=True, slots=True)
class Causes(Evidence):
    """The stages that limited a step, or may have: one, several (``undecided: A or B``), or none that was busy.

    A cause is one of those above, or the name of the queue if it was full although no stage was busy.
    """

    stages: tuple[str, ...]

    def __str__(self) -> str:
        return self.stages[0] if len(self.stages) == 1 else UNDECIDED + (_BETWEEN.join(self.stages) or NO_STAGE)


NOT_LIMITED: Final = Causes((REQUESTED,))
"""The verdict of a step that held the requested rate."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limited a step.

    Attributes:
        causes: the stages.
        evidence: the figures behind it.
        local: the cause at the hosts of the run, as in :data:`LOCAL`; None: none is known.
    """

    causes: Causes
    evidence: str
    local: str | None = None


def limiting(verdicts: Iterable[Figure]) -> tuple[str, ...]:
    """The stages in the verdicts of a row or of its repeats, except the requested rate."""
    stages = (stage for each in verdicts if isinstance(each, Causes) for stage in each.stages)
    return tuple(dict.fromkeys(stage for stage in stages if stage != REQUESTED))


def verdict(evidence: BottleneckEvidence) -> Verdict:
    """The stages that limited the step, with the figures behind that verdict."""
    causes = _causes_of(evidence)
    return Verdict(Causes(tuple(causes)), "; ".join(_figures(evidence, causes)), _local_limit(evidence, causes))


def _causes_of(e: BottleneckEvidence) -> list[str]:
    causes = _causes(e) if e.unaccepted is None else _of_unaccepted(e, e.unaccepted)
    if e.server_crowded and not (e.unaccepted is not None and e.unaccepted.reason in BY_SERVER):
        causes = [HOST if cause == SERVER else cause for cause in causes]
    # Nothing was busy and nothing is known to be dropped, as if all were late for a reason that has no figure.
    return [] if causes == [e.queue] and e.queue != SERVER and not e.full else list(dict.fromkeys(causes))


def _local_limit(e: BottleneckEvidence, causes: list[str]) -> str | None:
    """The cause at the hosts of the run that limited or delayed the step; None: none is known.

    A server that is a cause itself needs no other one.
    """
    if e.shut_out:
        return SUBSCRIBERS
    if SERVER in causes or e.planned:
        return None
    if local := [cause for cause in causes if cause in LOCAL]:
        return local[0]
    workers = (e.publisher, e.server, e.subscribers)
    return HOST if e.server_crowded or any(worker is not None and worker.crowded for worker in workers) else None


def _causes(e: BottleneckEvidence) -> list[str]:
    if e.held and not e.behind and not e.losing:
        return [REQUESTED]
    if e.planned and (e.held is False or e.behind or e.losing):
        # What the run does on purpose is the cause; clients without a connection may have one themselves.
        on_purpose = not set(e.planned) <= {NOT_LET_IN, LOST_CONNECTIONS}
        return [*e.planned, *([] if on_purpose else _of_connections(e) or _suspects(e))]
    if e.held and not e.behind:
        # A loss within the target has the same cause as a larger one, if a cause is visible.
        return _of_connections(e) or list(_suspects(e)) or [REQUESTED]
    if not e.stuck:
        return _slow(e)
    found = _of_connections(e) or list(_suspects(e))
    if found:
        return found
    lossy = [NETWORK] if e.crossing and _may_be_lossy(e) else []
    if e.direct or e.queue == SERVER or e.server is not None or e.server_idle is not None:
        return [*lossy, *([] if _seen(e) else [SUBSCRIBERS]), e.queue]
    return [*lossy, SERVER, e.queue]


def _of_unaccepted(e: BottleneckEvidence, found: Acceptance) -> list[str]:
    """The causes if messages were not accepted: the server, unless it gave no reason and something else is known."""
    if found.reason in BY_SERVER:
        return [SERVER]
    if e.planned:
        return list(e.planned)
    return [cause for cause in (_of_connections(e) or _suspects(e)) if cause != PUBLISHER] or [SERVER]


def _slow(e: BottleneckEvidence) -> list[str]:
    """The causes if publishers sent less than requested, although everything arrived in time."""
    if _crowded_out(e):
        return [SUBSCRIBERS]
    at_work = any(worker is not None and worker.at_work for worker in (e.publisher, e.library))
    behind_them = [cause for cause in (_of_connections(e) or _suspects(e)) if cause != PUBLISHER]
    if at_work:
        return [PUBLISHER, *behind_them] if e.blocked_share >= HELD_UP else [PUBLISHER]
    # No thread is known to be busy all the time: the publishers waited for a timer, an acknowledgement or a reply.
    return behind_them or [PUBLISHER, e.queue if e.direct else SERVER]


def _of_connections(e: BottleneckEvidence) -> list[str]:
    """The causes by the kernel's figures of each connection, which concern the late messages themselves."""
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
    """The stages that could do no more, if a stage did not keep up."""
    # Either the sending loop is too slow, or a thread of the library to which it only passes messages.
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
    """Whether the connections waited for anything; on one host that can only be a slow reader."""
    return flow is not None and flow.reader + flow.network >= WAITING


def _waits_for_network(e: BottleneckEvidence) -> bool:
    flows = (e.out_of_publishers, e.out_of_servers)
    return e.crossing and any(flow is not None and flow.network >= WAITING for flow in flows)


def _may_be_lossy(e: BottleneckEvidence) -> bool:
    """Whether retransmitted segments are the only evidence for the network, and there is none against it.

    A link that is known to be idle, or connections that did not wait for the network, delayed nothing; every link has
    some retransmitted segments.
    """
    flows = [flow for flow in (e.out_of_publishers, e.out_of_servers) if flow is not None]
    idle = bool(flows) or (e.network_share is not None and e.network_share < WAITING)
    return (e.segments_retransmitted or 0.0) >= LOSSY_NETWORK and not idle


def _crowded_out(e: BottleneckEvidence) -> bool:
    """Whether the publishers had to wait for CPU that subscribers used."""
    if (e.subscriber_host_pct or 0.0) < BUSY_HOST_PCT or (e.subscribers_cpu or 0.0) < SUBSCRIBERS_CPU:
        return False
    return e.publisher is not None and e.publisher.wait_pct >= CROWDED_OUT_PCT


def _seen(e: BottleneckEvidence) -> bool:
    """Whether the load of subscribers is known."""
    return e.subscribers is not None or e.subscriber_host_pct is not None


def _figures(e: BottleneckEvidence, causes: list[str]) -> Iterator[str]:
    """The measured figures, with those for the causes first."""
    if e.unaccepted is not None:
        reason = f" ({e.unaccepted.reason})" if e.unaccepted.reason else ""
        yield f"{e.unaccepted.unaccepted:,} of {e.unaccepted.sent:,} messages were not accepted{reason}"
    elif e.held and not e.behind:
        yield "the rate was held and passed" + (", though messages were lost" if e.losing else "")
    elif not e.stuck and not e.blocked_share:
        yield "everything arrived"
    else:
        arrived = "" if e.stuck else "everything arrived; "
        blocked = f"publishers were blocked {100 * e.blocked_share:.0f} % of the time" if e.blocked_share else ""
        yield f"{arrived}{blocked}" if blocked else "subscribers lost messages or received them late"
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
        yield f"TCP retransmitted {_two_digits(100 * e.segments_retransmitted)} %"
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


CLIENTS_SHARE: Final = 0.5
"""The least share of a host's CPU at which clients, not servers or others, are the cause of a busy host."""


def generator_limited(evidence: BottleneckEvidence | None, *, used_up: bool) -> bool | None:
    """Whether the clients limited the step instead of the system; None: the evidence does not decide it.

    Args:
        evidence: the evidence of the step's verdict; None: there is no verdict.
        used_up: whether the clients used up the CPU of a host.
    """
    causes = _causes_of(evidence) if evidence is not None else []
    if causes == [REQUESTED]:
        return False
    if used_up:
        return True
    found = {_clients_limited(evidence, cause) for cause in causes} if evidence is not None else set()
    return found.pop() if len(found) == 1 else None


def _clients_limited(e: BottleneckEvidence, cause: str) -> bool | None:
    """Whether a cause is the clients' demand for CPU; None: a cause at their hosts, without a thread that shows it."""
    if cause == HOST:
        return None
    if cause not in (PUBLISHER, SUBSCRIBERS):
        return False
    worker, library = (e.publisher, e.library) if cause == PUBLISHER else (e.subscribers, e.subscribers_library)
    # Without a server between publishers and subscribers, the library in the clients is the measured system.
    if e.direct and library is not None and library.at_work:
        return False
    return True if worker is not None and (worker.at_work or (cause == SUBSCRIBERS and worker.starved)) else None
