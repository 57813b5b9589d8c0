"""What a scenario's system adds to its columns and sweeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.config.plugins import systems
from hydra.config.resolved_scenario import ResolvedScenario, added_by
from hydra.errors import EXIT_USAGE, ConfigError
from hydra.measure.column import Column, ReportColumn, SystemColumns
from hydra.measure.step_result import StepFigures, StepResult
from hydra.system import Published, SystemSpec
from tests.jupyter.runs import FIXED


def like_zmq(**changes: object) -> SystemSpec:
    return replace(systems()["zmq"], published=Published(columns=SystemColumns(**changes)))  # type: ignore[arg-type]


OWN = ReportColumn("stalls", "", "how often it stalled", repeats="common", role="subscriber", key="stalls")


@pytest.mark.parametrize(
    "changes", [{"reported": [replace(OWN, name="sent")]}, {"batch": Column("clients")}], ids=["reported", "batch"]
)
def test_a_column_by_the_name_of_another_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"that every system.s rows have: (sent|clients);") as error:
        added_by(like_zmq(**changes))
    assert error.value.exit_code == EXIT_USAGE


def test_repeated_rows_merge_a_systems_own_columns_as_their_records_say() -> None:
    repeated = replace(FIXED, sweep=replace(FIXED.sweep, clients=(30,), repeat=2))
    resolved = ResolvedScenario(repeated, like_zmq(reported=[OWN]))
    sweep, results = resolved.sweep, list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        results.append(
            StepResult(len(results) + 1, plan, "ok", StepFigures.of({"clients": 30, "stalls": 3, "sent": 5}))
        )
    (row,) = sweep.rows(results)
    assert (row["stalls"], row["sent"], row["sent_ci95"]) == (3, 5, 0)
    assert "stalls_ci95" not in row
    assert list(resolved.columns).index("stalls") < list(resolved.columns).index("sent")
