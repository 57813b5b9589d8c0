"""Whole runs with simulated relays: what 10 to 1,000,000 clients cost the controller, and what groups cost it.

The relays (bench/simulated_relays.py) are one process beside the controller. They speak the real protocol over real,
encrypted sockets, a connection for each group, and have no clients behind them. They report the rows of a real lossy
run of 100 subscribers, with histograms and missing ranges, repeated. Controller, deployment, steps, figures and store
are the real ones.
"""

from __future__ import annotations

import atexit
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import msgspec
import numpy as np
from click.testing import CliRunner

from bench import programs
from hydra.cli.main import cli as hydra
from hydra.client.linux_process import raise_open_files
from hydra.config.scenario import resolve
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepResult
from hydra.model import Agent, ClusterSpec, Group, GroupEvent, Launch, Resources
from hydra.monitor.progress_view import Observer
from hydra.monitor.step_progress import StepProgress
from hydra.run import step_start
from hydra.run.context import RunContext
from hydra.run.launcher import system_for
from hydra.run.runner import run
from hydra.store.database import RunStore
from hydra.sweep.interface import LadderProgress, SearchProgress
from hydra.system import Waiting
from hydra.wire.report_batch import BATCH_BYTES, COLUMNS
from hydra.wire.subscriber_table import SubscriberTable

GROUP: Final = 1000
"""Clients of a group, as in a cluster without another ``max_group``."""
RATE: Final = 2000.0
"""Messages/s that the publisher reports."""
DURATION_S: Final = 3.0
LEAD_NS: Final = 5_000
"""The lead of a start for each client: 80 µs for those that share a host's cores, which these do not."""
_RECORDED: Final = 100
"""Subscribers of the run whose reports are repeated."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What a run of one row took.

    Attributes:
        connected_s: seconds from the launch until all clients had connected.
        configured_s: seconds until all clients had acknowledged their settings.
        reports_s: seconds from the publishers' report until all reports were in.
        stored_s: seconds in which the figures were computed and stored.
        printed_s: seconds from the end of the window until the row was printed.
        cpu_s: CPU seconds of the controller without its imports and without the window.
        window_share: the share of a core that the controller used in the window.
        peak_bytes: the highest resident memory of the controller.
        files: open files of the controller in the window.
        commands: settings that the relays received, one for each message of the controller.
    """

    connected_s: float
    configured_s: float
    reports_s: float
    stored_s: float
    printed_s: float
    cpu_s: float
    window_share: float
    peak_bytes: int
    files: int
    commands: int

    @property
    def total_s(self) -> float:
        """Seconds of start, configuring, and reports until they are stored."""
        return self.connected_s + self.configured_s + self.reports_s + self.stored_s


def simulated(clients: int, group: int = GROUP) -> SimulatedRun:
    """One run of one row, in a process of its own.

    Args:
        clients: the number of subscribers.
        group: the most clients of a group.

    Raises:
        RuntimeError: it could not be measured.
    """
    words = [sys.executable, "-m", "bench.simulation", str(clients), str(group), str(_template(min(group, clients)))]
    done = subprocess.run(words, cwd=programs.TREE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=SimulatedRun)


# --- the relays' side ------------------------------------------------------------------------------------------------


class Simulation:
    """The process of the relays, as its parent sees it."""

    def __init__(self, template: Path) -> None:
        program = Path(__file__).with_name("simulated_relays.py")
        self._process = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._say(template=str(template))

    def dial(self, groups: Sequence[Mapping[str, object]], environment: Mapping[str, str]) -> None:
        """Has these groups connect."""
        self._say(groups=groups, environment=environment)

    def commands(self) -> int:
        """The settings that the relays have received so far."""
        return int(self._say(usage=True)["commands"])

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
    """An engine with one agent on which everything fits; a launched group is a connection of the relays' process."""

    address: Final = "127.0.0.1"
    is_local: Final = False

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._agent = Agent("simulated", "simulated", {}, Resources(cpus=1e9, mem=1e12, disk=1e12))
        self._events: list[GroupEvent] = []

    def agents(self) -> list[Agent]:
        """The only agent."""
        return [self._agent]

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Has the groups connect."""
        told = [
            {"id": g.id, "role": g.role, "first": g.first_client, "count": g.count, "agent": self._agent.id}
            for g in groups
        ]
        self._events += [GroupEvent(g.id, "running", self._agent.id, "") for g in groups]
        self._simulation.dial(told, groups[0].environment)
        return [Launch(g, self._agent, ()) for g in groups]

    def kill(self, groups: Iterable[str]) -> None:
        """Does nothing: relays end at the command to quit."""

    def events(self) -> list[GroupEvent]:
        """An event for each launched group."""
        events, self._events = self._events, []
        return events

    def confirm(self, wait: Waiting) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


# --- what the groups report ------------------------------------------------------------------------------------------


def record(folder: Path) -> SubscriberTable:
    """The reports of a real run that loses: a publisher at rate ``max``, subscribers with short queues.

    Raises:
        RuntimeError: the run lost nothing, or could not be measured.
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


@cache
def _template(clients: int) -> Path:
    """The file with what each group of this size reports."""
    file = _scratch() / f"group-{clients}"
    file.write_bytes(msgspec.msgpack.encode(parts(_recorded(), clients)))
    return file


@cache
def _recorded() -> SubscriberTable:
    return record(_scratch() / "recorded")


@cache
def _scratch() -> Path:
    """A folder for as long as this process runs."""
    folder = Path(tempfile.mkdtemp(prefix="hydra-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# --- one row ---------------------------------------------------------------------------------------------------------


class _Watching(Observer):
    """Notes the controller's CPU in the last window, its open files there, and when the row would be printed."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.window: list[tuple[float, float]] = []
        """(seconds since the window began, CPU seconds of this process) of the last step."""
        self.files = 0
        self.printed_ns = 0

    def tick(self, moment: StepProgress) -> None:
        """Called four times a second in the window."""
        if moment.doing == "sending":
            self.window.append((moment.elapsed_s, time.process_time()))
            self.files = len(list(Path("/proc/self/fd").iterdir()))

    def step_ended(
        self, result: StepResult, progress: SearchProgress | LadderProgress | None = None, *, again: bool = False
    ) -> None:
        """Called when the row is printed."""
        super().step_ended(result, progress, again=again)
        self.printed_ns = time.time_ns()


def measure(clients: int, group: int, template: Path, folder: Path) -> SimulatedRun:
    """Runs one row in this process."""
    raise_open_files()
    simulation = Simulation(template)
    overrides = {
        "sweep.clients": [clients],
        "sweep.duration_s": DURATION_S,
        "settings.rate": RATE,
        "client": "pyzmq",
        "publisher.constraints": [],
        "subscriber.constraints": [],
        "warmup_s": 0,
        "ready_timeout_s": 600,
    }
    resolved = resolve("zmqfixed", overrides)
    observer, engine = _Watching(), SimulatedEngine(simulation)
    began_s = time.process_time()
    with (
        RunStore.create(folder, {"scenario": resolved.scenario, "name": folder.name}) as store,
        patch.object(step_start, "_LEAD_PER_CLIENT_NS", LEAD_NS),
    ):
        cluster = ClusterSpec(tuple(engine.agents()), max_group=group)
        code = run(RunContext(resolved, cluster, engine, system_for(resolved), store, observer)).code
        took_s = {event.kind: event.data.fields["took_s"] for event in store.events() if "took_s" in event.data.fields}
        rows = store.results()
        window_ns = store.window_ns(rows[-1].epoch) if rows else (0, 0)
    commands = simulation.commands()
    simulation.close()
    if code or len(rows) != 1 or rows[0].figures["rx_clients"] != clients:
        raise RuntimeError(f"{clients} clients: exit code {code}, {rows}")
    phases = dict(took_s["phases"])
    (first_s, first_cpu_s), (last_s, last_cpu_s) = observer.window[0], observer.window[-1]
    return SimulatedRun(
        took_s["present"],
        phases["settings"],
        phases["reports"],
        took_s["stored"],
        (observer.printed_ns - window_ns[1]) / 1e9,
        time.process_time() - began_s - (last_cpu_s - first_cpu_s),
        (last_cpu_s - first_cpu_s) / (last_s - first_s),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        observer.files,
        commands,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = measure(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(name) / "run")
    print(msgspec.json.encode(found).decode())
