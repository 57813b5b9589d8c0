"""What an idle, connected native Kafka subscriber costs in memory: the target is at most 1.2 MB PSS at 1,000 clients.

One group of subscribers, each proven to read by a probe, then left alone. Memory is from /proc/PID/smaps_rollup, a
client's part of its process; threads and descriptors are a process's. What processes share (the program, the libraries,
what the parent touched before it forked) is divided by all that share it, so PSS falls a little with more clients.

Run: python bench/native_kafka_memory.py [CLIENTS …] [--clients-per-process K] [--programs FOLDER]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from hydra.control.controller import Controller
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.topics import Topics
from hydra.model import SharedSettings
from hydra.native import build
from hydra.wire.messages import Configure, PublisherEndpoint

TREE = Path(__file__).resolve().parents[1]
SHARED = SharedSettings(burst=100)
PUBLISHER = 0
SETTLE_S = 2.0
AIM_BYTES = 1_200_000


def _kib(pid: int) -> tuple[int, int]:
    """PSS, and what is private to the process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines[1:]) if rest}
    return fields["Pss"], fields["Private_Clean"] + fields["Private_Dirty"]


def measure(program: Path, clients: int, packed: int, bootstrap: str) -> None:
    """Prints one line."""
    controller = Controller("bench")
    lifeline = os.pipe()
    ids = list(range(1, clients + 1))

    def launch(kind: str, group: str, first: int, count: int) -> subprocess.Popen[bytes]:
        controller.roster.expect(group, range(first, first + count))
        names = ["--group", group, "--first-id", str(first), "--count", str(count)]
        environment = {**os.environ, **controller.environment, "HYDRA_LIFELINE": str(lifeline[0])}
        if kind == "kafka-sub":
            names += ["--clients-per-process", str(packed)]
        return subprocess.Popen([program, kind, *names], env=environment, pass_fds=(lifeline[0],))

    groups = [launch("kafka-pub", "p", PUBLISHER, 1), launch("kafka-sub", "s", 1, clients)]
    try:
        roster = controller.roster
        if not controller.wait_until(lambda: len(roster.present()) == clients + 1, 120):
            raise TimeoutError("hello")
        topics = Topics(bootstrap, {}, f"memory{clients}")
        kafka = {"bootstrap": bootstrap, "topic": topics.create("t"), "offsets": {0: 0}}
        roster.begin(1)
        began = time.monotonic()
        controller.tell([PUBLISHER], Configure(epoch=1, settings=SHARED, publishers=[], probe=True, system=kafka))
        listen = [PublisherEndpoint(PUBLISHER)]
        controller.tell(ids, Configure(epoch=1, settings=SHARED, publishers=listen, probe=True, system=kafka))
        if not controller.wait_until(lambda: len(roster.answers.ready) == clients + 1, 120):
            raise TimeoutError(f"ready: {len(roster.answers.ready)}, {set(roster.answers.errors.values())}")
        ready_s = time.monotonic() - began
        # Probes go on; the next epoch without them leaves everybody idle.
        roster.begin(2)
        end = topics.end_offsets(str(kafka["topic"]))
        quiet = {**kafka, "offsets": end}
        everybody = [PUBLISHER, *ids]
        controller.tell(everybody, Configure(epoch=2, settings=SHARED, publishers=[], probe=False, system=quiet))
        if not controller.wait_until(lambda: len(roster.answers.acked("configure")) == clients + 1, 60):
            silent = set(everybody).difference(roster.answers.acked("configure"))
            raise TimeoutError(f"the second configuration of {sorted(silent)[:5]}: {roster.answers.errors}")
        settled = time.monotonic() + SETTLE_S
        controller.wait_until(lambda: time.monotonic() > settled, SETTLE_S + 1)
        # The last child of a parent is its relay or a client; only clients have librdkafka's threads.
        children = [int(p) for p in Path(f"/proc/{groups[1].pid}/task/{groups[1].pid}/children").read_text().split()]
        subscribers = [pid for pid in children if _named(pid, "rdk:")]
        processes = -(-clients // packed)
        if len(subscribers) != processes:
            raise RuntimeError(f"{len(subscribers)} of {processes} processes with librdkafka's threads")
        pss, private = zip(*map(_kib, subscribers), strict=True)
        own = sum(private) / clients * 1024 / 1e6
        threads = len(list(Path(f"/proc/{subscribers[0]}/task").iterdir()))
        descriptors = len(list(Path(f"/proc/{subscribers[0]}/fd").iterdir()))
        mean = sum(pss) / clients * 1024
        print(
            f"{clients:>7} {packed:>6} {mean / 1e6:>8.3f} {max(pss) * 1024 / packed / 1e6:>8.3f} {own:>10.3f}"
            f" {threads:>7} {descriptors:>11} {ready_s:>8.1f}  {'good' if mean <= AIM_BYTES else 'TOO MUCH'}",
            flush=True,
        )
    finally:
        controller.quit()
        controller.wait_until(lambda: all(g.poll() is not None for g in groups), 20)
        for fd in lifeline:
            os.close(fd)
        controller.close()


def _named(pid: int, prefix: str) -> bool:
    return any(t.read_text().startswith(prefix) for t in Path(f"/proc/{pid}/task").glob("*/comm"))


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", type=int, nargs="*", default=[100, 300])
    parser.add_argument("--clients-per-process", type=int, default=1)
    parser.add_argument("--programs", type=Path, help="where native/ was built")
    options = parser.parse_args()
    if missing := build.missing():
        print(f"not measured: apt-get install {' '.join(missing)}")
        return 0
    programs = options.programs or TREE / "build" / "native-bench"
    if options.programs is None:
        build.build(TREE / "native", programs, "-DHYDRA_BENCH=ON", targets=("all",))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bootstrap = stack.enter_context(EmbeddedBroker(folder / "broker", warm=False)).bootstrap
        print("clients packed   PSS MB  largest private MB threads descriptors  ready s")
        for clients in options.clients:
            measure(programs / "hydra-client", clients, options.clients_per_process, bootstrap)
    return 0


if __name__ == "__main__":
    sys.exit(main())
