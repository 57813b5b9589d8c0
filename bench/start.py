"""How long `hydra` takes before it answers: its help, and refusals of all kinds, beside a Python that does nothing.

Medians of interleaved runs, as a shell would start them; CPU time is the least of all runs, which other work on the
machine disturbs the least.

    python bench/start.py --runs 20 --asked "zmqrate --help" "zmqfixed --rate 0"
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

PYTHON = [sys.executable, "-c", "pass"]
HYDRA = [sys.executable, "-m", "hydra.cli.main"]
ASKED = (
    "--help",
    "zmqrate --help",
    "nosuch",
    "zmqfixed --nosuch 1",
    "zmqfixed --clients many",
    "zmqfixed --rate 0",
    "zmqfixed --set sweep.clinets=[3]",
    "zmqfixed --master nowhere://",
    "zmqfixed --resume nosuch",
    "zmqfixed --fail-if nosuch>1",
    "run nosuch",
    "run bad.toml",
    "check nosuch",
    "agents --config nosuch",
    "artifact nosuch",
    "runs nosuch",
    "report nosuch",
    "kafka-perf nosuch",
    "kafka-fixed --kafka-prop nosuch=1",
    "mqtt-fixed --qos 3",
    "nats-fixed --set nats.replicas=9",
)
BAD = 'system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\n[sweep]\nclinets = [2]\nduration_s = 1.0\n'


def run(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds until it has ended, and seconds of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--asked", nargs="+", default=ASKED, metavar="WORDS", help="what hydra is asked for")
    given = options.parse_args()
    runs: int = given.runs
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed Hydra is compiled
    commands = {"python -c pass": PYTHON, **{f"hydra {words}": [*HYDRA, *words.split()] for words in given.asked}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bad.toml").write_text(BAD)
        taken = {text: [run(command, folder)] for text, command in commands.items()}
        for text in (text for _ in range(runs) for text in commands):
            taken[text].append(run(commands[text], folder))
    print(f"{runs} runs each: median ms until it has answered, least ms of CPU")
    for text, all_of_it in taken.items():
        walls, cpus = zip(*all_of_it[1:], strict=True)
        print(f"{1000 * median(walls):8.0f} {1000 * min(cpus):8.0f}  {text}")


if __name__ == "__main__":
    main()
