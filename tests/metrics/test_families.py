"""Names, units and labels of exported metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hydra.monitor.metric_families import families
from hydra.monitor.run_snapshot import RunSnapshot
from tests.metrics.samples import exposed, running

ROOT = Path(__file__).resolve().parents[2]
RUN = {"run": "r", "system": "zmq"}
FIRST = {**RUN, "step": "1", "clients": "3"}
DUE = {**FIRST, "since": "due"}
SECOND = {**RUN, "step": "2", "clients": "3"}
UNITS = {"{message}": "_messages", "{message}/s": "_messages_per_second", "s": "_seconds", "By": "_bytes"}
"""What a name ends with, by its unit."""

CLIENTS = [
    ({**RUN, "role": role, "state": state}, count)
    for role, counts in (("publisher", (1, 1, 1)), ("subscriber", (3, 3, 2)))
    for state, count in zip(("asked", "connected", "telling"), counts, strict=True)
]
FOUND = {family.name: family for family in exposed()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hydra_sent_messages", [(RUN, 300)]),
        ("hydra_received_messages", [(RUN, 884)]),
        ("hydra_lost_messages", [(RUN, 6)]),
        ("hydra_steps", [({**RUN, "status": "ok"}, 1)]),
        ("hydra_step_info", [({**FIRST, "status": "ok"}, 1), ({**SECOND, "status": "running"}, 1)]),
        ("hydra_requested_rate_messages_per_second", [(FIRST, 100), (SECOND, 100)]),
        ("hydra_step_sent_rate_messages_per_second", [(FIRST, 100), (SECOND, 101)]),
        ("hydra_step_received_rate_messages_per_second", [(FIRST, 99), (SECOND, 98)]),
        ("hydra_step_aggregate_rate_messages_per_second", [(FIRST, 295)]),
        ("hydra_step_loss_ratio", [(FIRST, 0.01)]),
        ("hydra_step_latency_seconds", [({**DUE, "quantile": "0.5"}, 0.00012), ({**DUE, "quantile": "1"}, 2.0)]),
        ("hydra_step_elapsed_seconds", [(SECOND, 1.0)]),
        ("hydra_step_done_ratio", [(SECOND, 0.5)]),
        ("hydra_clients", CLIENTS),
        ("hydra_agent_cpu_ratio", [({**RUN, "agent": "here"}, 0.25)]),
        ("hydra_agent_memory_available_bytes", [({**RUN, "agent": "here"}, 6 << 30)]),
    ],
)
def test_a_figure_has_its_labels_and_its_value(name: str, expected: list[tuple[Mapping[str, str], float]]) -> None:
    found = FOUND[name].samples
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected])


def test_latencies_are_a_histogram() -> None:
    ((labels, found),) = FOUND["hydra_latency_seconds"].distributions
    assert labels == {**RUN, "since": "due"}
    assert found.count == 2


def test_what_nobody_knows_is_not_there() -> None:
    known = {family.name for family in families([RunSnapshot("r", "zmq")])}
    assert known == {"hydra_sent_messages", "hydra_received_messages"}
    assert families([]) == []


def test_labels_of_a_family_are_the_same_in_each_of_its_series() -> None:
    for family in families([running().snapshot, RunSnapshot("other", "kafka")]):
        labels = [labels for labels, _ in (*family.samples, *family.distributions)]
        assert len({frozenset(each) for each in labels}) == 1, family.name
        assert len({tuple(each.items()) for each in labels}) == len(labels), family.name


@pytest.mark.parametrize("name", FOUND)
def test_a_name_ends_with_its_unit(name: str) -> None:
    family = FOUND[name]
    assert re.fullmatch("hydra_[a-z_]+", name)
    if family.unit in UNITS:
        assert name.endswith(UNITS[family.unit])
    else:
        assert family.unit == "1" or name == f"hydra_{family.unit.strip('{}')}s"


def test_the_docs_have_every_name_and_no_other() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    reported = set(re.findall(r"^\| `(hydra_\w+)` ", page, re.MULTILINE))
    assert reported == {f"{name}_total" if family.kind == "counter" else name for name, family in FOUND.items()}
