"""The load of a step's hosts in its window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
        agents = set(self.o.host_of.values())
        with_agents = (s for host, s in self.summaries.items() if host in agents)
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
        used_s = (self._clients_s if publishers else self._subscribers_s).get(host, 0.0)
        return used_s / (self.o.window_s * len(summary.cores_pct)) if summary.cores_pct else 0.0

    @cached_property
    def _subscribers_s(self) -> Mapping[str | None, float]:
        """The CPU time of the subscribers with a report, by their host."""
        table = self.o.subscriber_reports
        used_s = (table.cpu_user_s + table.cpu_system_s).tolist()
        return self._sums(zip(table.ids.tolist(), used_s, strict=True), {})

    @cached_property
    def _clients_s(self) -> Mapping[str | None, float]:
        """The CPU time of all clients with a report, by their host."""
        reports = self.o.publisher_reports.items()
        return self._sums(((c, r.usage.cpu_user_s + r.usage.cpu_system_s) for c, r in reports), self._subscribers_s)

    def _sums(
        self, seconds: Iterable[tuple[int, float]], before: Mapping[str | None, float]
    ) -> dict[str | None, float]:
        """The sums by host of the seconds of clients and of those counted before."""
        sums = dict(before)
        for client, second in seconds:
            host = self._host(client)
            sums[host] = sums.get(host, 0.0) + second
        return sums

    def _host(self, client: int) -> str | None:
        """The host of a client; None: not known."""
        return self.o.host_of.get(self.o.agents.get(client, ""))

    @cached_property
    def _silent_hosts(self) -> set[str | None]:
        """The hosts of clients without a report."""
        reported = {*self.o.publisher_reports, *self.o.subscriber_reports.ids.tolist()}
        return {self._host(c) for c in (*self.o.publishers, *self.o.subscribers) if c not in reported}

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
        names = {host, *self._machines.get(host, ())} & o.machines.keys()
        read = [pct for name in names if (pct := others_pct(o.machines[name])) is not None]
        if read:
            return max(read)
        of_servers_pct = self._servers_pct(host)
        if host in self._silent_hosts or of_servers_pct is None:
            return None
        of_run_pct = 100 * self.cpu_share(host, summary) + of_servers_pct / max(len(summary.cores_pct), 1)
        return max(summary.cpu_mean_pct - summary.steal_pct - of_run_pct, 0.0)

    @cached_property
    def _machines(self) -> Mapping[str, set[str]]:
        """The names under which the agents of each host have records of its machine."""
        machines: dict[str, set[str]] = {}
        for agent, host in self.o.host_of.items():
            machines.setdefault(host, set()).add(self.o.machine_of.get(agent, agent))
        return machines

    @cached_property
    def _server_threads(self) -> Mapping[str, list[ThreadSample]]:
        """The samples of the servers' threads, by agent."""
        threads = {agent: [t for t in samples if t.role == "server"] for agent, samples in self.o.threads.items()}
        return {agent: samples for agent, samples in threads.items() if samples}

    @cached_property
    def _server_hosts(self) -> Mapping[str, list[ThreadSample]]:
        """The same by host."""
        by_host: dict[str, list[ThreadSample]] = {}
        # The controller watches servers without a process group, under the name of its host.
        for agent, samples in self._server_threads.items():
            by_host.setdefault(self.o.host_of.get(agent, agent), []).extend(samples)
        return by_host

    @cached_property
    def _reported_servers_pct(self) -> float | None:
        """The CPU (% of a core) of all servers from their reports; None: not all of them reported it."""
        cores = [its[CPU] for its in self.o.servers.values() if CPU in its]
        groups = {(agent, sample.group) for agent, samples in self._server_threads.items() for sample in samples}
        return 100 * sum(cores) if len(cores) == len(groups) else None

    def _servers_pct(self, host: str) -> float | None:
        """The CPU (% of a core) of the run's servers on a host, from all servers' reports, or from their threads."""
        if self._reported_servers_pct is not None and self._server_hosts.keys() <= {host}:
            return self._reported_servers_pct
        return used_pct(self._server_hosts.get(host, ()), self.o.window_ns)

    @property
    def server_host(self) -> str:
        """The host of the server with the busiest thread; "": no server is watched."""
        o = self.o
        wanted = {
            agent: max((t.cpu_pct + t.wait_pct for t in busiest(samples, o.window_ns, most=1)), default=0.0)
            for agent, samples in self._server_threads.items()
        }
        agent = max(wanted, key=lambda each: wanted[each], default="")
        return o.host_of.get(agent, agent)

    def samples(self, role: str) -> list[ThreadSample]:
        """The samples of the threads and connections of a role's groups."""
        return [sample for samples in self.o.threads.values() for sample in samples if sample.role == role]

    def busiest(self, role: str) -> list[BusyThread]:
        """Each reported thread of a role's groups, by falling demand for CPU."""
        return busiest(self.samples(role), self.o.window_ns, most=1000)
