"""What 10,000 to 1,000,000 clients cost the controller: a whole run, `hydra report` included, of simulated relays.

The relays (bench/simulated_relays.py) are one process beside the controller. They speak the real protocol over real,
encrypted sockets, a connection for each group of 1,000 clients, and have no clients behind them. What they report are
the rows of a real lossy run of 100 subscribers that is made first, with its histograms and missing ranges, repeated.
Controller, deployment, steps, figures, store and report are the real ones.

A row for each client count, each in a process of its own. Times are the wall clock's; the relays' CPU, which they
would take elsewhere if they were real, is over the whole run:

- present: from the launch until all clients have been told of; configured: until all have acknowledged the settings;
- reports: from the end of the window until all are in and stored;
- window: the controller's CPU in the step's window, in % of a core;
- resident: the controller's peak; report: `hydra report` for this run, from its start to its end;
- slope: of reports over clients, between this row and the one before, both on logarithmic scales.

Run: python bench/controller_scale.py [CLIENTS …] [--duration S]
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import msgspec
import numpy as np
from click.testing import CliRunner
from tabulate import tabulate

from hydra.cli.main import cli as hydra
from hydra.config.scenario import resolve
from hydra.measure.observation import Observation
from hydra.model import Agent, ClusterSpec, Group, GroupEvent, Launch, Resources, StepPlan, StepResult
from hydra.monitor.progress_view import Observer
from hydra.monitor.step_progress import StepProgress
from hydra.run import step_start
from hydra.run.context import RunContext
from hydra.run.launcher import system_for
from hydra.run.runner import run
from hydra.store.database import RunStore
from hydra.system import Waiting
from hydra.wire.report_batch import BATCH_BYTES, COLUMNS
from hydra.wire.subscriber_table import SubscriberTable

GROUP: Final = 1000
"""Clients of a group: what a cluster's ``max_group`` is without more."""
RATE: Final = 2000.0
"""Messages/s that the publisher says it sent."""
LEAD_NS: Final = 5_000
"""How far ahead a window is named for each client: 0.25 ms for those that share a host's cores, which these do not."""
_RECORDED: Final = 100
"""Subscribers of the run whose reports are repeated."""


# --- the relays' side ------------------------------------------------------------------------------------------------


class Simulation:
    """The process of the relays, seen from here."""

    def __init__(self, template: Path) -> None:
        program = Path(__file__).with_name("simulated_relays.py")
        self._process = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._say(template=str(template))

    def dial(self, groups: Sequence[Mapping[str, object]], environment: Mapping[str, str]) -> None:
        """Has these groups dial in."""
        self._say(groups=groups, environment=environment)

    def cpu_s(self) -> float:
        """CPU seconds that the relays have taken so far."""
        return float(self._say(usage=True)["cpu_s"])

    def close(self) -> None:
        """Ends them."""
        self._process.communicate()

    def _say(self, **command: object) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class SimulatedEngine:
    """One agent on which everything fits; a group that is launched there dials in, and does nothing else."""

    address: Final = "127.0.0.1"
    is_local: Final = False

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._agent = Agent("simulated", "simulated", {}, Resources(cpus=1e9, mem=1e12, disk=1e12))
        self._events: list[GroupEvent] = []

    def agents(self) -> list[Agent]:
        """The one."""
        return [self._agent]

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Has them dial in."""
        told = [
            {"id": g.id, "role": g.role, "first": g.first_client, "count": g.count, "agent": self._agent.id}
            for g in groups
        ]
        self._events += [GroupEvent(g.id, "running", self._agent.id, "") for g in groups]
        self._simulation.dial(told, groups[0].environment)
        return [Launch(g, self._agent, ()) for g in groups]

    def kill(self, groups: Iterable[str]) -> None:
        """They end when they are told to quit."""

    def events(self) -> list[GroupEvent]:
        """That they run."""
        events, self._events = self._events, []
        return events

    def confirm(self, wait: Waiting) -> None:
        """Nobody else ends it."""

    def close(self) -> None:
        """Nothing is left to do."""


# --- what the groups report ------------------------------------------------------------------------------------------


def record(folder: Path) -> SubscriberTable:
    """The reports of a real run that loses: a publisher at rate ``max``, subscribers with short queues.

    Raises:
        RuntimeError: it lost nothing, or could not be measured.
    """
    seen: list[SubscriberTable] = []
    add_step = RunStore.add_step

    def kept(store: RunStore, result: StepResult, observation: Observation | None = None, *rest: Any) -> None:
        if observation is not None:
            seen.append(observation.subscriber_reports)
        add_step(store, result, observation, *rest)

    flags = f"--rate 40000 --clients {_RECORDED} --client pyzmq --duration 2 --sndhwm 1000 --rcvhwm 1000"
    with patch.object(RunStore, "add_step", kept):
        ended = CliRunner().invoke(hydra, ["zmqfixed", *flags.split(), "--out", str(folder)])
    if not seen or not int(seen[-1].missing.sum()):
        raise RuntimeError(f"no run that loses: {ended.output[-1000:]}")
    return seen[-1]


def parts(table: SubscriberTable, clients: int) -> list[tuple[int, list[tuple[str, int]], bytes]]:
    """A group's batches without their heads: the rows of the table, again and again, a megabyte or so at a time."""
    row_bytes = sum(getattr(table, name).nbytes for name, _ in COLUMNS) / len(table)
    most = max(int(BATCH_BYTES / row_bytes), 1)
    found = []
    for first in range(0, clients, most):
        rows = np.arange(first, min(first + most, clients)) % len(table)
        columns = [(name, getattr(table.take(rows), name)) for name, _ in COLUMNS]
        payload = b"".join(values.tobytes() + bytes(-values.nbytes % 8) for _, values in columns)
        found.append((len(rows), [(name, len(values)) for name, values in columns], payload))
    return found


# --- one row ---------------------------------------------------------------------------------------------------------


class Watching(Observer):
    """Notes the CPU time of the controller and of the relays at the begin and the end of each window."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.window: list[tuple[float, float]] = []
        """(seconds since the window began, CPU seconds of this process), of the last step."""

    def step_begins(self, plan: StepPlan, left_s: float) -> None:  # noqa: ARG002
        """Forgets the warm-up."""
        self.window.clear()

    def tick(self, moment: StepProgress) -> None:
        """Called four times a second."""
        self.window.append((moment.elapsed_s, time.process_time()))


def measure(clients: int, template: Path, duration_s: float, folder: Path) -> dict[str, float]:
    """The figures of one row, by heading."""
    simulation = Simulation(template)
    resolved = resolve(
        "zmqfixed",
        {
            "sweep.clients": [clients],
            "sweep.duration_s": duration_s,
            "settings.rate": RATE,
            "client": "pyzmq",
            "publisher.constraints": [],
            "subscriber.constraints": [],
            "warmup_s": 0,
            "ready_timeout_s": 600,
        },
    )
    observer = Watching()
    engine = SimulatedEngine(simulation)
    with (
        RunStore.create(folder, {"scenario": resolved.scenario, "name": folder.name}) as store,
        patch.object(step_start, "_LEAD_PER_CLIENT_NS", LEAD_NS),
    ):
        cluster = ClusterSpec(tuple(engine.agents()))
        code = run(RunContext(resolved, cluster, engine, system_for(resolved), store, observer)).code
        said: dict[str, list[str]] = defaultdict(list)
        for event in store.events():
            said[event.kind].append(event.text)
        rows = store.results()
    relays_s = simulation.cpu_s()
    simulation.close()
    if code or len(rows) != 1 or rows[0].figures["rx_clients"] != clients:
        raise RuntimeError(f"{clients} clients: exit code {code}, {rows}")
    phases = _seconds(said["phases"][-1])
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "hydra.cli.main", "report", folder], check=True, capture_output=True)
    (first_s, first_cpu_s), (last_s, last_cpu_s) = observer.window[0], observer.window[-1]
    return {
        "clients": clients,
        "present s": float(re.findall(r"after ([0-9.]+) s", said["present"][0])[0]),
        "configured s": phases["settings"],
        "reports s": phases["reports"] + float(re.findall(r": ([0-9.]+) s", said["stored"][-1])[0]),
        "relays' CPU s": relays_s,
        "window %": 100 * (last_cpu_s - first_cpu_s) / (last_s - first_s),
        "resident MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "report s": time.perf_counter() - began,
    }


def _seconds(phases: str) -> dict[str, float]:
    said = phases.partition(": ")[2].split(", ")
    return {name: float(s) for name, s in (part.removesuffix(" s").rsplit(" ", 1) for part in said)}


def main() -> int:
    """Prints a table, a row for each client count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--duration", type=float, default=5.0, help="seconds of the step (default: 5)")
    parser.add_argument("--template", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.template:
            print(json.dumps(measure(options.clients[0], options.template, options.duration, folder / "run")))
            return 0
        template = folder / "template"
        template.write_bytes(msgspec.msgpack.encode(parts(record(folder / "recorded"), GROUP)))
        rows: list[dict[str, Any]] = []
        for clients in options.clients:
            command = [sys.executable, __file__, str(clients), "--template", str(template)]
            said = subprocess.run([*command, "--duration", str(options.duration)], capture_output=True, text=True)
            if said.returncode:
                raise RuntimeError(said.stderr[-2000:])
            rows.append(json.loads(said.stdout.splitlines()[-1]))
            rows[-1]["slope"] = _slope(rows[-2], rows[-1]) if len(rows) > 1 else None
        print(tabulate(rows, headers="keys", floatfmt=".3g"))
    return 0


def _slope(before: dict[str, float], after: dict[str, float]) -> float:
    """How fast the time for reports grows with the clients, on logarithmic scales."""
    return math.log(after["reports s"] / before["reports s"]) / math.log(after["clients"] / before["clients"])


if __name__ == "__main__":
    sys.exit(main())
