"""The load of a step's hosts in its window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from hydra.measure.disturbance import Disturbances, disturbances, others_pct
from hydra.measure.observation import CPU, Observation
from hydra.measure.resources import HostSummary, busiest, largest, summarise, used_pct
from hydra.measure.verdict import BUSY_HOST_PCT, CLIENTS_SHARE
from hydra.model import BusyThread, ThreadSample


@dataclass(frozen=True, eq=False)
class HostLoad:
    """The load of the hosts of a step in its window; None: not known."""

    o: Observation

    @cached_property
    def summaries(self) -> Mapping[str, HostSummary]:
        """The load of each host that was sampled, by its name."""
        found = ((host, summarise(samples, self.o.window_ns)) for host, samples in self.o.hosts.items())
        return {host: summary for host, summary in found if summary is not None}

    @cached_property
    def others(self) -> Mapping[str, float | None]:
        """The share of the CPU (%) of each of these hosts that processes outside the run used."""
        return {host: self._others_pct(host, summary) for host, summary in self.summaries.items()}

    @property
    def others_most_pct(self) -> float | None:
        """The largest of these shares."""
        return largest(self.others.values())

    def most(self, figure: Callable[[HostSummary], float | None]) -> float | None:
        """The largest figure of a host."""
        return largest(figure(s) for s in self.summaries.values())

    @property
    def memory_available_min_bytes(self) -> int | None:
        """The smallest available memory of a host."""
        return min((s.memory_available_min_bytes for s in self.summaries.values()), default=None)

    @property
    def network_share(self) -> float | None:
        """The used share of the speed of the busiest network interface."""
        return self.most(lambda s: s.network_share)

    @property
    def segments_retransmitted(self) -> float | None:
        """The largest share of retransmitted TCP segments of a host with clients or servers."""
        # A controller's host without clients is left out: its retransmissions do not concern the messages.
        with_agents = (s for host, s in self.summaries.items() if host in self.o.host_of.values())
        return largest(s.segments_retransmitted for s in with_agents)

    @property
    def drops(self) -> int:
        """The packets that the interfaces of all hosts dropped."""
        return sum(s.drops for s in self.summaries.values())

    @property
    def disturbances(self) -> Disturbances | None:
        """What disturbed the step."""
        jumps: dict[str, int] = {}
        for agent, clock in self.o.clocks.items():
            host = self.o.machine_of.get(agent, agent)  # agents of one host have the same clock
            jumps[host] = max(jumps.get(host, 0), clock.jumps)
        return disturbances(self.o.machines, jumps)

    @property
    def used_up(self) -> bool:
        """Whether the clients used up the CPU of a host: it was busy, and at least half of its CPU was theirs."""
        busy = {host: s for host, s in self.summaries.items() if s.cpu_mean_pct >= BUSY_HOST_PCT}
        return any(self.cpu_share(host, s) >= CLIENTS_SHARE for host, s in busy.items())

    def cpu_share(self, host: str, summary: HostSummary, *, publishers: bool = True) -> float:
        """The share of a host's CPU (0 to 1) that its clients (or only its subscribers) with a report used."""
        o = self.o
        table = o.subscriber_reports
        cpu_times = list(zip(table.ids.tolist(), (table.cpu_user_s + table.cpu_system_s).tolist(), strict=True))
        if publishers:
            cpu_times += [(c, r.usage.cpu_user_s + r.usage.cpu_system_s) for c, r in o.publisher_reports.items()]
        used_s = sum(cpu_s for client, cpu_s in cpu_times if o.host_of.get(o.agents.get(client, "")) == host)
        return used_s / (o.window_s * len(summary.cores_pct)) if summary.cores_pct else 0.0

    def non_server_pct(self, host: str) -> float | None:
        """The share of a host's CPU (%) that clients and other processes used."""
        by_others = self.others.get(host)
        if by_others is None or host not in self.summaries:
            return None
        return by_others + 100 * self.cpu_share(host, self.summaries[host])

    def _others_pct(self, host: str, summary: HostSummary) -> float | None:
        """The share of a host's CPU (%) that processes outside the run used.

        If Hydra cannot read the processes there: what clients and servers of the run did not use, and the hypervisor
        did not take. That includes Hydra's own relays and controller.
        """
        o = self.o
        machines = {o.machine_of.get(agent, agent) for agent, its in o.host_of.items() if its == host} | {host}
        read = [pct for name in machines if name in o.machines and (pct := others_pct(o.machines[name])) is not None]
        if read:
            return max(read)
        clients = {c for c in (*o.publishers, *o.subscribers) if o.host_of.get(o.agents.get(c, "")) == host}
        silent = clients.difference(o.publisher_reports, o.subscriber_reports.ids.tolist())
        of_servers_pct = self._servers_pct(host)
        if silent or of_servers_pct is None:
            return None
        of_run_pct = 100 * self.cpu_share(host, summary) + of_servers_pct / max(len(summary.cores_pct), 1)
        return max(summary.cpu_mean_pct - summary.steal_pct - of_run_pct, 0.0)

    def _servers_pct(self, host: str) -> float | None:
        """The CPU (% of a core) of the run's servers on a host, from all servers' reports, or from their threads."""
        o = self.o
        # The controller watches servers without a process group, under the name of its host.
        of = {agent: [t for t in samples if t.role == "server"] for agent, samples in o.threads.items()}
        there = [agent for agent in of if o.host_of.get(agent, agent) == host]
        groups = {(agent, t.group) for agent, samples in of.items() for t in samples}
        cores = [its[CPU] for its in o.servers.values() if CPU in its]
        if len(cores) == len(groups) and all(agent in there for agent, _ in groups):
            return 100 * sum(cores)
        return used_pct([t for agent in there for t in of[agent]], o.window_ns)

    @property
    def server_host(self) -> str:
        """The host of the server with the busiest thread; "": no server is watched."""
        o = self.o
        of = {agent: [sample for sample in samples if sample.role == "server"] for agent, samples in o.threads.items()}
        wanted = {
            agent: max((t.cpu_pct + t.wait_pct for t in busiest(samples, o.window_ns, most=1)), default=0.0)
            for agent, samples in of.items()
            if samples
        }
        agent = max(wanted, key=lambda each: wanted[each], default="")
        return o.host_of.get(agent, agent)

    def samples(self, role: str) -> list[ThreadSample]:
        """The samples of the threads and connections of a role's groups."""
        return [sample for samples in self.o.threads.values() for sample in samples if sample.role == role]

    def busiest(self, role: str) -> list[BusyThread]:
        """Each reported thread of a role's groups, by falling demand for CPU."""
        return busiest(self.samples(role), self.o.window_ns, most=1000)
