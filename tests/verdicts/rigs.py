"""Runs whose limit was planted: what ``bench/verdicts.py`` and a test ask the verdict about. Needs root.

A rig makes a run of one step in which one thing limits by construction: CPU quotas by cgroup v1, a token bucket on a
virtual link between network namespaces, a broker with one thread for requests, a queue of a few messages, or nothing.
Parameters are drawn by a seed from one of two ranges that do not overlap: thresholds were chosen on ``TUNING`` and are
judged on ``TRIAL``.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psutil
from scipy.special import betaincinv

from hydra.config.cluster import load_cluster
from hydra.config.scenario import resolve
from hydra.errors import StepError
from hydra.local.engine import LocalEngine
from hydra.measure import measured_step
from hydra.measure.verdict import verdict
from hydra.model import Figure, Group, GroupRole, Launch, cell_of
from hydra.monitor.progress_view import Observer
from hydra.run.context import RunContext
from hydra.run.launcher import system_for
from hydra.run.runner import run
from hydra.store.database import RunStore
from tests.mesos.namespaces import Hosts, hosts
from tests.suite.waiting import wait_until

PUBLISHER, SUBSCRIBER = "agent-pub", "agent-sub-1"
CPU: Final = Path("/sys/fs/cgroup/cpu")
_LEAST_QUOTA_US: Final = 1000


def validated(right: int, cases: int) -> str:
    """The lower limit of the share of right verdicts by C. J. Clopper and E. S. Pearson, Biometrika 26, 1934."""
    low = float(betaincinv(right, cases - right + 1, 0.05)) if right else 0.0
    return (
        f"The verdict was right in {right} of {cases} test runs. So, with 95 % confidence, it is right in at least "
        f"{math.floor(1000 * low) / 10:.1f} % of such runs"
    )


Drawn = Mapping[str, Any]
"""Parameters of a run by their name: keys of a scenario, and what a rig plants."""


class Quota:
    """A cgroup (v1) whose processes get a part of a core, once :meth:`limit` is called."""

    def __init__(self, name: str) -> None:
        self.path: Final = CPU / name
        self.path.mkdir()

    def limit(self, cores: float, period_us: int) -> None:
        """From now on; the period is longer where the kernel takes no quota that is so short."""
        period_us = max(period_us, math.ceil(_LEAST_QUOTA_US / cores))
        (self.path / "cpu.cfs_period_us").write_text(str(period_us))
        (self.path / "cpu.cfs_quota_us").write_text(str(round(cores * period_us)))

    def close(self) -> None:
        """Removes it, once the processes in it have ended."""

        def removed() -> bool:
            with contextlib.suppress(OSError):
                self.path.rmdir()
            return not self.path.exists()

        wait_until(removed, f"the end of the processes in {self.path}")


class QuotaEngine(LocalEngine):
    """The local engine, with the groups of one role in a cgroup."""

    def __init__(self, *args: Any, role: GroupRole, quota: Quota) -> None:
        super().__init__(*args)
        self._role = role
        self._quota = quota

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """As ever, but that the processes of the role enter the cgroup before they begin."""
        enter = ("/bin/sh", "-c", f'echo $$ > {self._quota.path}/cgroup.procs && exec "$@"', "sh")
        return super().launch([replace(g, command=(*enter, *g.command)) if g.role == self._role else g for g in groups])


@dataclass(frozen=True)
class Measured:
    """What came of a run: the figures of its step, and what the verdict was found by (``Evidence``)."""

    figures: dict[str, Figure]
    evidence: dict[str, Any]


@dataclass(frozen=True)
class Rig:
    """A way to plant a limit.

    Attributes:
        name: for people and on the command line.
        truth: the verdict that is right.
        ranges: what ``tuning`` and ``trial`` draw each parameter from: a list of values, or two bounds (log-uniform).
        scenario: the scenario that it is a run of, and what of it is fixed.
        planted: further parameters that follow from those, so that the limit is one.
        quota: the role that gets ``cores`` of a core; None.
        network: clients are on hosts of their own; the link of one is limited to ``mbit``.
    """

    name: str
    truth: str
    ranges: Mapping[str, tuple[Any, Any]]
    scenario: str = "zmqfixed"
    fixed: Mapping[str, object] = field(default_factory=dict)
    planted: Callable[[Drawn], dict[str, Any]] = lambda _: {}  # a default
    quota: GroupRole | None = None
    network: bool = False

    def draw(self, seed: int, *, trial: bool) -> dict[str, Any]:
        """The parameters of a run; the same for the same seed."""
        random_ = random.Random(f"{self.name} {seed} {trial}")  # a test's parameters
        drawn = {name: _drawn(random_, pair[trial]) for name, pair in self.ranges.items()}
        return drawn | self.planted(drawn)

    def _begin(self, quota: Quota, drawn: Drawn) -> None:
        """Limits the processes in the cgroup; a server of the local engine is in no group, and enters it now."""
        if self.quota == "server":
            for child in psutil.Process().children(recursive=True):
                if child.name() == "mosquitto":
                    (quota.path / "cgroup.procs").write_text(str(child.pid))
        quota.limit(drawn["cores"], drawn["period_us"])

    def take(self, drawn: Drawn, folder: Path) -> Measured:
        """Runs it."""
        overrides = {key: value for key, value in drawn.items() if "." in key}
        overrides["sweep.clients"] = [drawn["clients"]]
        resolved = resolve(self.scenario, {**_COMMON, **self.fixed, **overrides})
        cluster = load_cluster()
        agents = [agent for agent in cluster.agents if agent.id in (PUBLISHER, SUBSCRIBER)]
        begin: Callable[[], None] | None = None
        with ExitStack() as stack:
            if self.network:
                network = stack.enter_context(hosts(2))
                agents = [replace(a, netns=name) for a, name in zip(agents, network.names, strict=True)]
                _narrow(network, drawn)
            cluster = replace(cluster, agents=tuple(agents))
            place = (cluster.agents, folder / "sandbox")
            engine: LocalEngine
            if self.quota:
                quota = Quota(f"hydra-{os.getpid()}")
                stack.callback(quota.close)
                engine = QuotaEngine(*place, role=self.quota, quota=quota)
                begin = partial(self._begin, quota, drawn)
            else:
                engine = LocalEngine(*place)
            stack.enter_context(closing(engine))
            system = system_for(resolved)
            configure = system.configure

            def configured(*args: Any, **more: Any) -> Any:
                # Clients are there by now: starting them with so little CPU would take long, and prove nothing.
                if begin is not None:
                    begin()
                return configure(*args, **more)

            system.configure = configured  # type: ignore[method-assign]
            store = stack.enter_context(closing(RunStore.create(folder / "run", {"scenario": resolved.scenario})))
            decided = stack.enter_context(patch.object(measured_step, "verdict", wraps=verdict))
            run(RunContext(resolved, cluster, engine, system, store, Observer(io.StringIO())))
            # A step that could not be measured was tried once more.
            result = store.results()[-1]
            if result.status != "ok":
                raise StepError(result.reason, "look at what the machine does besides")
            return Measured(
                {name: cell_of(value) for name, value in result.figures.items()}, asdict(decided.call_args.args[0])
            )


_COMMON: Final = {"sweep.duration_s": 1.5, "drain_max_s": 2.0, "warmup_s": 0.0}


def _drawn(random_: random.Random, of: Any) -> Any:
    """One of a list, or between two bounds; whole numbers stay whole."""
    if isinstance(of, list):
        return random_.choice(of)
    low, high = of
    value = low * (high / low) ** random_.random()
    return round(value) if isinstance(low, int) else round(value, 4)


def _narrow(network: Hosts, drawn: Drawn) -> None:
    """Limits what leaves the publisher's host, or what goes to the subscribers'."""
    name, link = network.names[0], network.links[1]
    where = ["-n", name, "qdisc", "add", "dev", "eth0"] if drawn["leaving"] else ["qdisc", "add", "dev", link]
    bucket = ["rate", f"{drawn['mbit']}mbit", "burst", "16000", "limit", str(drawn["limit"])]
    subprocess.run(["tc", *where, "root", "tbf", *bucket], check=True, capture_output=True)


_SECONDS_A_MESSAGE: Final = 2e-6
"""CPU that a subscriber in Python takes at least for a message, its library's thread included."""
_SECONDS_A_COPY: Final = 4e-6
"""CPU that mosquitto takes at least for a copy of a message."""
_PERIODS: Final = ([20_000, 100_000], [10_000, 50_000, 90_000])

RIGS: Final = {
    rig.name: rig
    for rig in (
        Rig(
            "publisher",
            "publisher",
            {
                "clients": ([2, 4], [1, 3, 5]),
                "settings.rate": ((120_000.0, 160_000.0), (100_000.0, 200_000.0)),
                "settings.message_size": ([24, 100], [32, 64, 200]),
                "settings.sndhwm": ([1000, 100_000], [2000, 50_000]),
                "cores": ([0.2], (0.16, 0.24)),
                "period_us": _PERIODS,
            },
            quota="publisher",
        ),
        Rig(
            "subscribers",
            "subscriber hosts",
            {
                "clients": ([2, 4], [1, 3, 5]),
                "settings.rate": ((30_000.0, 40_000.0), (25_000.0, 50_000.0)),
                "settings.message_size": ([24, 100], [32, 64, 200]),
                "part": ((0.25, 0.35), (0.15, 0.45)),
                "period_us": _PERIODS,
            },
            planted=lambda drawn: {
                "cores": drawn["part"] * _SECONDS_A_MESSAGE * drawn["settings.rate"] * drawn["clients"]
            },
            quota="subscriber",
        ),
        Rig(
            "network",
            "network",
            {
                "clients": ([1, 2], [1, 3, 4]),
                "overload": ((3.0, 4.0), (2.0, 8.0)),
                "settings.message_size": ([1000], [700, 1500, 2500]),
                "leaving": ([False], [False, True]),
                "mbit": ([8], [4, 6, 10]),
                "limit": ([32_000], [20_000, 64_000]),
            },
            planted=lambda drawn: {
                "settings.rate": round(
                    drawn["overload"] * drawn["mbit"] * 125_000 / drawn["settings.message_size"] / drawn["clients"], 1
                )
            },
            network=True,
        ),
        Rig(
            "server",
            "server",
            {
                "clients": ([4, 8], [3, 5, 10]),
                "settings.rate": ((4000.0, 5000.0), (3000.0, 6000.0)),
                "settings.message_size": ([100], [64, 200]),
                "part": ((0.25, 0.35), (0.2, 0.45)),
                "period_us": _PERIODS,
            },
            scenario="mqtt-fixed",
            fixed={"client": "native"},
            planted=lambda drawn: {
                "cores": drawn["part"] * _SECONDS_A_COPY * drawn["settings.rate"] * drawn["clients"]
            },
            quota="server",
        ),
        Rig(
            "crowded",
            "host CPU",
            {
                "clients": ([2], [1, 3]),
                "settings.rate": ((15_000.0, 20_000.0), (12_000.0, 25_000.0)),
                "settings.message_size": ([2000], [1600, 2500]),
                "settings.msg_batch": ([100], [50, 200]),
            },
            scenario="kafka-fixed",
            fixed={
                "client": "confluent-kafka",
                "settings.payload": "json",
                "kafka.broker": {"num.io.threads": "1", "num.network.threads": "1"},
                "kafka.topic": {"compression.type": "gzip", "compression.gzip.level": "9"},
                "sweep.duration_s": 2.0,
            },
        ),
        Rig(
            "queue",
            "high-water mark",
            {
                "clients": ([2, 4], [1, 3, 5]),
                "settings.rate": ((2000.0, 3000.0), (1000.0, 6000.0)),
                "settings.burst": ([500], [300, 400, 800]),
                "settings.message_size": ([24], [32, 200, 1000]),
                "settings.sndhwm": ([10, 20], [5, 15, 30]),
            },
            fixed={"settings.rcvhwm": 10},
        ),
        Rig(
            "rate",
            "requested rate",
            {
                "clients": ([2, 4], [1, 3, 5]),
                "settings.rate": ((500.0, 1000.0), (100.0, 3000.0)),
                "settings.message_size": ([24], [32, 200, 1000]),
            },
        ),
    )
}


def counts(line: Mapping[str, Any]) -> bool:
    """Whether a line of the results was measured, and what was planted was a limit.

    Where the rate was held and nothing lost or late, nothing limited, whatever was planted.
    """
    if "failed" in line:
        return False
    return bool(line["rig"] == "rate" or not (line["rate_held"] and line["passed"]))
