"""Every column that a table can have, one record each: what it is called, its unit, and how it is shown and merged.

A column is added in two places: its formula, which gives the figure under the column's name, and its record here.
"""

from __future__ import annotations

from hydra.columns.column import Column
from hydra.columns.table import columns_of

__all__ = ["Column", "columns_of"]
