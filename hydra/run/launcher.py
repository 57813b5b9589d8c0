"""Puts a run together: which engine, which system, which folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from hydra.cluster.artifacts import Artifact, build
from hydra.cluster.constraints import permits
from hydra.cluster.engine import Engine
from hydra.cluster.local import LocalEngine
from hydra.cluster.mesos.engine import MesosEngine, cache_dir
from hydra.cluster.mesos.master import Operator, leader
from hydra.cluster.placement import merge
from hydra.cluster.resources import fits, need_of
from hydra.cluster.splitting import split
from hydra.errors import EXIT_INTERRUPTED, HydraError, RunDirectoryError
from hydra.events.happened import Resumed, RunBegan
from hydra.events.warnings import Interrupted
from hydra.kafkatest.system import KafkaSystem
from hydra.limits.machine import raise_soft_limits
from hydra.model import Agent, ClusterSpec, MesosSpec, Role, RoleSpec, Scenario
from hydra.results.alone import alone_in
from hydra.results.store import ENDED_KEY, ERROR_KEY, RunStore
from hydra.run.brokers import required
from hydra.run.metadata import metadata
from hydra.run.progress import Observer
from hydra.run.redaction import Redactor
from hydra.run.runner import run
from hydra.sweep import for_scenario
from hydra.system import System
from hydra.zmqtest.system import ZmqSystem

LOCAL: Final = "local"
"""The ``--master`` that is no Mesos master: the embedded cluster."""


@contextlib.contextmanager
def engine(cluster: ClusterSpec, order: Order, system: System) -> Iterator[Engine]:
    """The cluster's engine for a run, closed at the end.

    Raises:
        UsageError: ``order.master`` is no address.
        ClusterError: the master there does not take us, or offers nothing.
    """
    with contextlib.ExitStack() as stack:
        if order.master == LOCAL:
            local = LocalEngine(cluster.agents, order.out / "sandbox")
            stack.callback(local.close)
            yield local
            return
        # Nothing is made for a master that is no address, or does not answer.
        leader(order.master)
        order.out.mkdir(parents=True, exist_ok=True)
        artifact = archive(system)
        log = order.out / "mesos.log"
        mesos = MesosEngine(order.master, order.mesos, order.out.name, artifact, log)
        stack.callback(mesos.close)
        mesos.await_offers()
        yield mesos


def archive(system: System) -> Artifact:
    """The agents' archive: with what clients need, and brokers if some are to run there.

    Raises:
        ClusterError: something that belongs into it is not installed, or there is no room.
        MissingDependencyError: the brokers' jars are not there and cannot be fetched.
    """
    broker = system.broker()
    programs = [*(system.program(role) for role in get_args(Role)), *([] if broker is None else [broker])]
    files = {name: path for program in programs for name, path in program.files.items()}
    return build(cache_dir(), [program.command for program in programs], files)


def agents(cluster: ClusterSpec, master: str, mesos: MesosSpec) -> list[Agent]:
    """The agents of the embedded cluster, or of a Mesos master, with what is free on each; registers nothing.

    Raises:
        UsageError: that is no address of a master.
        ClusterError: it does not answer.
    """
    if master == LOCAL:
        return merge(cluster.agents)
    return Operator(leader(master), mesos.principal, mesos.secret).agents()


def roles_on(agent: Agent, scenario: Scenario) -> list[str]:
    """Which of a scenario's roles could run on the agent as it is now: their constraints, and one client's need."""
    specs: dict[str, RoleSpec] = {"publisher": scenario.publisher, "subscriber": scenario.subscriber}
    if brokers := required(scenario, is_local=False):
        specs["broker"] = brokers
    return [
        role
        for role, spec in specs.items()
        if all(permits(c, agent, {}) for c in spec.constraints) and fits(need_of(spec.demand, 1), agent.resources)
    ]


def system_for(scenario: Scenario, *, is_local: bool = True) -> System:
    """The system under test that a scenario names, with its groups on this machine or elsewhere."""
    if scenario.system == "zmq":
        return ZmqSystem(scenario)
    return KafkaSystem(scenario, deploy=required(scenario, is_local=is_local) is not None, is_local=is_local)


def check_placement(scenario: Scenario, cluster: ClusterSpec, its_engine: Engine) -> None:
    """Refuses a scenario of which not even the smallest step fits on the cluster.

    Raises:
        PlacementError: the text names the role and the constraint or resource.
    """
    agents = its_engine.agents()
    if brokers := required(scenario, is_local=its_engine.is_local):
        split(brokers.count, agents, brokers, 1, role="broker")
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
    mesos: MesosSpec = field(default_factory=MesosSpec)


def launch(scenario: Scenario, cluster: ClusterSpec, order: Order) -> tuple[int, RunStore]:
    """Runs a scenario into its run directory; its exit code and what is stored.

    Ctrl-C (or SIGTERM) ends the run cleanly and keeps what was measured; a second one leaves at once.

    Raises:
        HydraError: the run could not begin, or could not go on.
    """
    redactor = Redactor.of_run(scenario, order.mesos)
    try:
        return _launch(scenario, cluster, order, redactor)
    except HydraError as e:
        e.what, e.remedy = redactor.text(e.what), redactor.text(e.remedy)
        raise


def _launch(scenario: Scenario, cluster: ClusterSpec, order: Order, redactor: Redactor) -> tuple[int, RunStore]:
    if not order.resume:
        _check_folder(order.out)
    observer = Observer(quiet=order.quiet, redact=redactor.text)
    raise_soft_limits()
    system = system_for(scenario, is_local=order.master == LOCAL)
    system.check()
    with contextlib.ExitStack() as stack:
        if order.resume:
            stack.enter_context(alone_in(order.out))
        its_engine = stack.enter_context(engine(cluster, order, system))
        check_placement(scenario, cluster, its_engine)
        store = _store(scenario, cluster, order, redactor)
        if not order.resume:
            stack.enter_context(alone_in(order.out))
        sweep = for_scenario(scenario)
        observer.show(RunBegan(scenario.name, str(order.out), sweep.expected_s(), sweep.bound_s()))
        try:
            return run(scenario, cluster, its_engine, system, store, observer), store
        except KeyboardInterrupt:
            observer.show(Interrupted(str(order.out)))
            return EXIT_INTERRUPTED, store


def _check_folder(out: Path) -> None:
    """Refuses a run directory that cannot be made, before anything starts.

    Raises:
        RunDirectoryError: it has no name or one that is too long, or is to be in what cannot be written.
    """
    try:
        if not out.resolve().name:
            raise RunDirectoryError(f"{out} is no folder of its own", "choose another folder with --out")
        there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    except OSError as e:
        raise RunDirectoryError(f"{out}: {e.strerror}", "choose another folder with --out") from e
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise RunDirectoryError(f"{out}: {there} is no folder that can be written", "choose another folder with --out")


def _store(scenario: Scenario, cluster: ClusterSpec, order: Order, redactor: Redactor) -> RunStore:
    if not order.resume:
        asked = (order.master, order.command_line, order.overrides)
        store = RunStore.create(order.out, metadata(order.out.name, scenario, cluster, *asked, redactor))
        store.redact = redactor.text
        return store
    store = RunStore.open(order.out, writable=True)
    store.redact = redactor.text
    results = store.results()
    again = for_scenario(scenario).offered_again(results)
    store.add_event(Resumed(len(results), len(again)))
    store.offer_again(again)
    store.set_meta(ENDED_KEY, "")
    store.set_meta(ERROR_KEY, "")
    return store
