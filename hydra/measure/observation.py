"""The observations of a measured step, from which its figures are computed, and the servers' figures in its window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean
from typing import Final

from hydra.measure import rates
from hydra.measure.column import SystemColumns
from hydra.measure.connections import ConnectFacts
from hydra.model import (
    AgentClock,
    Figure,
    HostSample,
    MachineActivity,
    PublisherReport,
    StepPlan,
    ThreadSample,
    TimeSeriesFacts,
    TimeSeriesInterval,
)
from hydra.wire.subscriber_table import SubscriberTable

COUNTER: Final = "_total"
"""Suffix of a counter, which only grows; figures without it are gauges."""
RATE: Final = "_per_s"
"""Suffix of a counter's growth per second."""
CPU: Final = "cpu_seconds" + RATE
"""The CPU use of a server's process."""

ServerFigures = Mapping[str, Mapping[str, float]]
"""Figures by their name, by the name of the server."""


@dataclass(frozen=True, slots=True)
class ServerSample:
    """The servers' figures at one moment (ns, on any clock that compared samples share)."""

    time_ns: int
    figures: ServerFigures = field(default_factory=dict)


def between(first: ServerSample, last: ServerSample) -> dict[str, dict[str, float]]:
    """The rates of the counters (``x_total`` becomes ``x_per_s``) and the means of the gauges, by server.

    Servers that are not in both samples, and counters that were reset between them, are left out.
    """
    seconds = (last.time_ns - first.time_ns) / 1e9
    found: dict[str, dict[str, float]] = {}
    for server, figures in last.figures.items():
        before = first.figures.get(server)
        if before is None or seconds <= 0:
            continue
        its = found[server] = {}
        for name, value in figures.items():
            earlier = before.get(name)
            if earlier is None:
                continue
            if not name.endswith(COUNTER):
                its[name] = (earlier + value) / 2
            elif value >= earlier:
                its[name.removesuffix(COUNTER) + RATE] = (value - earlier) / seconds
    return found


def with_cpu(reported: ServerFigures, sampled: ServerFigures) -> ServerFigures:
    """The servers' own figures, and those of their processes if no server reports its CPU time.

    Args:
        reported: what servers report.
        sampled: the CPU use of the processes of some servers.
    """
    return reported if any(CPU in its for its in reported.values()) else {**sampled, **reported}


def mean_over(servers: ServerFigures, *names: str) -> float | None:
    """The mean, over the servers that report any of these figures, of their sum; None: none does."""
    sums = [
        sum(its[name] for name in names if name in its)
        for its in servers.values()
        if any(name in its for name in names)
    ]
    return fmean(sums) if sums else None


_IDLE: Final = "request_idle_seconds_per_s"


def idle(servers: ServerFigures) -> float | None:
    """The share of the time in which the request threads of the busiest server were idle; None: not reported."""
    shares = [its[_IDLE] for its in servers.values() if _IDLE in its]
    return min(shares, default=None)


SMOOTH: Final = "smooth"
"""The pacing of publishers that space their messages evenly."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The observations of a measured step.

    Attributes:
        plan: the plan of the step.
        queue, direct: those of the system, as in :class:`~hydra.measure.verdict.BottleneckEvidence`.
        batch: how many messages are sent together: the figure of the system's batch column.
        columns: the columns that the system adds.
        publishers: the ids of the step's publishers.
        subscribers: the ids of the step's subscribers.
        publisher_reports: the reports of publishers by id.
        subscriber_reports: the table of subscribers' reports; a subscriber without a row is dead or silent.
        dead: the ids of subscribers whose process ended in the step.
        deaths: the ids of dead subscribers by how they ended: ``SIGKILL``, ``exit code 3``.
        silent: the ids of subscribers that did not answer.
        cohort: the ids of subscribers in the step's cohort.
        group: the consumer group of the subscribers, of which at least one gets each message; "": none.
        one_publisher: whether each subscriber subscribes to one publisher only.
        pacing: how publishers space the messages of a numeric rate.
        agents: the agent of each client when the step began.
        clocks: the clock of each agent's host; agents of one host have the same clock.
        window_ns: the step's start and stop on its clock; the early stop if there was one.
        received: messages that arrived outside the cohort in each whole second of the window (in a longer interval if
            the step lasts more than an hour); empty if there is no time series, or the load changes.
        course: the time series, the intervals after the window included; empty if there is none.
        facts: the facts about it; None if there is none.
        held_back_s: the longest time by which the system's settings delay a message.
        outages: begin and end (s since the start of the window) of the events in which a server is not there.
        loss_target: the fraction of loss up to which a rate passes.
        steady: whether a rate passes only if no backlog grows.
        last_words: the messages in the last progress message of each subscriber, all that is known of those without a
            report.
        hosts: samples by the name of the host: the controller's own, or the first agent there. Agents that share
            clocks and network namespace share samples.
        host_of: the name in ``hosts`` of each agent's host.
        threads: samples of the groups' busiest threads and TCP connections, by agent.
        machines: what happened on each host apart from the run, by the name of the host.
        machine_of: the name of each agent's host, as in ``machines``.
        reading_ns: the time of the command to read stored messages (the step's clock); None: subscribers read while
            publishers send.
        log_growth: messages by which the servers' log grew; None: the servers keep no log.
        log_acknowledges: whether only that growth shows which messages the servers accepted.
        counted: whether the messages have no header, so they can only be counted.
        servers: the servers' figures in the window, see :func:`hydra.measure.observation.between`.
        connecting: how the subscribers connected; None: the step did not measure it.
        events: whether events or settings of the step end or disturb servers or clients, so connections may be lost and
            publishers may stop.
    """

    plan: StepPlan
    queue: str
    batch: Figure
    publishers: Collection[int]
    subscribers: Collection[int]
    publisher_reports: Mapping[int, PublisherReport]
    subscriber_reports: SubscriberTable
    window_ns: tuple[int, int]
    received: Sequence[int] = ()
    course: Sequence[TimeSeriesInterval] = ()
    facts: TimeSeriesFacts | None = None
    held_back_s: float = 0.0
    outages: Sequence[tuple[float, float]] = ()
    direct: bool = False
    columns: SystemColumns = field(default_factory=SystemColumns)
    dead: Collection[int] = frozenset()
    deaths: Mapping[str, Collection[int]] = field(default_factory=dict)
    silent: Collection[int] = frozenset()
    cohort: Collection[int] = frozenset()
    group: str = ""
    one_publisher: bool = False
    pacing: str = SMOOTH
    agents: Mapping[int, str] = field(default_factory=dict)
    clocks: Mapping[str, AgentClock] = field(default_factory=dict)
    loss_target: float = 0.0
    steady: bool = False
    hosts: Mapping[str, Sequence[HostSample]] = field(default_factory=dict)
    host_of: Mapping[str, str] = field(default_factory=dict)
    threads: Mapping[str, Sequence[ThreadSample]] = field(default_factory=dict)
    machines: Mapping[str, MachineActivity] = field(default_factory=dict)
    machine_of: Mapping[str, str] = field(default_factory=dict)
    last_words: Mapping[int, int] = field(default_factory=dict)
    reading_ns: int | None = None
    log_growth: int | None = None
    log_acknowledges: bool = False
    counted: bool = False
    servers: ServerFigures = field(default_factory=dict)
    connecting: ConnectFacts | None = None
    events: bool = False

    @property
    def explained(self) -> bool:
        """Whether something that the step asked for explains lost connections and stops of publishers."""
        return self.events or self.connecting is not None

    @property
    def stored(self) -> bool:
        """Whether subscribers read messages that were stored before."""
        return self.reading_ns is not None

    @property
    def window_s(self) -> float:
        """The length of the window in seconds."""
        return (self.window_ns[1] - self.window_ns[0]) / rates.SECOND_NS

    @property
    def rated_ns(self) -> tuple[int, int]:
        """The window by whose length rates are divided: at a constant rate until the interval of its last message ends.

        A publisher sends ceil(rate · duration) messages, and n messages take n / rate.
        """
        start_ns, stop_ns = self.window_ns
        rate = self.plan.settings.rate
        if rate == "max" or self.plan.load:
            return self.window_ns
        # Rounding of a float adds no interval.
        intervals = ceil((stop_ns - start_ns) * rate / rates.SECOND_NS - 1e-6)
        return start_ns, max(stop_ns, start_ns + round(intervals * rates.SECOND_NS / rate))
