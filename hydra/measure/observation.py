"""Everything that is known of a measured step, before any figure is made of it; what servers counted in its window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from hydra.measure import rates
from hydra.measure.step_columns import SystemColumns
from hydra.measure.verdict import Ceiling
from hydra.model import AgentClock, Figure, HostSample, PublisherReport, Role, StepPlan, ThreadSample
from hydra.wire.subscriber_table import SubscriberTable

COUNTER: Final = "_total"
"""Suffix of a counter, which only grows; any other figure is a gauge."""
RATE: Final = "_per_s"
"""Suffix of a counter's growth a second."""
CPU: Final = "cpu_seconds" + RATE
"""The CPU time of a server's process."""

ServerFigures = Mapping[str, Mapping[str, float]]
"""Figures by their name, by the server's name."""


@dataclass(frozen=True, slots=True)
class ServerSample:
    """What the servers told at one moment (ns, any clock that both samples share)."""

    time_ns: int
    figures: ServerFigures = field(default_factory=dict)


def between(first: ServerSample, last: ServerSample) -> dict[str, dict[str, float]]:
    """The rates of the counters (``x_total`` becomes ``x_per_s``) and the means of the gauges, by server.

    Left out are servers that one sample lacks, and counters that began anew in between.
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


MEGABYTE: Final = 2**20
_IN: Final = ("in_bytes_per_s", "replication_in_bytes_per_s")
_OUT: Final = ("out_bytes_per_s", "replication_out_bytes_per_s")


def columns(servers: ServerFigures) -> dict[str, Figure]:
    """The columns of a row, each the mean over the servers that tell it; no columns where nobody tells anything."""
    if not servers:
        return {}
    return {
        "server_cpu_pct": _mean(servers, (CPU,), 100.0),
        "server_in_mb_s": _mean(servers, _IN, 1 / MEGABYTE),
        "server_out_mb_s": _mean(servers, _OUT, 1 / MEGABYTE),
        "server_messages_s": _mean(servers, ("messages_per_s",), 1.0),
    }


def _mean(servers: ServerFigures, names: tuple[str, ...], unit: float) -> float | None:
    told = [
        sum(its[name] for name in names if name in its)
        for its in servers.values()
        if any(name in its for name in names)
    ]
    return fmean(told) * unit if told else None


_IDLE: Final = "request_idle_seconds_per_s"


def idle(servers: ServerFigures) -> float | None:
    """The part of the time in which the busiest server's threads for requests had nothing to do; None: nobody tells."""
    told = [its[_IDLE] for its in servers.values() if _IDLE in its]
    return min(told, default=None)


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that is known of a measured step.

    Attributes:
        plan: what was asked for.
        queue, direct: of the system, as in :class:`~hydra.measure.verdict.BottleneckEvidence`.
        batch: how many messages travel together: the figure of the system's batch column.
        columns: what the system adds.
        publishers: ids of the publishers that were asked.
        subscribers: ids of the subscribers that were asked.
        publisher_reports: by id.
        subscriber_reports: a table; a subscriber without a row is dead or silent.
        dead: subscribers whose process ended in the step.
        deaths: of those, who ended in which way: ``SIGKILL``, ``exit code 3``.
        silent: subscribers that did not answer.
        cohort: subscribers of the step's cohort.
        group: the consumer group that the subscribers are members of, each message going to at least one; "": none.
        one_publisher: whether each subscriber listens to one publisher only.
        agents: the agent that each client was on when the step began.
        clocks: of each agent, the clock of its host; agents of one host have the same.
        window_ns: the step's start and stop on its clock, the early stop if there was one.
        received: messages that arrived outside the cohort in each whole second of the window (of a step beyond an hour,
            longer interval); empty where they are not kept, or are not meant to be alike.
        loss_target: the fraction of loss up to which a rate passes.
        steady: whether passing also asks that no backlog grows.
        last_words: messages that subscribers reported in their progress; it is all that is known of those
            without a report.
        hosts: samples by the name of the host: the controller's own, or the first agent there. Agents that share
            clocks and network namespace share samples.
        host_of: the name in ``hosts`` of each agent's host.
        threads: what groups told of their busiest threads and TCP connections, by agent.
        reading_ns: when subscribers were told to read what had been stored (the step's clock); None: they read while
            it was sent.
        log_growth: messages by which the servers' log grew; None: they keep none.
        log_acknowledges: whether nothing but that growth tells what the servers took.
        counted: whether the messages have no header, so that they can only be counted.
        servers: what servers counted in the window, see :func:`hydra.measure.observation.between`.
        ceilings: what clients of the run's languages can do at most on this host; none where they are on others.
        languages: what the clients of each role are written in, as ceilings name it.
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
    direct: bool = False
    columns: SystemColumns = field(default_factory=SystemColumns)
    dead: Collection[int] = frozenset()
    deaths: Mapping[str, Collection[int]] = field(default_factory=dict)
    silent: Collection[int] = frozenset()
    cohort: Collection[int] = frozenset()
    group: str = ""
    one_publisher: bool = False
    agents: Mapping[int, str] = field(default_factory=dict)
    clocks: Mapping[str, AgentClock] = field(default_factory=dict)
    loss_target: float = 0.0
    steady: bool = False
    hosts: Mapping[str, Sequence[HostSample]] = field(default_factory=dict)
    host_of: Mapping[str, str] = field(default_factory=dict)
    threads: Mapping[str, Sequence[ThreadSample]] = field(default_factory=dict)
    last_words: Mapping[int, int] = field(default_factory=dict)
    reading_ns: int | None = None
    log_growth: int | None = None
    log_acknowledges: bool = False
    counted: bool = False
    servers: ServerFigures = field(default_factory=dict)
    ceilings: Sequence[Ceiling] = ()
    languages: Mapping[Role, str] = field(default_factory=dict)

    @property
    def stored(self) -> bool:
        """Whether subscribers read what had been stored before."""
        return self.reading_ns is not None

    @property
    def window_s(self) -> float:
        """Length of the window in seconds."""
        return (self.window_ns[1] - self.window_ns[0]) / rates.SECOND_NS
