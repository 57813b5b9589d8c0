"""Section 5, growth: how costs rise with clients, groups, publishers and rows; each function measures once.

A slope is that of a line through the logarithms of the last two decades, where fixed costs weigh least: 1 is linear.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import msgspec
import numpy as np
import psutil

from bench import programs
from bench.hydra_command import run_hydra
from bench.simulation import GROUP, SimulatedRun, simulated
from bench.stored_runs import observation
from hydra.client.ledger import Ledger
from hydra.config.scenario import resolve
from hydra.measure.latency import merge_histograms
from hydra.measure.measured_step import MeasuredStep
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import ClusterSpec, Figure, StepPlan, value_of
from hydra.monitor.progress_view import Observer
from hydra.run import runner
from hydra.run.context import RunContext
from hydra.store.database import DATABASE, RunStore
from hydra.wire.data_message import pack_batch, unpack_batch
from hydra.wire.histogram import LatencyRecorder

Values = tuple[float, ...]
Points = Sequence[tuple[float, float]]
_DECADES: Final = 2.0


def slope(points: Points) -> float:
    """The slope of a line through the logarithms of the points of the last two decades."""
    largest = max(x for x, _ in points)
    late = [(math.log(x), math.log(y)) for x, y in points if x >= largest / 10**_DECADES * 0.99]
    xs, ys = zip(*late, strict=True)
    return float(np.polyfit(xs, ys, 1)[0])


class Growth:
    """Measures one cost after the other at each size, and keeps the last points for a plot.

    Args:
        sizes: rising, over at least two decades.
        costs: measures the costs at a size.
    """

    def __init__(self, sizes: Sequence[int], costs: Callable[[int], Values]) -> None:
        self._sizes = sizes
        self._costs = costs
        self._last: list[tuple[int, Values]] = []

    def slopes(self) -> Values:
        """The slope of each cost."""
        self._last = [(size, self._costs(size)) for size in self._sizes]
        of_costs = zip(*(costs for _, costs in self._last), strict=True)
        return tuple(slope(list(zip(self._sizes, costs, strict=True))) for costs in of_costs)

    def points(self) -> Points:
        """The sizes, and the first cost at each, of the last measurement."""
        return [(size, costs[0]) for size, costs in self._last]


# --- clients ---------------------------------------------------------------------------------------------------------

_ZMTP_PUBLISHER: Final = 16_667
"""The most subscribers of a publisher, whose hard limit of open files may be 20,000."""


def of_clients(scenario: str, client: str, clients: int) -> Values:
    """Seconds of start, configuring and reports; CPU seconds of the whole run; memory of the controller, bytes.

    Args:
        scenario: the scenario.
        client: the implementation; ``packed``: native, 100 to a process.
        clients: the number of subscribers.
    """
    implementation = ("native", "--clients-per-process", "100") if client == "packed" else (client,)
    words = ["--client", *implementation, "--clients", str(clients), "--rate", "1", "--duration", "2"]
    if client == "zmtp" and clients > _ZMTP_PUBLISHER:
        words += ["--publishers", str(-(-clients // _ZMTP_PUBLISHER)), "--subscriptions", "one"]
    run = run_hydra(scenario, *words)
    last = run.phases_s[-1]
    total_s = run.ready_s + last["settings"] + last["reports"] + run.stored_s[-1]
    return total_s, run.cpu_s, float(run.controller_bytes)


def of_simulated(clients: int) -> Values:
    """Seconds of start, configuring and reports; the controller's CPU seconds; its memory, bytes."""
    run = simulated(clients)
    return run.total_s, run.cpu_s, float(run.peak_bytes)


# --- groups ----------------------------------------------------------------------------------------------------------

_SIMULATED: Final = 10_000
_FEW, _MANY = 100, 1_000
"""Groups."""


def configured_in(groups: int) -> float:
    """Seconds until 10,000 simulated clients in this number of groups have acknowledged their settings."""
    return _in_groups(groups).configured_s


def each_group() -> Values:
    """Open files of the controller, and messages with settings, that each further group adds."""
    few, many = _in_groups(_FEW), _in_groups(_MANY)
    further = _MANY - _FEW
    return (many.files - few.files) / further, (many.commands - few.commands) / further


def _in_groups(groups: int) -> SimulatedRun:
    return simulated(_SIMULATED, _SIMULATED // groups)


def really_configured_in(groups: int) -> float:
    """Seconds until 1,000 native clients in this number of groups have acknowledged their second settings."""
    text = (programs.TREE / "conf" / "hydra.toml").read_text()
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(text.replace("max_group = 1000 ", f"max_group = {GROUP // groups} "))
        config.flush()
        words = ["--client", "native", "--clients", str(GROUP), "--rate", "1", "--duration", "2"]
        return run_hydra("zmqfixed", *words, "--config", config.name).phases_s[-1]["settings"]


# --- publishers ------------------------------------------------------------------------------------------------------

_MESSAGES: Final = 400_000
_BATCH: Final = 1000
_NOW_NS: Final = 10**12


def python_account(publishers: int, length: int = _BATCH) -> float:
    """Nanoseconds of CPU that the account of a message takes in Python: header, ledger and latency.

    Args:
        publishers: the publishers, which send the messages in turn.
        length: messages of a batch, a multiple of the publishers; ``SCALAR_LIMIT`` of hydra/client/ledger.py and
            hydra/wire/histogram.py is the length from which arrays are faster.
    """
    each = length // publishers
    batches: list[list[bytes]] = []
    for first in range(0, _MESSAGES // publishers, each):
        of_all = [
            pack_batch(1, p, first, np.full(each, _NOW_NS - 5_000_000, np.uint64), [bytes(76)] * each)
            for p in range(publishers)
        ]
        batches.append([message for turn in zip(*of_all, strict=True) for message in turn])
    ledger, latency = Ledger(1, range(publishers)), LatencyRecorder()
    began = time.process_time_ns()
    for batch in batches:
        ours = ledger.record(unpack_batch(batch), _NOW_NS, _NOW_NS)
        latency.record(ours["time_ns"], _NOW_NS)
    return (time.process_time_ns() - began) / _MESSAGES


def native_account(publishers: int) -> float:
    """Nanoseconds that the account of a message takes in the native client, in batches of 1,000 messages."""
    return programs.numbers(programs.bare("bench-ledger"), "paced", publishers, _BATCH)[0]


def of_publishers(publishers: int) -> Values:
    """The largest memory of a native subscriber that hears this number of publishers, bytes."""
    words = ["--client", "native", "--clients", "100", "--publishers", str(publishers), "--duration", "3"]
    run = run_hydra("zmqfixed", *words, "--rate", f"{2000 / publishers:g}")
    return (run.sums[-1]["subscriber"]["max_rss_bytes"],)


# --- rows ------------------------------------------------------------------------------------------------------------


def of_real_rows(rows: int) -> Values:
    """CPU seconds of the controller for each row behind the first; bytes of run.db a row."""
    cpu_s: list[float] = []

    def look(pid: int) -> None:
        used = psutil.Process(pid).cpu_times()
        cpu_s.append(used.user + used.system)

    varied = f"sweep.vary.burst={list(range(1, rows + 1))}"
    words = ["--client", "native", "--clients", "10", "--duration", "0.2", "--rate", "100", "--set", varied]
    run = run_hydra("zmqfixed", *words, watch=look)
    return (cpu_s[-1] - cpu_s[0]) / (rows - 1), run.database_bytes / rows


class RowCosts(msgspec.Struct, frozen=True):
    """What a row of a run costs the controller, beside the clients.

    Attributes:
        cpu_s: CPU seconds in which a row is decided, stored, shown and written into the tables.
        resume_s: CPU seconds, a row, until a finished run that is resumed has found that no row is left.
        stored_bytes: the size of run.db, a row.
    """

    cpu_s: float
    resume_s: float
    stored_bytes: float


def of_rows(rows: int) -> Values:
    """The costs of a row in a run of this number of rows, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.growth", str(rows)],
        cwd=programs.TREE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return msgspec.structs.astuple(msgspec.json.decode(done.stdout, type=RowCosts))


class _StoredSteps:
    """In place of measured steps: each step has the same reports of 10 subscribers.

    Args:
        store: the store of the run.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._observation = observation(10)
        self._histograms = merge_histograms(self._observation)
        self._figures = StepFigures.of_step(MeasuredStep(self._observation, self._histograms))
        self._epoch = store.last_epoch()

    def take(self, plan: StepPlan) -> StepResult:
        """Stores a step with this plan."""
        self._epoch += 1
        varied: dict[str, Figure] = {"clients": plan.clients, "msg_batch": value_of(plan.settings, "msg_batch")}
        result = StepResult(self._epoch, plan, "ok", StepFigures.of({**self._figures, **varied}))
        self._store.add_step(result, replace(self._observation, plan=plan), self._histograms)
        return result


def _measure_rows(rows: int) -> RowCosts:
    """Runs the rows in this process."""
    resolved = resolve("kafka-batch", {"sweep.clients": [10], "sweep.vary.msg_batch": list(range(1, rows + 1))})

    @contextmanager
    def stored(context: RunContext) -> Iterator[_StoredSteps]:
        yield _StoredSteps(context.store)

    with tempfile.TemporaryDirectory() as name, patch.object(runner, "_up", stored):
        folder = Path(name) / "run"
        took: list[float] = []
        for is_new in (True, False):
            metadata: Mapping[str, object] = {"scenario": resolved.scenario, "name": "run"}
            with RunStore.create(folder, metadata) if is_new else RunStore.open(folder, writable=True) as store:
                observer: Any = Observer(StringIO(), plain=True)
                context = RunContext(resolved, ClusterSpec(()), _no_engine(), _no_engine(), store, observer)
                began_s = time.process_time()
                runner.run(context)
                took.append((time.process_time() - began_s) / rows)
        return RowCosts(took[0], took[1], (folder / DATABASE).stat().st_size / rows)


def _no_engine() -> Any:
    """In place of an engine and a system, which stored steps do not need."""
    return None


if __name__ == "__main__":
    print(msgspec.json.encode(_measure_rows(int(sys.argv[1]))).decode())
