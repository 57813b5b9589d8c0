"""Puts a run together: which engine, which system, which folder."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.cluster.engine import Engine
from hydra.cluster.local import LocalEngine
from hydra.cluster.splitting import split
from hydra.console import Observer, duration
from hydra.errors import EXIT_INTERRUPTED, UsageError
from hydra.facts import facts
from hydra.kafkatest.system import KafkaSystem
from hydra.limits.machine import raise_soft_limits
from hydra.model import ClusterSpec, Scenario
from hydra.results.store import RunStore
from hydra.runner import run
from hydra.sweep import for_scenario
from hydra.system import System
from hydra.zmqtest.system import ZmqSystem


@contextlib.contextmanager
def engine(cluster: ClusterSpec, master: str, sandbox: Path | None = None) -> Iterator[Engine]:
    """The cluster's engine, closed at the end; without a sandbox of its own it gets a temporary one.

    Raises:
        UsageError: there is no engine for this master.
    """
    if master != "local":
        raise UsageError(f"--master {master} is not supported yet", "use --master local, the embedded cluster")
    with contextlib.ExitStack() as stack:
        root = sandbox or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hydra-")))
        local = LocalEngine(cluster.agents, root)
        stack.callback(local.close)
        yield local


def system_for(scenario: Scenario) -> System:
    """The system under test that a scenario names."""
    return KafkaSystem(scenario) if scenario.system == "kafka" else ZmqSystem(scenario)


def check_placement(scenario: Scenario, cluster: ClusterSpec, its_engine: Engine) -> None:
    """Refuses a scenario of which not even the smallest step fits on the cluster.

    Raises:
        PlacementError: the text names the role and the constraint or resource.
    """
    agents = its_engine.agents()
    split(scenario.publishers, agents, scenario.publisher, cluster.max_group, role="publisher")
    split(min(scenario.sweep.clients), agents, scenario.subscriber, cluster.max_group, role="subscriber")


@dataclass(frozen=True, slots=True)
class Order:
    """What a command asks for: where the run goes, and how it was asked; ``resume`` continues the run that is there."""

    master: str
    out: Path
    command_line: Sequence[str]
    overrides: Mapping[str, object]
    resume: bool = False
    quiet: bool = False


def launch(scenario: Scenario, cluster: ClusterSpec, order: Order) -> tuple[int, RunStore]:
    """Runs a scenario into its run directory; its exit code and what is stored.

    Ctrl-C (or SIGTERM) ends the run cleanly and keeps what was measured; a second one leaves at once.

    Raises:
        HydraError: the run could not begin, or could not go on.
    """
    observer = Observer(quiet=order.quiet)
    raise_soft_limits()
    with engine(cluster, order.master, order.out / "sandbox") as its_engine:
        system = system_for(scenario)
        system.check()
        check_placement(scenario, cluster, its_engine)
        store = _store(scenario, cluster, order)
        sweep = for_scenario(scenario)
        expected, bound = duration(sweep.expected_s()), duration(sweep.bound_s())
        observer.say(f"{scenario.name} into {order.out}: about {expected} if nothing is backlogged, {bound} at most")
        try:
            return run(scenario, cluster, its_engine, system, store, observer), store
        except KeyboardInterrupt:
            observer.warn(f"interrupted: what was measured is kept; go on with --resume {order.out}")
            return EXIT_INTERRUPTED, store


def _store(scenario: Scenario, cluster: ClusterSpec, order: Order) -> RunStore:
    if not order.resume:
        known = facts(order.out.name, scenario, cluster, order.master, order.command_line, order.overrides)
        return RunStore.create(order.out, known)
    store = RunStore.open(order.out, writable=True)
    store.add_event("resumed", f"after {len(store.results())} steps")
    return store
