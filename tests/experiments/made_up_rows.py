"""Made-up rows of an experiment's parts, and its parts and tables as text, which are the same on every machine.

``python -m tests.experiments.made_up_rows`` writes the files of ``golden/`` again, after a change of what experiments
show.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from hydra.config.file_locations import experiments
from hydra.config.scenario import resolved_from
from hydra.experiments.experiment import Experiment, experiment_of
from hydra.model import Figure
from hydra.system.experiment import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

GOLDEN = Path(__file__).with_name("golden")
MOST_CLIENTS = 2

Row = dict[str, Figure]

RECORDS = ("records", "messages", "rebalance_ms", "fetch_ms")
RATES = ("records_per_sec", "mb_per_sec", "fetch_mb_per_sec", "fetch_records_per_sec")
TIMES = ("avg_latency_ms", "max_latency_ms", "p50_ms", "p95_ms", "p99_ms", "p99_9_ms")
TRAFFIC = (
    *("in_bytes_per_s", "replication_in_bytes_per_s", "out_bytes_per_s", "replication_out_bytes_per_s"),
    *("messages_per_s", "cpu_seconds_per_s", "interface_in_bytes_per_s"),
)
LATENCIES = (
    *("ack_p50_us", "ack_p99_us", "latency_p50_us", "latency_p99_us", "latency_p999_us", "latency_from_send_p50_us"),
    *("latency_from_send_p99_us", "records_per_batch", "compression_ratio", "avg_tx_rate_pps"),
)


def some(random: Random, names: Sequence[str], most: float) -> Row:
    """Figures by these names, one in eight of which is unknown."""
    return {name: round(random.uniform(1, most), 3) for name in names if random.random() < 7 / 8}


def client(random: Random, n: int) -> Row:
    figures = some(random, (*RECORDS, *RATES, *TIMES), 1e5)
    return {"agent": f"agent-{n // 2}", "began_ns": 1_700_000_000_000_000_000, **figures}


def row(random: Random, point: Mapping[str, Any]) -> Row:
    counts: Row = {"messages": point.get("messages"), "publishers": point["publishers"], "total_tx": 10**12}
    counts |= {"sent": random.randint(1000, 10**6), "lost": random.randint(0, 9), "duplicates": random.randint(0, 9)}
    marks: Row = {"passed": False, "late_pct": 2.5} if random.random() < 1 / 4 else {"passed": True}
    marks |= {"host_others_pct": 30.0} if random.random() < 1 / 4 else {}
    marks |= {"latency_bound_us": 152.3} if random.random() < 1 / 4 else {}
    result: Row = {"status": "ok", "account": random.choice(["exact", "not exact"])}
    if random.random() < 1 / 8:
        result |= {"status": "failed", "reason": "the broker is gone"}
    memory = {"host_memory_available_min_bytes": random.randint(10**9, 10**10)}
    named = {"point": point["name"], "requested_rate": point["rate"]}
    return {**named, **result, **counts, **marks, **memory, **some(random, LATENCIES, 5000)}


def result_of(part: ExperimentPart) -> PartResult:
    """The made-up result of a part."""
    rows, publishers, subscribers, servers = [], [], [], []
    for point in part.scenario["sweep"]["points"]:
        random = Random(f"{part.name} {point['name']}")
        rows.append(row(random, point))
        publishers.append([client(random, n) for n in range(min(point["publishers"], MOST_CLIENTS))])
        subscribers.append([client(random, n) for n in range(min(int(point.get("clients", 0)), MOST_CLIENTS))])
        servers.append({name: some(random, TRAFFIC, 1e7) for name in ("1", "2")})
    scenario = resolved_from(part.name, part.name, part.scenario).scenario
    return PartResult(part, scenario, rows, publishers, subscribers, servers)


def rounded(figure: Figure) -> Figure:
    """A figure with nine significant digits: the last ones depend on the machine's libraries."""
    return float(f"{figure:.9g}") if isinstance(figure, float) else figure


def line_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def of_part(part: ExperimentPart) -> list[str]:
    """The scenario of a part, each of its points, and the settings in the order of their columns."""
    sweep = dict(part.scenario["sweep"])
    points = [line_of(point) for point in sweep.pop("points")]
    varied = resolved_from(part.name, part.name, part.scenario).scenario.sweep.varied
    return [f"# part {part.name}", line_of({**part.scenario, "sweep": sweep}), *points, line_of(list(varied))]


def of_table(view: ExperimentTable) -> list[str]:
    """The columns, the rows, the notes and the plot of a table."""
    columns = (line_of({name: value for name, value in asdict(column).items() if value}) for column in view.columns)
    rows = (line_of([rounded(row.get(column.name)) for column in view.columns]) for row in view.rows)
    return [f"# table {view.title}", *columns, *rows, *view.notes, line_of([view.x, *view.y, dict(view.marks)])]


def text_of(experiment: Experiment) -> str:
    """The parts of an experiment at its scale, and its tables, as text."""
    order = ExperimentOptions(experiment.scale)
    done: list[PartResult] = []
    while (part := experiment.next_part(order, done)) is not None:
        done.append(result_of(part))
    lines = [line for each in done for line in of_part(each.part)]
    lines += [line for view in experiment.views(order, done) for line in of_table(view)]
    return "\n".join([*lines, "# lines", *experiment.lines(done)]) + "\n"


if __name__ == "__main__":
    for file in experiments().values():
        (GOLDEN / f"{file.name}.txt").write_text(text_of(experiment_of(file)))
