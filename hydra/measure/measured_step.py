"""A measured step as typed parts, from which the columns of its row are computed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hydra.measure.acceptance import Acceptance
from hydra.measure.host_load import HostLoad
from hydra.measure.observation import idle
from hydra.measure.resources import flow
from hydra.measure.stage_load import BusyWorker
from hydra.measure.step_losses import StepLosses
from hydra.measure.verdict import (
    EVENTS,
    LOST_CONNECTIONS,
    NOT_LET_IN,
    READ_LIMIT,
    BottleneckEvidence,
    Verdict,
    generator_limited,
    verdict,
)
from hydra.model import PERCENTILES, BusyThread

_AT_LIMIT: Final = 0.9
"""Subscribers that receive at least this share of ``receive_rate`` are held back by it."""


@dataclass(frozen=True, eq=False)
class MeasuredStep(StepLosses):
    """A measured step, with the load of its hosts and what limited it."""

    @cached_property
    def hosts(self) -> HostLoad:
        """The load of the hosts."""
        return HostLoad(self.o)

    @cached_property
    def verdict(self) -> Verdict | None:
        """What limited the step; None: not known."""
        return verdict(self._evidence) if self._evidence else None

    @property
    def generator_limited(self) -> bool | None:
        """Whether the clients limited the step; None: not known."""
        return generator_limited(self._evidence, used_up=self.hosts.used_up)

    @cached_property
    def _evidence(self) -> BottleneckEvidence | None:
        """The evidence of each stage on the messages' way; None: it is not known whether the rate passes."""
        o, load, taken, outcome = self.o, self.hosts, self.acceptance, self.outcome
        # A dead or silent subscriber is no evidence of a full queue.
        in_time = self.passes(self.others & self.subscribers.reported, reporting=True)
        refusing = taken is not None and not taken.is_accepted(o.loss_target)
        if in_time is None and not refusing and o.subscribers:
            return None
        lag_us = self.latencies.percentile_us("lag", PERCENTILES["p99"])
        hosts = {o.host_of.get(o.agents.get(client, "")) for client in o.subscribers}
        summaries, others, serving = load.summaries, load.others, load.server_host
        busy = max((h for h in summaries if h in hosts), key=lambda host: summaries[host].cpu_mean_pct, default=None)
        threads = {role: load.busiest(role) for role in ("publisher", "subscriber", "server")}
        return BottleneckEvidence(
            queue=o.queue,
            direct=o.direct,
            held=taken.held if taken else None,
            behind=in_time is False,
            losing=any((self.least.lost, outcome.undrained, outcome.unknown)),
            dropped=outcome.lost > 0,
            planned=tuple(self._planned(taken)),
            shut_out=self.connections.shut_out,
            unaccepted=taken if refusing else None,
            blocked_share=self.latencies.blocked_s / o.window_s,
            lag_p99_ms=None if lag_us is None else lag_us / 1000,
            publisher=_worker(threads["publisher"]),
            library=_worker([t for t in threads["publisher"] if t.tid != t.pid]),
            subscribers=_worker(threads["subscriber"]),
            subscribers_library=_worker([t for t in threads["subscriber"] if t.tid != t.pid]),
            server=_worker(threads["server"]),
            server_host_pct=summaries[serving].cpu_mean_pct if serving in summaries else None,
            server_others_pct=others.get(serving),
            server_host_non_server_pct=load.non_server_pct(serving),
            server_idle=idle(o.servers),
            out_of_publishers=flow(load.samples("publisher"), o.window_ns),
            out_of_servers=flow(load.samples("server"), o.window_ns),
            subscriber_host_pct=summaries[busy].cpu_mean_pct if busy else None,
            subscribers_cpu=load.cpu_share(busy, summaries[busy], publishers=False) if busy else None,
            steal_pct=load.most(lambda s: s.steal_pct),
            others_pct=others[busy] if busy else None,
            network_share=load.network_share,
            segments_retransmitted=load.segments_retransmitted,
            drops=load.drops,
            # Without a server between the clients, messages within one host never cross a network.
            crossing=not o.direct or len(set(o.host_of.values())) > 1,
        )

    def _planned(self, taken: Acceptance | None) -> Iterator[str]:
        """What the run itself did to its messages, and clients without a connection, as causes."""
        o, connections = self.o, self.connections
        if o.events or o.plan.spells:
            yield EVENTS
        limit, rate, received = o.plan.settings.receive_rate, o.plan.settings.rate, self.traffic.rx_pps
        due = None if rate == "max" else rate * (1 if o.one_publisher else len(o.publishers))
        at_limit = limit is not None and (received is None or received >= _AT_LIMIT * limit)
        if limit is not None and at_limit and (due is None or limit < due):
            yield READ_LIMIT
        if connections.measured and connections.never:
            yield NOT_LET_IN
        never_back = connections.disconnected and connections.never_back
        if (taken is not None and taken.lost) or (self.subscribers_lost or (0,))[0] or never_back:
            yield LOST_CONNECTIONS


def _worker(threads: Sequence[BusyThread]) -> BusyWorker | None:
    if not threads:
        return None
    first = threads[0]
    return BusyWorker(first.name, first.cpu_pct, first.wait_pct, first.quota_pct)
