"""The schema of the rows of one scenario, or of all that come along."""

from __future__ import annotations

from hydra.config.file_locations import scenarios
from hydra.config.scenario import resolve
from hydra.measure.column import Column
from hydra.report.json_schema import rows_schema, text


def schema_of(scenario: str | None) -> str:
    """The schema as text.

    Args:
        scenario: a name or a path; None: the columns of all scenarios that come along, and any others.

    Raises:
        ConfigError: there is no such scenario, or it cannot be.
    """
    names = scenarios() if scenario is None else [scenario]
    columns: dict[str, Column] = {}
    for name in names:
        columns = {**resolve(name).columns, **columns}
    return text(rows_schema(columns.values(), complete=scenario is not None))
