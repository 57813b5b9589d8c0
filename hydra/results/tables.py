"""A run's tables: ``table.md`` with the published headings, ``table.csv`` and ``rows.json``. Made from rows alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tabulate import tabulate

from hydra.errors import HydraError
from hydra.model import Figure, Scenario, SearchSeries, SearchSpec
from hydra.results.earlier import ROWS
from hydra.results.notes import MARK, notes_of
from hydra.results.searched import efforts, interval_of, legend, whole
from hydra.sweep import Row
from hydra.sweep.columns import BATCH, FIXED, REASON, STATUS, search_column, search_columns, sndhwm_column
from hydra.sweep.repeated import COUNT, INTERVAL, REPEATS

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


def markdown(scenario: Scenario, rows: Sequence[Row], clients: Sequence[Mapping[str, Any]] = ()) -> str:
    """``table.md``: the published headings, and below the table what has to be known about single rows.

    A row with a note carries ``MARK`` in its first cell, so that nobody reads its figures without it.
    """
    columns = _table_columns(scenario)
    titles = headings(scenario)
    notes: list[str] = []
    body: list[list[str]] = []
    for row in rows:
        about = notes_of(row, scenario)
        cells = [_with_interval(c, row, scenario) for c in columns]
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
    effort = "\n".join(f"- {text}" for text in efforts(scenario, rows))
    below = [legend(scenario, rows), "\n".join(notes), effort]
    parts = [f"# {scenario.name}", scenario.description, _clients(scenario, clients), table, *below]
    return "\n\n".join(p for p in parts if p) + "\n"


def _clients(scenario: Scenario, clients: Sequence[Mapping[str, Any]]) -> str:
    """Which implementation the clients are, with what libraries, and whether each of them is a process of its own."""
    packed = scenario.native.clients_per_process
    each = f"{packed} subscribers to a process" if packed > 1 else "one process each"
    return f"Clients: {'; '.join(said_by(clients)) or scenario.client}, {each}"


def said_by(clients: Iterable[Mapping[str, Any]]) -> list[str]:
    """What clients said that they are, such as ``native (libzmq 4.3.4)``; with the role where roles differ.

    Args:
        clients: the run's fact: ``role``, ``implementation`` and ``versions`` of each kind.
    """
    roles: dict[str, list[str]] = {}
    for client in clients:
        versions = ", ".join(f"{library} {version}" for library, version in client["versions"].items())
        text = f"{client['implementation']} ({versions})" if versions else str(client["implementation"])
        roles.setdefault(text, []).append(f"{client['role']}s")
    everywhere = {role for names in roles.values() for role in names}
    return [
        text if set(names) == everywhere else f"{' and '.join(dict.fromkeys(names))} {text}"
        for text, names in roles.items()
    ]


def _with_interval(column: str, row: Row, scenario: Scenario) -> str:
    """A cell with the 95 % interval of what was searched for or repeated, and of how many repeats if not of all."""
    if limits := interval_of(row, column, scenario):
        return f"{whole(row[column])} [{whole(limits[0])} – {whole(limits[1])}]"
    cell, interval, count = _cell(column, row.get(column)), row.get(column + INTERVAL), row.get(column + COUNT)
    if interval is not None:
        cell = f"{cell} ± {_cell(column, interval)}"
    return cell if count is None else f"{cell} ({count} of {row.get(REPEATS)})"


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


def write(
    directory: Path, scenario: Scenario, rows: Sequence[Row], clients: Sequence[Mapping[str, Any]] = ()
) -> list[Path]:
    """Writes the three files, each at once or not at all, and returns their paths.

    Args:
        directory: where to.
        scenario: what was asked for.
        rows: the table.
        clients: the run's fact of that name: what its clients said that they are.

    Raises:
        HydraError: the directory cannot be written.
    """
    texts = {
        "table.md": markdown(scenario, rows, clients),
        "table.csv": csv_text(scenario, rows),
        ROWS: json_text(scenario, rows),
    }
    paths = []
    for name, text in texts.items():
        path = directory / name
        draft = directory / f".{name}.new"
        try:
            draft.write_text(text, encoding="utf-8")
            draft.rename(path)
        except OSError as e:
            raise HydraError(
                f"cannot write {path}: {e.strerror or e}", f"everything measured is in {directory / 'run.db'}"
            ) from e
        paths.append(path)
    return paths
