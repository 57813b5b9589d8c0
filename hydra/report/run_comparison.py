"""Run directories → how they compare, and which conditions of ``--fail-if`` hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hydra.analysis.comparison import Comparison, compare
from hydra.analysis.figures import measured
from hydra.report.comparison_input import load_sides
from hydra.report.comparison_report import held
from hydra.report.conditions import numbers, parse


def compare_runs(folders: Sequence[Path], figure: str, fail_if: Sequence[str]) -> tuple[Comparison, list[str]]:
    """Compares runs; the comparison, and a line for every condition that holds.

    Args:
        folders: run directories, the base first; or folders of runs that took turns.
        figure: the primary one; "": the usual.
        fail_if: conditions as users write them.

    Raises:
        UsageError: they cannot be compared, or there is no such figure.
        RunDirectoryError: one cannot be read.
    """
    sides, paired = load_sides(folders)
    columns = sides[0].columns
    conditions = [parse(text, numbers(columns), measured(columns)) for text in fail_if]
    comparison = compare(sides, paired=paired, figure=figure)
    return comparison, held(conditions, comparison)
