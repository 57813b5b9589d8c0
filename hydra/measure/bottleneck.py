"""The load of a step's hosts, and the stage that limited the step, as columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hydra.measure import observation
from hydra.measure.acceptance import Acceptance
from hydra.measure.column_names import (
    AVG_RX,
    BLOCKED,
    DISTURBED,
    GENERATOR_LIMITED,
    HOST_CPU,
    HOST_OTHERS,
    LOCAL_LIMIT,
    LOSS,
    LOSS_HIGH,
    LOSS_LOW,
    RATE_HELD,
    SUBSCRIBERS_LOST,
    VERDICT,
    VERDICT_EVIDENCE,
)
from hydra.measure.connections import NEVER, NEVER_BACK, shut_out_by
from hydra.measure.disturbance import disturbances, encode_disturbances, others_pct
from hydra.measure.observation import CPU, Observation
from hydra.measure.resources import HostSummary, busiest, flow, largest, summarise, used_pct
from hydra.measure.stage_load import BusyWorker
from hydra.measure.verdict import (
    BUSY_HOST_PCT,
    CLIENTS_SHARE,
    EVENTS,
    LOST_CONNECTIONS,
    NOT_LET_IN,
    READ_LIMIT,
    BottleneckEvidence,
    generator_limited,
    verdict,
)
from hydra.model import BusyThread, Figure, ThreadSample, number

_AT_LIMIT: Final = 0.9
"""Subscribers that receive at least this share of ``receive_rate`` are held back by it."""


def bottleneck(
    o: Observation, columns: Mapping[str, Figure], passed: bool | None, taken: Acceptance | None
) -> dict[str, Figure]:
    """The load of the hosts, and the stage that limited the step, by column name.

    Args:
        o: the step.
        columns: its other figures.
        passed: whether the rate passes by the subscribers that reported, since a dead or silent subscriber is no
            evidence of a full queue. None: not known.
        taken: what the system accepted; None: not known.
    """
    summaries = {host: s for host, samples in o.hosts.items() if (s := summarise(samples, o.window_ns)) is not None}
    # A controller's host without clients is left out: its retransmissions do not concern the messages.
    with_agents = [s for host, s in summaries.items() if host in o.host_of.values()]
    network_share = largest(s.network_share for s in summaries.values())
    retransmitted = largest(s.segments_retransmitted for s in with_agents)
    steal_pct = largest(s.steal_pct for s in summaries.values())
    others = {host: _others_pct(o, host, s) for host, s in summaries.items()}
    evidence: BottleneckEvidence | None = None
    refusing = taken is not None and not taken.is_accepted(o.loss_target)
    if passed is not None or refusing or not o.subscribers:
        evidence = replace(
            _evidence(o, columns, behind=passed is False, summaries=summaries, others=others),
            unaccepted=taken if refusing else None,
            planned=tuple(_planned(o, columns, taken)),
            shut_out=bool(shut_out_by(columns)),
            network_share=network_share,
            segments_retransmitted=retransmitted,
            steal_pct=steal_pct,
        )
    found = None if evidence is None else verdict(evidence)
    return {
        HOST_CPU: largest(s.cpu_mean_pct for s in summaries.values()),
        "host_cpu_busiest_core_pct": largest(s.cpu_busiest_core_pct for s in summaries.values()),
        "host_steal_pct": steal_pct,
        HOST_OTHERS: largest(others.values()),
        DISTURBED: encode_disturbances(disturbances(o.machines, _clock_jumps(o))),
        "host_memory_available_min_bytes": min(
            (s.memory_available_min_bytes for s in summaries.values()), default=None
        ),
        "network_share_pct": None if network_share is None else 100 * network_share,
        "tcp_retransmitted_pct": None if retransmitted is None else 100 * retransmitted,
        "host_drops": sum(s.drops for s in summaries.values()) if summaries else None,
        GENERATOR_LIMITED: generator_limited(evidence, used_up=_used_up(o, summaries)),
        VERDICT: found.cause if found else None,
        VERDICT_EVIDENCE: found.evidence if found else None,
        LOCAL_LIMIT: found.local if found else None,
    }


def _planned(o: Observation, columns: Mapping[str, Figure], taken: Acceptance | None) -> Iterator[str]:
    """What the run itself did to its messages, and clients without a connection, as causes."""
    if o.events or o.plan.spells:
        yield EVENTS
    limit, rate = o.plan.settings.receive_rate, o.plan.settings.rate
    due = None if rate == "max" else rate * (1 if o.one_publisher else len(o.publishers))
    received = number(columns.get(AVG_RX))
    at_limit = limit is not None and (received is None or received >= _AT_LIMIT * limit)
    if limit is not None and at_limit and (due is None or limit < due):
        yield READ_LIMIT
    if number(columns.get(NEVER)):
        yield NOT_LET_IN
    if (taken is not None and taken.lost) or number(columns.get(SUBSCRIBERS_LOST)) or number(columns.get(NEVER_BACK)):
        yield LOST_CONNECTIONS


def _clock_jumps(o: Observation) -> dict[str, int]:
    """How often the clock of each host jumped: its agents have the same clock."""
    found: dict[str, int] = {}
    for agent, clock in o.clocks.items():
        host = o.machine_of.get(agent, agent)
        found[host] = max(found.get(host, 0), clock.jumps)
    return found


def _used_up(o: Observation, summaries: Mapping[str, HostSummary]) -> bool:
    """Whether the clients used up the CPU of a host: it was busy, and at least half of its CPU was theirs."""
    busy = {host: s for host, s in summaries.items() if s.cpu_mean_pct >= BUSY_HOST_PCT}
    return any(_cpu_share(o, host, s) >= CLIENTS_SHARE for host, s in busy.items())


def _cpu_share(o: Observation, host: str, summary: HostSummary, *, publishers: bool = True) -> float:
    """The share of a host's CPU (0 to 1) that its clients (or only its subscribers) with a report used."""
    table = o.subscriber_reports
    told = list(zip(table.ids.tolist(), (table.cpu_user_s + table.cpu_system_s).tolist(), strict=True))
    if publishers:
        told += [(c, r.usage.cpu_user_s + r.usage.cpu_system_s) for c, r in o.publisher_reports.items()]
    used_s = sum(cpu_s for client, cpu_s in told if o.host_of.get(o.agents.get(client, "")) == host)
    return used_s / (o.window_s * len(summary.cores_pct)) if summary.cores_pct else 0.0


def _others_pct(o: Observation, host: str, summary: HostSummary) -> float | None:
    """The share of a host's CPU (%) that processes outside the run used; None: not known.

    If Hydra cannot read the processes there: what clients and servers of the run did not use, and the hypervisor did
    not take. That includes Hydra's own relays and controller.
    """
    machines = {o.machine_of.get(agent, agent) for agent, its in o.host_of.items() if its == host} | {host}
    read = [pct for name in machines if name in o.machines and (pct := others_pct(o.machines[name])) is not None]
    if read:
        return max(read)
    clients = {c for c in (*o.publishers, *o.subscribers) if o.host_of.get(o.agents.get(c, "")) == host}
    silent = clients.difference(o.publisher_reports, o.subscriber_reports.ids.tolist())
    used_pct = _servers_pct(o, host)
    if silent or used_pct is None:
        return None
    ours = 100 * _cpu_share(o, host, summary) + used_pct / max(len(summary.cores_pct), 1)
    return max(summary.cpu_mean_pct - summary.steal_pct - ours, 0.0)


def _servers_pct(o: Observation, host: str) -> float | None:
    """The CPU (% of a core) of the run's servers on a host, from all servers' reports, or else from their threads."""
    # The controller watches servers without a process group, under the name of its host.
    of = {agent: [t for t in told if t.role == "server"] for agent, told in o.threads.items()}
    there = [agent for agent in of if o.host_of.get(agent, agent) == host]
    groups = {(agent, t.group) for agent, told in of.items() for t in told}
    cores = [its[CPU] for its in o.servers.values() if CPU in its]
    if len(cores) == len(groups) and all(agent in there for agent, _ in groups):
        return 100 * sum(cores)
    return used_pct([t for agent in there for t in of[agent]], o.window_ns)


def _evidence(
    o: Observation,
    columns: Mapping[str, Figure],
    *,
    behind: bool,
    summaries: Mapping[str, HostSummary],
    others: Mapping[str, float | None],
) -> BottleneckEvidence:
    """The evidence of each stage on the messages' way, except the figures over all hosts."""
    held, blocked_s, lag_us = columns[RATE_HELD], columns[BLOCKED], number(columns["tx_lag_p99_us"])
    hosts = {o.host_of.get(o.agents.get(client, "")) for client in o.subscribers}
    busy = max((h for h in summaries if h in hosts), key=lambda host: summaries[host].cpu_mean_pct, default=None)
    threads = {role: _busiest(o, role) for role in ("publisher", "subscriber", "server")}
    serving = _server_host(o)
    return BottleneckEvidence(
        queue=o.queue,
        direct=o.direct,
        held=held if isinstance(held, bool) else None,
        behind=behind,
        losing=any(columns.get(name) for name in (LOSS, LOSS_HIGH, "undrained_pct", "unknown_pct")),
        dropped=any(columns.get(name) for name in (LOSS, LOSS_LOW)),
        blocked_share=float(blocked_s or 0.0) / o.window_s,
        lag_p99_ms=None if lag_us is None else lag_us / 1000,
        publisher=_worker(threads["publisher"]),
        library=_worker([t for t in threads["publisher"] if t.tid != t.pid]),
        subscribers=_worker(threads["subscriber"]),
        subscribers_library=_worker([t for t in threads["subscriber"] if t.tid != t.pid]),
        server=_worker(threads["server"]),
        server_host_pct=summaries[serving].cpu_mean_pct if serving in summaries else None,
        server_others_pct=others.get(serving),
        server_beside_pct=_beside_pct(o, serving, summaries, others),
        server_idle=observation.idle(o.servers),
        out_of_publishers=flow(_told(o, "publisher"), o.window_ns),
        out_of_servers=flow(_told(o, "server"), o.window_ns),
        subscriber_host_pct=summaries[busy].cpu_mean_pct if busy else None,
        subscribers_cpu=_cpu_share(o, busy, summaries[busy], publishers=False) if busy else None,
        others_pct=others[busy] if busy else None,
        drops=sum(s.drops for s in summaries.values()),
        # Without a server between the clients, messages within one host never cross a network.
        crossing=not o.direct or len(set(o.host_of.values())) > 1,
    )


def _server_host(o: Observation) -> str:
    """The host of the server with the busiest thread; "": no server is watched."""
    of = {agent: [sample for sample in told if sample.role == "server"] for agent, told in o.threads.items()}
    wanted = {
        agent: max((t.cpu_pct + t.wait_pct for t in busiest(samples, o.window_ns, most=1)), default=0.0)
        for agent, samples in of.items()
        if samples
    }
    agent = max(wanted, key=lambda each: wanted[each], default="")
    # The controller watches servers without a process group, under the name of its host.
    return o.host_of.get(agent, agent)


def _beside_pct(
    o: Observation, host: str, summaries: Mapping[str, HostSummary], others: Mapping[str, float | None]
) -> float | None:
    """The share of a host's CPU (%) that clients and other processes used; None: not known."""
    by_others = others.get(host)
    return (
        None if by_others is None or host not in summaries else by_others + 100 * _cpu_share(o, host, summaries[host])
    )


def _told(o: Observation, role: str) -> list[ThreadSample]:
    return [sample for samples in o.threads.values() for sample in samples if sample.role == role]


def _busiest(o: Observation, role: str) -> list[BusyThread]:
    """Each reported thread of a role's groups, by falling demand for CPU."""
    return busiest(_told(o, role), o.window_ns, most=1000)


def _worker(threads: Sequence[BusyThread]) -> BusyWorker | None:
    if not threads:
        return None
    first = threads[0]
    return BusyWorker(first.name, first.cpu_pct, first.wait_pct, first.quota_pct)
