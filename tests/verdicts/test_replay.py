"""The evidence of rows whose limit was planted, put to the decision once more: what ``docs/verdicts.md`` counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hydra.measure.verdict import UNDECIDED, Evidence, verdict
from tests.verdicts.rigs import counts

RUNS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "planted.jsonl").read_text(encoding="utf-8").splitlines()
]
MEASURED = [run for run in RUNS if counts(run)]
RIGS = sorted({run["rig"] for run in RUNS})
AT_LEAST = 12


@pytest.mark.parametrize("rig", RIGS)
def test_what_was_told_of_a_run_is_told_again(rig: str) -> None:
    runs = [run for run in MEASURED if run["rig"] == rig]
    assert len(runs) >= AT_LEAST
    for run in runs:
        found = verdict(msgspec.convert(run["evidence"], Evidence))
        assert (found.cause, found.evidence) == (run["verdict"], run["verdict_evidence"]), run["seed"]


def test_at_least_95_percent_are_right_and_one_in_fifty_at_most_is_wrong() -> None:
    assert len(RIGS) == 6
    right = sum(run["verdict"] == run["truth"] for run in MEASURED)
    undecided = sum(run["verdict"].startswith(UNDECIDED) for run in MEASURED)
    assert right >= 0.95 * len(MEASURED)
    assert len(MEASURED) - right - undecided <= len(MEASURED) / 50
