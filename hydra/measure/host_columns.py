"""The columns of servers and hosts, and of what limited the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hydra.measure.column import MB_S, PER_SECOND, Better
from hydra.measure.disturbance import Disturbances
from hydra.measure.step_part import Number, StepPart, figure, text, yes_no
from hydra.measure.verdict import Causes

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep

HOST_CPU: Final = "host_cpu_mean_pct"
HOST_OTHERS: Final = "host_others_pct"
DISTURBED: Final = "disturbed"
GENERATOR_LIMITED: Final = "generator_limited"
VERDICT: Final = "verdict"
LOCAL_LIMIT: Final = "local_limit"


def _of_servers(unit: str, about: str, *, better: Better = "", keys: Sequence[str], times: float) -> Number | None:
    """The field of the mean, over the servers, of the sum of what they report under these keys."""

    def mean(step: MeasuredStep) -> float | None:
        found = step.server_mean(*keys)
        return None if found is None else times * found

    return figure(unit, about, better=better, of=mean, optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLoad(StepPart):
    """What servers report about themselves."""

    server_cpu_pct: Number | None = _of_servers(
        "% of a core",
        "CPU time of a server in % of the length of the window (*T*); mean over the servers. Only if servers report "
        "CPU time, or if the servers run on this machine; of servers that report it, empty "
        "after the event `restart_server`",
        better="lower",
        keys=("cpu_seconds_per_s",),
        times=100.0,
    )
    server_in_mb_s: Number | None = _of_servers(
        MB_S,
        "payload that a server received from clients and other servers; mean over the servers. Only if servers report "
        "these bytes. A MB has 10⁶ bytes",
        keys=("in_bytes_per_s", "replication_in_bytes_per_s"),
        times=1e-6,
    )
    server_out_mb_s: Number | None = _of_servers(
        MB_S,
        "payload that a server sent to clients and other servers; mean over the servers. Only if servers report these "
        "bytes. A MB has 10⁶ bytes",
        keys=("out_bytes_per_s", "replication_out_bytes_per_s"),
        times=1e-6,
    )
    server_messages_s: Number | None = _of_servers(
        PER_SECOND,
        "messages that a server received from publishers; mean over the servers. Only if servers report this number",
        keys=("messages_per_s",),
        times=1.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts(StepPart):
    """The load of the hosts, and what disturbed them."""

    host_cpu_mean_pct: Number | None = figure(
        "%",
        "CPU use of all cores of the busiest host in the window, including time that "
        "the hypervisor gave to other guests (steal)",
        of=lambda s: s.hosts.most(lambda h: h.cpu_mean_pct),
    )
    host_cpu_busiest_core_pct: Number | None = figure(
        "%",
        "CPU use of the busiest core of any host in the window",
        repeats="median",
        of=lambda s: s.hosts.most(lambda h: h.cpu_busiest_core_pct),
    )
    host_steal_pct: Number | None = figure(
        "%",
        "part of the time of all cores in the window that the hypervisor gave to other guests (steal), on the host "
        "with the largest part",
        of=lambda s: s.hosts.most(lambda h: h.steal_pct),
    )
    host_others_pct: Number | None = figure(
        "%",
        "part of the CPU of all cores in the step that processes outside the run used, on the host with the largest "
        "part. On a host whose processes Hydra cannot read, what clients and servers of the run did not use, without "
        "steal; empty if the CPU time of one of them is unknown",
        of=lambda s: s.hosts.others_most_pct,
    )
    disturbed: Disturbances | None = text(
        "what disturbed the row, see [machine.md](machine.md#disturbed-rows): a JSON list with an object for each such "
        "host: `others_pct` (the part of the CPU that processes outside the run used, if above 5 %), `by` (their names "
        "and parts), `throttled` (how often the CPU was slowed down), `frequencies_mhz` (the frequency of the "
        "fastest core after and before it fell by more than 10 % under load), `swapped_bytes` (by how much the used "
        "swap space grew, from 1 MB on), `changed` (facts of the machine), `clock_jumps` (how often the host's clock "
        "jumped). Empty if nothing was found",
        of=lambda s: s.hosts.disturbances,
    )
    host_memory_available_min_bytes: Number | None = figure(
        "bytes",
        "smallest available memory of any host in the window",
        repeats="median",
        of=lambda s: s.hosts.memory_available_min_bytes,
    )
    network_share_pct: Number | None = figure(
        "%",
        "utilisation of the busiest network interface of any host in the window, in the busier direction of this "
        "interface, in % of the speed of its link. Empty if no link has a known speed",
        of=lambda s: None if s.hosts.network_share is None else 100 * s.hosts.network_share,
    )
    tcp_retransmitted_pct: Number | None = figure(
        "%",
        "retransmitted TCP segments in % of all segments sent in the window, tail loss probes excluded; on the host "
        "with clients or servers that has the largest share",
        of=lambda s: None if s.hosts.segments_retransmitted is None else 100 * s.hosts.segments_retransmitted,
    )
    host_drops: Number | None = figure(
        "packets",
        "incoming and outgoing packets that the network interfaces of all hosts dropped in the window",
        of=lambda s: s.hosts.drops if s.hosts.summaries else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(StepPart):
    """What limited the step."""

    generator_limited: bool | None = yes_no(
        "yes: the clients, not the system, limited the row: the rate did not hold, and `verdict` names them and one of "
        "their threads ran, or waited for CPU, all the time, or a host used at least 92 % of its CPU and the clients "
        "there at least half. Without a server, a thread of the system's library counts as the system. no: "
        "`verdict` names something else. Empty if the evidence does not decide it",
        of=lambda s: s.generator_limited,
    )
    verdict: Causes | None = text(
        "what limited the row, see *Verdict*", of=lambda s: s.verdict.causes if s.verdict else None, header=True
    )
    verdict_evidence: str | None = text(
        "the figures from which `verdict` follows",
        repeats="noted",
        of=lambda s: s.verdict.evidence if s.verdict else None,
    )
    local_limit: str | None = text(
        "what limited or delayed the row at the hosts of the run: `publisher`, `subscriber hosts` or `host CPU`, see "
        "*Trouble of this machine*. Empty if nothing there is known to have done so, or if a server did",
        repeats="first",
        of=lambda s: s.verdict.local if s.verdict else None,
    )
