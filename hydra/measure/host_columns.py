"""The columns of servers and hosts, and of what limited the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hydra.measure.column import MB_S, PER_SECOND, TEXT, Better
from hydra.measure.disturbance import Disturbances
from hydra.measure.step_column import HeaderColumn, StepColumn, step_text, step_yes_no

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep

HOST_CPU: Final = "host_cpu_mean_pct"
HOST_OTHERS: Final = "host_others_pct"
DISTURBED: Final = "disturbed"
GENERATOR_LIMITED: Final = "generator_limited"
VERDICT: Final = "verdict"
VERDICT_EVIDENCE: Final = "verdict_evidence"
LOCAL_LIMIT: Final = "local_limit"


def _of_servers(
    name: str, unit: str, about: str, *, better: Better = "", keys: Sequence[str], times: float
) -> StepColumn:
    """A column of the mean, over the servers, of the sum of what they report under these keys."""

    def mean(step: MeasuredStep) -> float | None:
        found = step.server_mean(*keys)
        return None if found is None else times * found

    return StepColumn(name, unit, about, better=better, of=mean, when=lambda s: mean(s) is not None)


SERVERS: Final = (
    _of_servers(
        "server_cpu_pct",
        "% of a core",
        "CPU time of a server in % of the length of the window (*T*); mean over the servers. Only if servers report "
        "CPU time, or if the servers run on this machine; of servers that report it, empty "
        "after the event `restart_server`",
        better="lower",
        keys=("cpu_seconds_per_s",),
        times=100.0,
    ),
    _of_servers(
        "server_in_mb_s",
        MB_S,
        "payload that a server received from clients and other servers; mean over the servers. Only if servers report "
        "these bytes. A MB has 10⁶ bytes",
        keys=(
            "in_bytes_per_s",
            "replication_in_bytes_per_s",
        ),
        times=1e-6,
    ),
    _of_servers(
        "server_out_mb_s",
        MB_S,
        "payload that a server sent to clients and other servers; mean over the servers. Only if servers report these "
        "bytes. A MB has 10⁶ bytes",
        keys=(
            "out_bytes_per_s",
            "replication_out_bytes_per_s",
        ),
        times=1e-6,
    ),
    _of_servers(
        "server_messages_s",
        PER_SECOND,
        "messages that a server received from publishers; mean over the servers. Only if servers report this number",
        keys=("messages_per_s",),
        times=1.0,
    ),
)

HOSTS: Final = (
    StepColumn(
        HOST_CPU,
        "%",
        "CPU use of all cores of the busiest host in the window, including time that "
        "the hypervisor gave to other guests (steal)",
        of=lambda s: s.hosts.most(lambda h: h.cpu_mean_pct),
    ),
    StepColumn(
        "host_cpu_busiest_core_pct",
        "%",
        "CPU use of the busiest core of any host in the window",
        repeats="median",
        of=lambda s: s.hosts.most(lambda h: h.cpu_busiest_core_pct),
    ),
    StepColumn(
        "host_steal_pct",
        "%",
        "part of the time of all cores in the window that the hypervisor gave to other guests (steal), on the host "
        "with the largest part",
        of=lambda s: s.hosts.most(lambda h: h.steal_pct),
    ),
    StepColumn(
        "host_others_pct",
        "%",
        "part of the CPU of all cores in the step that processes outside the run used, on the host with the largest "
        "part. On a host whose processes Hydra cannot read, what clients and servers of the run did not use, without "
        "steal; empty if the CPU time of one of them is unknown",
        of=lambda s: s.hosts.others_most_pct,
    ),
    step_text(
        DISTURBED,
        "what disturbed the row, see [machine.md](machine.md#disturbed-rows): a JSON list with an object for each such "
        "host: `others_pct` (the part of the CPU that processes outside the run used, if above 5 %), `by` (their names "
        "and parts), `throttled` (how often the CPU was slowed down), `frequencies_mhz` (the frequency of the "
        "fastest core after and before it fell by more than 10 % under load), `swapped_bytes` (by how much the used "
        "swap space grew, from 1 MB on), `changed` (facts of the machine), `clock_jumps` (how often the host's clock "
        "jumped). Empty if nothing was found",
        of=lambda s: s.hosts.disturbances,
        evidence=Disturbances,
    ),
    StepColumn(
        "host_memory_available_min_bytes",
        "bytes",
        "smallest available memory of any host in the window",
        repeats="median",
        of=lambda s: s.hosts.memory_available_min_bytes,
    ),
    StepColumn(
        "network_share_pct",
        "%",
        "utilisation of the busiest network interface of any host in the window, in the busier direction of this "
        "interface, in % of the speed of its link. Empty if no link has a known speed",
        of=lambda s: None if s.hosts.network_share is None else 100 * s.hosts.network_share,
    ),
    StepColumn(
        "tcp_retransmitted_pct",
        "%",
        "retransmitted TCP segments in % of all segments sent in the window, tail loss probes excluded; on the host "
        "with clients or servers that has the largest share",
        of=lambda s: None if s.hosts.segments_retransmitted is None else 100 * s.hosts.segments_retransmitted,
    ),
    StepColumn(
        "host_drops",
        "packets",
        "incoming and outgoing packets that the network interfaces of all hosts dropped in the window",
        of=lambda s: s.hosts.drops if s.hosts.summaries else None,
    ),
)

LIMIT: Final = (
    step_yes_no(
        GENERATOR_LIMITED,
        "yes: the clients, not the system, limited the row: the rate did not hold, and `verdict` names them and one of "
        "their threads ran, or waited for CPU, all the time, or a host used at least 92 % of its CPU and the clients "
        "there at least half. Without a server, a thread of the system's library counts as the system. no: "
        "`verdict` names something else. Empty if the evidence does not decide it",
        of=lambda s: s.generator_limited,
    ),
    HeaderColumn(
        VERDICT,
        TEXT,
        "what limited the row, see *Verdict*",
        repeats="common",
        of=lambda s: s.verdict.cause if s.verdict else None,
    ),
    step_text(
        VERDICT_EVIDENCE,
        "the figures from which `verdict` follows",
        repeats="noted",
        of=lambda s: s.verdict.evidence if s.verdict else None,
    ),
    step_text(
        LOCAL_LIMIT,
        "what limited or delayed the row at the hosts of the run: `publisher`, `subscriber hosts` or `host CPU`, see "
        "*Trouble of this machine*. Empty if nothing there is known to have done so, or if a server did",
        repeats="first",
        of=lambda s: s.verdict.local if s.verdict else None,
    ),
)
