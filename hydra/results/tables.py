"""A run's tables: ``table.md`` with the published headings, ``table.csv`` and ``rows.json``. Made from rows alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tabulate import tabulate

from hydra.errors import HydraError
from hydra.model import Figure, Scenario, SearchSeries, SearchSpec
from hydra.results.notes import MARK, notes_of
from hydra.sweep import Row
from hydra.sweep.columns import BATCH, FIXED, REASON, STATUS, search_column, search_columns, sndhwm_column
from hydra.sweep.repeated import INTERVAL

HEADINGS: Final[Mapping[str, str]] = {
    "msg_batch": "Batch",
    "avg_tx_rate_pps": "Avrg Tx Rate",
    "avg_rx_rate_pps": "Avrg Rx Rate",
    "client_loss_pct": "Client Loss[%]",
    "failed_clients": "Failed Clients",
    "total_tx": "Total pckts Tx",
    "total_rx": "Total pckts Rx",
    "max_rate_with_drop_pps": "MaxRate at SUB With Drop",
    "aggregate_max_pps": "Aggregate Max pps",
}
"""The published headings of columns whose name needs no settings to be told."""


def published_columns(scenario: Scenario) -> tuple[str, ...]:
    """The columns of the table that this scenario's experiment was published with."""
    search = scenario.sweep.search
    if search is not None:
        return search_columns(search)
    return BATCH if scenario.table == "batch" else FIXED


def _search_heading(series: SearchSeries, search: SearchSpec) -> str:
    cohort = f"{search.cohort_fraction * 100:g}% of clients"
    if series == "loss" and not search.loss_target:
        return "MaxRate without Drop"
    if series == "loss":
        return f"MaxRate at Sub (< {search.loss_target * 100:g}% Drop)"
    if series == "nodrop":
        return "MaxRate at Sub (XPUB_NODROP)"
    if series == "slow":
        share = "Half Rate" if search.slow_share == 0.5 else f"{search.slow_share * 100:g}% of the Rate"
        return f"{cohort} at {share}"
    return f"{cohort} Reconnecting"


def _sndhwm_heading(sndhwm: int, search: SearchSpec) -> str:
    first = f"< {search.loss_target * 100:g}% Drop, " if sndhwm == search.sndhwms[0] else ""
    return f"MaxRate at Sub ({first}SNDHWM = {sndhwm})"


def headings(scenario: Scenario) -> dict[str, str]:
    """The heading of every published column, and of every setting that varies."""
    search = scenario.sweep.search
    found = {"clients": "Client Count" if search else "Client #"}
    for column in (*scenario.sweep.vary, *published_columns(scenario)):
        found.setdefault(column, HEADINGS.get(column, column))
    if search:
        for series in search.series:
            if series == "loss" and search.sndhwms:
                found.update((sndhwm_column(h, search), _sndhwm_heading(h, search)) for h in search.sndhwms)
            elif series != "max_rate":
                found[search_column(series, search)] = _search_heading(series, search)
    return found


def _table_columns(scenario: Scenario) -> list[str]:
    """Published columns, with varied settings that are not among them after the client count."""
    published = published_columns(scenario)
    varied = [v for v in scenario.sweep.vary if v not in published]
    return [published[0], *varied, *published[1:]]


def columns_of(scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    """All columns: the published ones, then the others in the order in which rows bring them, status last."""
    columns = list(published_columns(scenario))
    known = dict.fromkeys(columns)
    others = [c for row in rows for c in row if c not in known and c not in (STATUS, REASON)]
    return [*columns, *dict.fromkeys(others), STATUS, REASON]


def markdown(scenario: Scenario, rows: Sequence[Row]) -> str:
    """``table.md``: the published headings, and below the table what has to be known about single rows.

    A row with a note carries ``MARK`` in its first cell, so that nobody reads its figures without it.
    """
    columns = _table_columns(scenario)
    titles = headings(scenario)
    notes: list[str] = []
    body: list[list[str]] = []
    for row in rows:
        about = notes_of(row, scenario)
        cells = [_with_interval(c, row) for c in columns]
        if about:
            cells[0] = f"{cells[0]} {MARK}"
            at = ", ".join(f"{titles.get(v, v)} {_cell(v, row.get(v))}" for v in scenario.sweep.vary)
            name = f"{row.get('clients')} clients" + (f", {at}" if at else "")
            notes.append(f"- {MARK} **{name}**: {'; '.join(about)}")
        body.append(cells)
    table = tabulate(
        body,
        headers=[titles[c] for c in columns],
        tablefmt="pipe",
        # Numbers are text already: tabulate would round and re-format them.
        disable_numparse=True,
        colalign=["right"] * len(columns) if body else None,
    )
    parts = [f"# {scenario.name}", scenario.description, _clients(scenario), table, "\n".join(notes)]
    return "\n\n".join(p for p in parts if p) + "\n"


def _clients(scenario: Scenario) -> str:
    """Which implementation the clients are, and whether each of them is a process of its own."""
    packed = scenario.native.clients_per_process
    each = f"{packed} subscribers to a process" if packed > 1 else "one process each"
    return f"Clients: {scenario.client}, {each}"


def _with_interval(column: str, row: Row) -> str:
    """A cell, with its 95 % interval where the row was repeated."""
    cell, interval = _cell(column, row.get(column)), row.get(column + INTERVAL)
    return cell if interval is None else f"{cell} ± {_cell(column, interval)}"


def _cell(column: str, value: Figure) -> str:
    """Rates with two digits, loss with the six significant ones of the published tables."""
    if value is None:
        return "—"
    if isinstance(value, float):
        if column.endswith("loss_pct"):
            return f"{value:.6g}"
        return f"{value:.0f}" if value.is_integer() or column == "total_rx" else f"{value:.2f}"
    return str(value)


def csv_text(scenario: Scenario, rows: Sequence[Row]) -> str:
    """``table.csv``: full precision, column names of ``conf/reference``; nothing for a figure that is not known."""
    columns = columns_of(scenario, rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def json_text(scenario: Scenario, rows: Sequence[Row]) -> str:
    """``rows.json``: the rows as objects, every one with all columns in their order."""
    columns = columns_of(scenario, rows)
    body = [{c: row.get(c) for c in columns} for row in rows]
    return json.dumps({"scenario": scenario.name, "rows": body}, indent=1, allow_nan=False) + "\n"


def write(directory: Path, scenario: Scenario, rows: Sequence[Row]) -> list[Path]:
    """Writes the three files, each at once or not at all, and returns their paths.

    Raises:
        HydraError: the directory cannot be written.
    """
    texts = {"table.md": markdown, "table.csv": csv_text, "rows.json": json_text}
    paths = []
    for name, text in texts.items():
        path = directory / name
        draft = directory / f".{name}.new"
        try:
            draft.write_text(text(scenario, rows), encoding="utf-8")
            draft.rename(path)
        except OSError as e:
            raise HydraError(
                f"cannot write {path}: {e.strerror or e}", f"everything measured is in {directory / 'run.db'}"
            ) from e
        paths.append(path)
    return paths
