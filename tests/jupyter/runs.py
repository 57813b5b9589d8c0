"""Run directories with known contents, made through the store as a run makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hydra import model
from hydra.config.plugins import system
from hydra.config.resolved_scenario import ResolvedScenario, added_by
from hydra.events.group_events import ClientsConnected
from hydra.events.run_events import PhasesTimed, StepStored, SystemFact, WindowOpened
from hydra.jupyter import run_data
from hydra.measure.latency import merge_histograms
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Histogram, Scenario, Settings, StepPlan, TimeSeriesFacts, TimeSeriesInterval
from hydra.store.database import RunStore
from hydra.sweep.grid import GridSweep
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec
from hydra.system import batch_of
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import SECOND, START, published, received
from tests.suite.figures import figures

Status = Callable[[StepPlan], tuple[str, str]]
T = TypeVar("T")

BATCHES = GridSweep(10.0, clients=(30, 60, 120), vary={"msg_batch": (100, 1000)})
ZMQ, KAFKA = (system(name).settings.step() for name in ("zmq", "kafka"))
"""The usual settings of both systems, which a stored scenario has all."""
TITLE = "Kafka: subscriber count x batch size"
BATCH = Scenario(
    "kafka-batch", "kafka", "kafka-python", "batch", BATCHES, Settings(rate=30_000.0, system=KAFKA), description=TITLE
)
FEW = GridSweep(10.0, clients=(30, 60, 120))
FIXED = Scenario("zmqfixed", "zmq", "pyzmq", "fixed", FEW, Settings(rate=10_000.0, system=ZMQ), description="ZMQ")
SEARCHES = SearchSweep(10.0, clients=(30, 60), search=SearchSpec(8_000.0, steps=30))
HIGHEST = "ZMQ PUB/SUB: the highest rate by subscriber count"
SEARCH = Scenario("zmqrate", "zmq", "pyzmq", "rates", SEARCHES, Settings(system=ZMQ), description=HIGHEST)
FOR_LOSS = SearchSweep(10.0, clients=(10, 30), search=SearchSpec(loss_target=0.0, steps=30, series=("loss",)))
RATE = Scenario("kafka-rate", "kafka", "confluent-kafka", "rate", FOR_LOSS, Settings(system=KAFKA))
MARKS = SearchSpec(8_000.0, steps=30, series=("max_rate", "loss"), sndhwms=(1000, 100_000))
NATIVE = replace(SEARCH, client="native", sweep=replace(SEARCHES, search=MARKS))
REPEATED = replace(FIXED, sweep=replace(FIXED.sweep, repeat=3))
KINDS = {"batch": BATCH, "fixed": FIXED, "search": SEARCH, "rate": RATE, "native": NATIVE, "repeated": REPEATED}

AGENT = model.Agent("agent-1", "here", {"group": "cpu4-mem16"}, model.Resources(4.0, 15_000.0))
FACTS: Mapping[str, object] = {
    "began": "2026-02-03T04:05:06+00:00",
    "cluster": model.ClusterSpec((AGENT,)),
    "master": "local",
    "versions": {"hydra": "0.1.0", "python": "3.11.2"},
    "host": {"name": "here", "system": "Linux", "cores": 2, "memory_bytes": 8 * 2**30, "byte_order": "little"},
    "limits": {"nofile_soft": 1024, "nofile_hard": 524288},
}


def observe(scenario: Scenario, plan: StepPlan, nth: int = 0) -> Observation:
    """A step as a system would show it that carries 2.5 million messages/s over all clients, and no more."""
    most = 2_500_000 / plan.clients
    requests, seconds = most * 1.3 if plan.settings.rate == "max" else plan.settings.rate, plan.duration_s
    sent = int(min(requests, most * 1.5) * seconds) + nth
    got = int(min(sent, most * seconds * (1 - 0.01 * nth)))
    spec = system(scenario.system)
    batch = batch_of(plan.settings, spec.published.columns)
    us = 150 + plan.clients * 3 + int(str(batch or 0)) // 10
    spread = Histogram([us // 2, got - got // 20, us, got // 20], us // 2, us) if us < 2000 else Histogram()
    report = replace(received(got, lost=sent - got, seconds=seconds * 0.95), latency=spread)
    return Observation(
        plan=plan,
        queue=spec.delivery(scenario, plan.settings).queue,
        batch=batch,
        direct=spec.servers is None,
        columns=added_by(spec),
        publishers={0},
        subscribers=set(range(1, plan.clients + 1)),
        publisher_reports={0: published(sent, seconds=seconds)},
        subscriber_reports=table_of(dict.fromkeys(range(1, plan.clients + 1), report)),
        window_ns=(START, START + int(seconds * SECOND)),
        loss_target=scenario.sweep.loss_target,
    )


def found_one(found: T | None) -> T:
    """The plots and texts of a run; nothing would be a failure."""
    assert found is not None
    return found


def good(_plan: StepPlan) -> tuple[str, str]:
    return "ok", ""


def load_steps(directory: Path, scenario: Scenario, *steps: Observation) -> run_data.RunData:
    """A run of just these good steps, as it is read."""
    with RunStore.create(directory, {**FACTS, "name": "r", "scenario": scenario}) as store:
        for epoch, o in enumerate(steps, 1):
            histograms = merge_histograms(o)
            store.add_step(StepResult(epoch, o.plan, "ok", figures(o, histograms)), o, histograms)
        store.set_meta("ended", "finished")
    return run_data.load(directory)


def make(
    directory: Path, scenario: Scenario, status: Status = good, steps: int | None = None, ended: str | None = "finished"
) -> Path:
    """A run directory.

    Those of good steps only are made once, and written again whenever they are asked for.

    Args:
        directory: the one to make.
        scenario: what it is a run of.
        status: gives each step its status and its reason.
        steps: after how many the run ends; None continues until the sweep is complete.
        ended: how the run ended, as stored; None: it was killed.
    """
    if status is not good:
        return _make(directory, scenario, status, steps, ended)
    key = repr((scenario, steps, ended))
    if key not in _MADE:
        _make(directory, scenario, status, steps, ended)
        _MADE[key] = directory.name, {file.name: file.read_bytes() for file in directory.iterdir()}
        return directory
    name, files = _MADE[key]
    directory.mkdir(parents=True)
    for file, content in files.items():
        (directory / file).write_bytes(content)
    if directory.name != name:
        with RunStore.open(directory, writable=True) as store:
            store.set_meta("name", directory.name)
    return directory


_MADE: dict[str, tuple[str, dict[str, bytes]]] = {}
"""The name and the files of those that were made."""


def _make(directory: Path, scenario: Scenario, status: Status, steps: int | None, ended: str | None) -> Path:
    text = {"name": directory.name, "scenario": scenario, "command_line": f"hydra {scenario.name} --clients 30,60"}
    with RunStore.create(directory, {**FACTS, **text}) as store:
        sweep, results = ResolvedScenario.of(scenario).sweep, list[StepResult]()
        while (steps is None or len(results) < steps) and (plan := sweep.next(results)) is not None:
            epoch = len(results) + 1
            how, reason = status(plan)
            o = observe(scenario, plan, epoch % 3)
            histograms = merge_histograms(o)
            shown = figures(o, histograms) if how == "ok" else StepFigures()
            result = StepResult(epoch, plan, how, shown, reason)  # type: ignore[arg-type]  # one of its literals
            store.add_step(result, *((o, histograms) if how == "ok" else ()))
            results.append(result)
            timed = PhasesTimed(epoch, [("bind", 0.1)])
            for event in (WindowOpened(epoch), ClientsConnected(30, 0.5), timed, StepStored(epoch, 0.2)):
                store.add_event(event, epoch)
        store.add_event(SystemFact("broker", "kafka 3.9"))
        if ended is not None:
            store.set_meta("ended", ended)
    return directory


SERIES = TimeSeriesFacts(10**18, 2.5, 1, copies=30.0)


def keep_seconds(run: Path, received: int) -> None:
    """Seconds of all steps, two and a half in the window and one behind it; each begins with its step's number."""
    with RunStore.open(run) as store:
        results = store.results()
    with RunStore.open(run, writable=True) as store:
        for result in results:
            store.begin_time_series(result.epoch, result.plan, SERIES)
            counts = [result.epoch, received, received, received]
            late = Histogram([1000, received], 1000, 1000)
            intervals = [
                TimeSeriesInterval(k, 10, 10, n, latency=late if k else Histogram()) for k, n in enumerate(counts)
            ]
            store.add_seconds(result.epoch, intervals)
