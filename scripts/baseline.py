#!/usr/bin/env python3
"""Records what Hydra says, so that two versions can be compared: help, refusals, and what they make of the same runs.

    scripts/baseline.py runs RUNS               # measures the runs, once, for a few seconds each
    scripts/baseline.py record RUNS FOLDER      # what the hydra on PYTHONPATH says, into a new folder
    scripts/baseline.py compare BEFORE AFTER    # the difference of two such folders; exit code 1 if there is one

Figures and times are those of the stored runs. What differs each time, folders and ids of cells, is taken out.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import click
import psutil

_MAIN: Final = "import sys; from hydra.cli.main import main; sys.argv[0] = 'hydra'; sys.exit(main())"
_HYDRA: Final = [sys.executable, "-P", "-c", _MAIN]
_SMALL: Final = "--rate 200 --set warmup_s=0.1 --duration 1"
RUNS: Final = {
    "zmq-fixed": f"zmqfixed --clients 1,2,3,4,5,6 {_SMALL} --set sweep.seconds=true",
    "zmq-overload": f"zmqfixed --clients 2 --rcvhwm 1 --sndhwm 1 {_SMALL} --rate max",
    "zmq-killed": f"zmqfixed --clients 3 {_SMALL} --duration 8",
    "zmq-failed": f"zmqfixed --clients 2 {_SMALL} --set ready_timeout_s=0.05",
    "zmq-repeats": f"zmqfixed --clients 2,3 {_SMALL} --repeat 3",
    "zmq-search": "zmqrate --interval --clients 2 --duration 0.5 --search-steps 4",
    "zmq-turns": f"zmqfixed --clients 2 {_SMALL} --compare pyzmq,pyzmq --repeat 3",
    "zmq-slo": "slo zmqfixed --clients 2 --rate 100 --duration 3s --p99 500ms --loss 0",
    "nats": f"nats-fixed --clients 1,2 {_SMALL} --set sweep.vary.message_size=[24,1000]",
    "mqtt": f"mqtt-fixed --clients 1,2 {_SMALL}",
    "kafka": "kafka-batch --clients 1 --rate 500 --duration 1 --msg-batch 10,100",
    "experiment": "kafka-perf single-consumer --scale 0.0002 --implementation kafka-python",
}
"""Folder and command. A subscriber of ``zmq-killed`` is killed within its window; ``zmq-failed`` has no row."""
_BASE, _KILLED, _FAILED = "zmq-fixed", "zmq-killed", "zmq-failed"
MORE: Final = {
    "runs": "runs .", "runs-json": "runs . --json", "fit": f"fit {_BASE}", "fit-json": f"fit {_BASE} --json",
    "compare": f"compare {_BASE} zmq-repeats {_KILLED} --all", "compare-json": f"compare {_BASE} zmq-repeats --json",
    "compare-turns": "compare zmq-turns --all --html compare.html", "compare-failed": f"compare {_BASE} {_FAILED}",
    "compare-systems": f"compare {_BASE} nats", "schema": "schema", "schema-search": "schema zmqrate",
}  # fmt: skip
"""Of the stored runs, all together."""
_OF_FILES: Final = ("zmqfixed", "zmqrate", "kafka-batch", "nats-fixed", "mqtt-rate", "single-consumer")
FILES: Final = {
    "binary.toml": b"\xff\xfe\0", "syntax.toml": b"a = ", "empty.toml": b"", "key.toml": b'system = "zmq"\nclint = 1\n',
    "system.toml": b'system = "nosuch"\n', "type.toml": b'system = "zmq"\n[sweep]\nclients = "many"\n',
    "fixed.toml": b'system = "zmq"\n[sweep]\nclients = [2]\n[settings]\nrate = 10\n', "huge.toml": b"#" * 1_000_001,
    "both.toml": b'system = "zmq"\n[sweep]\nclients = [2]\n[sweep.search]\n[sweep.vary]\nrate = [1, 2]\n',
}  # fmt: skip
REFUSALS: Final = {
    "": ("", "nosuch", "zmqfixd", "kill", "ps", "ps --master local", "broker up foo", "serve . --port 70000"),
    "zmqfixed": ("--foo", "--clients", "--clients 0", "--clients 3,x", "--clients 30,30", "--clients 1000000"),
    "zmqfixed --clients 2": (
        "--rate abc", "--rate -5", "--duration 1q", "--sndhwm 99999999999999", "--message-size 3", "--payload json",
        "--payload lines --message-size 99", "--payload-ratio nan", "--repeat 0", "--set nonsense", "--set x=[",
        "--set warmup_s=1e300", "--set settings.ratee=3", "--set settings.acks=1", "--set name=../x", "--client nosuch",
        "--client zmtp --secure", "--client zmtp --rcvhwm 0", "--fail-if nonsense", "--fail-if 'nonsense < 1'",
        "--interleave", "--compare pyzmq", "--compare pyzmq,nosuch", "--out /",
        "--out fixed.toml/x", "--resume nosuch", "--config nosuch.toml", "--config fixed.toml", "--master http://host",
        "--advertise 1.2.3.4", "--in-cluster",
    ),
    "zmqrate": ("--loss-target 200", "--sndhwm 5,5", "--set sweep.search.gain_target=-1", "--client zmtp"),
    "kafka-fixed --clients 2": (
        "--bootstrap h:99999", "--bootstrap h:1 --kafka-prop no.such.property=1", "--bootstrap h:1 --preset nosuch",
        "--bootstrap h:1 --kafka-prop-file nosuch", "--bootstrap h:1 --client pyzmq",
    ),
    "kafka-batch": ("--msg-batch 100,100", "--msg-batch 0"),
    "kafka-perf": ("nosuch", "single-consumer --scale 0", "single-consumer --set kafka.topic.foo=1"),
    "kafka-clean --bootstrap h:1": ("nosuch",), "nats-fixed": ("--replicas 0",),
    "mqtt-fixed": ("--servers h:1 --password-file nosuch", "--qos 3"), "check": ("single-consumer", "key.toml"),
    "run": ("nosuch", *FILES, "fixed.toml --scale 2", "fixed.toml --rate 0", "fixed.toml --foo"),
    "slo": ("fixed.toml", "fixed.toml --p99 5", "fixed.toml --loss 200"), "report": ("nosuch",), "fit": ("nosuch",),
    "compare": ("", "nowhere elsewhere", "same same"),
}  # fmt: skip
"""Command lines that are refused: how they begin, and how they end."""


def measure(runs: Path) -> None:
    """Measures all runs that are not there yet, with servers that come along."""
    runs.mkdir(parents=True, exist_ok=True)
    for name in (name for name in RUNS if not (runs / name).exists()):
        words = [*_HYDRA, *RUNS[name].split(), "--out", name]
        with subprocess.Popen(words, cwd=runs, stdout=subprocess.DEVNULL) as run:
            if name == _KILLED:
                _kill_a_subscriber(psutil.Process(run.pid), runs / name / "run.db")
        sys.stderr.write(f"{name}: exit code {run.returncode}\n")


def _kill_a_subscriber(run: psutil.Process, database: Path) -> None:
    """As soon as a second of its window is stored: the newest process of the run that has none of its own is one."""
    while run.is_running() and not _asked(database, "SELECT 1 FROM seconds WHERE epoch = 2"):
        with contextlib.suppress(psutil.TimeoutExpired):
            run.wait(0.1)
    leaves = [each for each in run.children(recursive=True) if not each.children()]
    max(leaves, key=psutil.Process.create_time).kill()


def _asked(database: Path, sql: str) -> list[object]:
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(database)) as stored, stored:
        return stored.execute(sql).fetchall()
    return []


def record(runs: Path, folder: Path) -> None:
    """Writes all that Hydra says into files of a new folder."""
    import hydra.cli.main  # PYTHONPATH says of which version; the other subcommands need none

    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as threads:
        work = Path(temporary)
        for name, content in FILES.items():
            (work / name).write_bytes(content)
        lines = [
            *_commands(hydra.cli.main.cli),
            *(f"{word} {file}" for word in ("run", "slo", "check") for file in _OF_FILES),
        ]
        asked = {f"help/{line.replace(' ', '-') or 'hydra'}": f"{line} --help".strip() for line in lines}
        refused = [f"{begin} {end}".strip() for begin, ends in REFUSALS.items() for end in ends]
        asked |= {f"refused/{re.sub(r'[^a-z0-9.,=]+', '-', line) or 'nothing'}": line for line in refused}
        said = dict(zip(asked, threads.map(lambda line: _said(line, work), asked.values()), strict=True))
        for name in RUNS:
            shutil.copytree(runs / name, work / name, ignore=shutil.ignore_patterns("sandbox", "report.*"))
        for found in threads.map(lambda name: _made(name, work), RUNS):
            said |= found
        said |= {f"runs/{name}": _said(line, work) for name, line in MORE.items()} | dict(_files(work))
        taken_out = {str(work): "WORK", str(Path(hydra.__file__).parents[1]): "TREE", sys.prefix: "PYTHON"}
        for name, text in said.items():
            for path, word in taken_out.items():
                text = text.replace(path, word)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def _commands(cli: click.Group) -> Iterator[str]:
    """Hydra's own, and those below them."""
    root = click.Context(cli)
    yield ""
    for name in cli.list_commands(root):
        yield name
        if isinstance(command := cli.get_command(root, name), click.Group):
            yield from (f"{name} {inner}" for inner in command.list_commands(root))


def _made(name: str, work: Path) -> dict[str, str]:
    """What is made of a stored run: its tables, as if it had ended before it could write them, and its page."""
    lines = {"report": f"report {name} --plotly shared"}
    if name != _FAILED:  # it would be tried again
        for database in [*(work / name).rglob("run.db")]:
            for file in ("table.md", "table.csv", "rows.json"):
                database.with_name(file).unlink(missing_ok=True)
            _asked(database, "UPDATE run SET value = '\"\"' WHERE key = 'ended'")
        line = f"{RUNS[name].partition(' --')[0]} --resume {name}"
        lines |= {"said": line, "said.json": f"{line} --json"}
    return {f"runs/{name}/{file}": _said(line, work) for file, line in lines.items()}


def _said(line: str, work: Path) -> str:
    """The exit code of a command and what it prints, without settings of the user's and what earlier runs have told."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HYDRA_", "XDG_"))}
    around = {**kept, "HOME": str(work / ".home"), "COLUMNS": "100"}
    words = [*_HYDRA, *shlex.split(line)]
    done = subprocess.run(words, cwd=work, env=around, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return f"$ hydra {line}\nexit code {done.returncode}\n{done.stderr.decode()}\n{done.stdout.decode()}"


def _files(work: Path) -> Iterator[tuple[str, str]]:
    """The files that commands wrote; of a page, its text as well."""
    for path in sorted([*work.glob("*.html"), *(path for name in RUNS for path in (work / name).rglob("*"))]):
        if path.suffix in {".md", ".csv", ".json", ".html"}:
            name, text = f"runs/{path.relative_to(work)}", path.read_text(encoding="utf-8")
            if path.suffix == ".html":
                shown = re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", "\n", text, flags=re.DOTALL)
                yield f"{name}.txt", "\n".join(filter(None, map(str.strip, shown.splitlines())))
                text = re.sub(r"\bcell-id=[0-9a-f]{8}\b", "cell-id=CELL", text)  # drawn anew each time
                text = re.sub(r"([>}\]],?)(?=[<{\[])", r"\1\n", text)
            yield name, text


def compare(before: Path, after: Path) -> int:
    """Prints the difference; 1 if there is one, else 0."""
    names = {path.relative_to(folder) for folder in (before, after) for path in folder.rglob("*") if path.is_file()}
    differ = 0
    for name in sorted(names):
        old, new = (at.read_text().splitlines() if at.exists() else [] for at in (before / name, after / name))
        lines = list(difflib.unified_diff(old, new, f"before/{name}", f"after/{name}", lineterm=""))
        sys.stdout.writelines(f"{line}\n" for line in lines)
        differ += bool(lines)
    sys.stderr.write(f"{differ} of {len(names)} files differ\n")
    return int(differ > 0)


SUBCOMMANDS: Final[dict[str, Callable[..., int | None]]] = {"runs": measure, "record": record, "compare": compare}

if __name__ == "__main__":
    word, *folders = sys.argv[1:] or [""]
    if word not in SUBCOMMANDS or len(folders) != (1 if word == "runs" else 2):
        sys.exit(__doc__)
    sys.exit(SUBCOMMANDS[word](*(Path(folder).resolve() for folder in folders)))
