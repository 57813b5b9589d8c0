"""Everything that is known of a measured step, before any figure is made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hydra.measure import rates
from hydra.measure.ceiling import Ceiling
from hydra.measure.servers import ServerFigures
from hydra.measure.step_columns import SystemColumns
from hydra.model import AgentClock, Figure, HostSample, PublisherReport, Role, StepPlan, ThreadSample
from hydra.wire.subscriber_table import SubscriberTable


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that is known of a measured step.

    Attributes:
        plan: what was asked for.
        queue, direct: of the system, as in :class:`~hydra.measure.verdict.Evidence`.
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
        servers: what servers counted in the window, see :func:`hydra.measure.servers.between`.
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
