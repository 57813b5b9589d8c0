"""Section 4: what the `hydra` command takes beside the seconds that it measures; each function measures once."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import Final

from bench import programs
from bench.clients.pyzmq_start import COMMAND as BARE_PYZMQ
from bench.failure import complaint
from bench.hydra_command import HYDRA, children_cpu_s, compiled, cpu_of, run_hydra, started
from bench.simulation import simulated
from bench.stored_runs import grid_run
from hydra.client.server_interface import ServerProgram, accepts, endpoint_of, free_ports
from hydra.config.cluster import load_cluster
from hydra.config.scenario import resolve
from hydra.config.shortages import check_all, read_limits
from hydra.kafkatest.broker import KafkaCluster
from hydra.kafkatest.program import KafkaProgram
from hydra.mqtttest.program import MosquittoJoin, MosquittoProgram
from hydra.mqtttest.system import SingleServer
from hydra.natstest.program import NatsProgram
from hydra.natstest.system import NatsCluster
from hydra.store.database import RunStore
from hydra.system import ServerCluster
from hydra.system.local_server import LocalServer

HOST: Final = "127.0.0.1"
_UP_WITHIN_S: Final = 60.0
_WITHIN_S: Final = 300.0

# --- the command -----------------------------------------------------------------------------------------------------


def answering(*words: str) -> float:
    """CPU seconds until `hydra` has answered and ended."""
    return cpu_of([*HYDRA, *words])


def importing_click() -> float:
    """CPU seconds of a Python that imports click."""
    return cpu_of([sys.executable, "-c", "import click"])


# --- steps -----------------------------------------------------------------------------------------------------------

_STEP_S: Final = 3.0


def beside_the_step() -> float:
    """Seconds of a run of one row of 10 clients, without the seconds of its window."""
    return _ten_clients(1) - _STEP_S


def each_further_row() -> float:
    """Seconds that each further row of a run adds, without the seconds of its window."""
    return (_ten_clients(4) - _ten_clients(1)) / 3 - _STEP_S


def _ten_clients(rows: int) -> float:
    sizes = ",".join(str(10 + row) for row in range(rows))
    return run_hydra("zmqfixed", "--clients", sizes, "--duration", f"{_STEP_S:g}").wall_s


# --- servers ---------------------------------------------------------------------------------------------------------


@cache
def _kafka() -> KafkaProgram:
    """Kafka, whose classes and storage were prepared once."""
    program = KafkaProgram()
    program.prepare()
    return program


Server = Callable[[], tuple[ServerProgram, ServerCluster]]

SERVERS: Final[dict[str, Server]] = {
    "mosquitto": lambda: (
        MosquittoProgram(),
        SingleServer(MosquittoJoin(max_queued_messages=1000, max_inflight_messages=20)),
    ),
    "nats-server": lambda: (NatsProgram(), NatsCluster()),
    "Kafka": lambda: (_kafka(), KafkaCluster()),
}


def server_up(name: str) -> float:
    """Seconds until a server that Hydra starts answers, without its warm-up."""
    program, cluster = SERVERS[name]()
    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer(program, cluster, Path(folder) / "server", warm=False)
        began = time.perf_counter()
        with server:
            return time.perf_counter() - began


def server_alone(name: str) -> float:
    """Seconds until the same program with the same settings answers the same request, started by itself."""
    program, cluster = SERVERS[name]()
    program.prepare()
    with tempfile.TemporaryDirectory() as folder:
        ports = free_ports(HOST, program.ports)
        endpoint = endpoint_of(HOST, ports)
        (join,) = cluster.join([endpoint])
        address = cluster.address([endpoint])
        command = program.command(Path(folder), endpoint, join)
        began = time.perf_counter()
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                while not (accepts(HOST, ports[0]) and cluster.up(address)):
                    if server.poll() is not None or time.perf_counter() > began + _UP_WITHIN_S:
                        raise RuntimeError(f"{name} did not answer")
                    time.sleep(0.001)
                return time.perf_counter() - began
            finally:
                server.kill()


def server_missing(name: str) -> str:
    """What this machine lacks for a server; "" if nothing."""
    program = {"mosquitto": "mosquitto", "nats-server": "nats-server", "Kafka": "java"}[name]
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return "" if found else f"{program} is not installed"


# --- clients ---------------------------------------------------------------------------------------------------------

Seconds = tuple[float, ...]


def lacks(client: str, clients: int) -> str:
    """What this machine lacks for a run of zmqfixed with this number of clients, as `hydra check` finds it."""
    resolved = resolve("zmqfixed", {"client": client, "sweep.clients": [clients]})
    (row,) = check_all(resolved, load_cluster(), read_limits())
    severe = (each for each in row.shortages if each.severe)
    return "; ".join(f"{each.what} ({each.has}, needs {each.needed}): {each.remedy}" for each in severe)


def clients_of(client: str, clients: int, *words: str) -> Seconds:
    """Seconds of a run of one row at 10 messages/s: all ready, configured again, window's end to the printed row."""
    flags = ["--client", client, "--clients", str(clients), "--rate", "10", "--duration", "2", *words]
    run = run_hydra("zmqfixed", *flags)
    configured = run.phases_s[-1]["settings"]
    return run.ready_s, configured, run.printed_s[-1]


def bare_sockets(clients: int, pairs: int) -> float:
    """Seconds until as many TCP connections of pairs of processes had a first message."""
    return programs.numbers(programs.bare("tcp-pairs"), clients, pairs)[0]


def bare_pyzmq(clients: int) -> float:
    """Seconds until forked processes with a socket of pyzmq each had a first message, the start of Python included."""
    began = time.perf_counter()
    subprocess.run([*BARE_PYZMQ, str(clients)], check=True, timeout=_WITHIN_S)
    return time.perf_counter() - began


def simulated_row(clients: int) -> float:
    """Seconds from the window's end until the row is printed, with simulated relays."""
    return simulated(clients).printed_s


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupted(client: str, clients: int) -> float:
    """Seconds from Ctrl-C within a window until no process of the run is left."""
    words = [sys.executable, "-m", "bench.start", "--interrupt", client, str(clients)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=programs.TREE, timeout=_WITHIN_S)
    return float(done.stdout.splitlines()[-1])


_PR_SET_CHILD_SUBREAPER: Final = 36


def _interrupt(client: str, clients: str) -> float:
    """The same, in a process of its own that becomes the parent of every orphan of the run."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        words = ["zmqfixed", "--client", client, "--clients", clients, "--rate", "10", "--duration", "600"]
        flags = ["--set", "warmup_s=0", "--quiet", "--out", str(out)]
        hydra = subprocess.Popen(
            [*HYDRA, *words, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + _WITHIN_S
        while not _in_window(out):
            if hydra.poll() is not None:
                raise RuntimeError(complaint(hydra.stderr.read() if hydra.stderr else ""))
            if time.monotonic() > until:
                raise RuntimeError(f"the run did not reach its window within {_WITHIN_S:g} s")
            time.sleep(0.1)
        time.sleep(1.0)  # the window begins a moment after its event
        began = time.perf_counter()
        hydra.send_signal(signal.SIGINT)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        return time.perf_counter() - began


def _in_window(out: Path) -> bool:
    if not (out / "run.db").exists():
        return False
    with RunStore.open(out) as store:
        return any(event.kind == "window" for event in store.events())


# --- pages -----------------------------------------------------------------------------------------------------------


class StoredRun:
    """A stored run, for as long as consecutive lines need it."""

    def __init__(self, made: Callable[[], AbstractContextManager[Path]]) -> None:
        self._made = made
        self._stack = ExitStack()
        self.folder = Path()

    def __enter__(self) -> Path:
        self.folder = self._stack.enter_context(self._made())
        return self.folder

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def report(self) -> Seconds:
        """Seconds, and CPU seconds, of `hydra report` for this run."""
        return _timed("report", str(self.folder))

    def first_list(self) -> Seconds:
        """Seconds, and CPU seconds, from the start of `hydra serve` until its list of this folder has arrived."""
        with tempfile.TemporaryDirectory() as cache_folder:
            cpu_s, began = children_cpu_s(), time.perf_counter()
            with started(*HYDRA, "serve", str(self.folder), environment={"XDG_CACHE_HOME": cache_folder}) as server:
                line = server.stdout.readline() if server.stdout else ""
                address = re.findall(r"http://\S+", line)[0]
                with urllib.request.urlopen(address, timeout=_WITHIN_S) as answer:
                    answer.read()
                took_s = time.perf_counter() - began
                server.send_signal(signal.SIGINT)
                server.wait(_WITHIN_S)
            return took_s, children_cpu_s() - cpu_s


def _timed(*words: str) -> Seconds:
    cpu_s, began = children_cpu_s(), time.perf_counter()
    subprocess.run([*HYDRA, *words], stdin=subprocess.DEVNULL, capture_output=True, check=True, env=compiled())
    return time.perf_counter() - began, children_cpu_s() - cpu_s


@contextlib.contextmanager
def many_runs(count: int) -> Iterator[Path]:
    """A folder of this many runs of 7 rows."""
    with grid_run(rows=7, clients=10) as run, tempfile.TemporaryDirectory() as name:
        for number in range(count):
            shutil.copytree(run, Path(name) / f"run-{number:04}")
        yield Path(name)


if __name__ == "__main__":
    print(_interrupt(*sys.argv[2:]))  # see `interrupted`
