"""The first thing a report says: what was measured, what it carries and what limits it, in words and three numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from hydra.events.formatting import duration_us
from hydra.events.formatting import number as text_of
from hydra.jupyter.blocks import UNKNOWN, Html, block
from hydra.jupyter.run_data import Run
from hydra.measure import search_columns
from hydra.measure.column_names import AGGREGATE, AGGREGATE_MAX, AVG_RX, LOSS, RATE_HELD, STATUS, VERDICT
from hydra.measure.step_columns import DUE, SENT
from hydra.model import number
from hydra.report.search_display import interval_of
from hydra.report.tables import name_of, said_by
from hydra.store.database import CLIENTS_KEY
from hydra.sweep import Row
from hydra.sweep.search_warnings import of_figure


@dataclass(frozen=True, slots=True)
class Number:
    """One figure in large letters: what it is of, and in small letters what has to be known with it."""

    label: str
    value: str
    remark: str = ""


def summary(run: Run) -> Html:
    """The first paragraph, and the numbers."""
    cards = "".join(
        f'<div class="number"><span>{escape(n.label)}</span><strong>{escape(n.value)}</strong>'
        f"<span>{escape(n.remark)}</span></div>"
        for n in numbers(run)
    )
    return block(f'<p class="summary">{escape(measured(run))}</p><div class="numbers">{cards}</div>')


def measured(run: Run) -> str:
    """What was measured, in a sentence."""
    sweep, host = run.scenario.sweep, run.metadata.get("host", {})
    clients = "; ".join(said_by(run.metadata.get(CLIENTS_KEY, ()))) or run.scenario.client
    counts = [clients for clients in sweep.counts if clients]
    several = f"{counts[0]:,} to {counts[-1]:,}" if len(counts) > 1 else f"{counts[0]:,}" if counts else "no"
    varied = ", ".join(f"{name} {_listed(run.scenario.values_of(name))}" for name in sweep.varied)
    asked = "the highest rates were searched for" if sweep.search else _rate(run.scenario.settings.rate)
    where = f"on {host['name']} with {host.get('cores', UNKNOWN)} cores" if "name" in host else ""
    when = str(run.metadata.get("began", ""))[:10]
    parts = [f"{several} subscribers of {clients}", asked if "rate" not in sweep.varied else "", varied]
    ends = " ".join(filter(None, (where, when and f"on {when}")))
    return f"{', '.join(filter(None, parts))}; {sweep.duration_s:g} s a step{', ' if ends else ''}{ends}."


def _rate(rate: object) -> str:
    return "as fast as it goes" if rate == "max" else f"{text_of(rate)} messages/s" if isinstance(rate, float) else ""


def _listed(values: Sequence[object]) -> str:
    return f"{values[0]} to {values[-1]}" if len(values) > 2 else " and ".join(map(str, values))


def numbers(run: Run) -> list[Number]:
    """What it carries, how late that came or with which loss, and what limits it; fewer where they are not known."""
    good = [row for row in run.rows if row.get(STATUS) == "ok"]
    if not good:
        return [Number("carried", UNKNOWN, "no row was finished")]
    found = _of_a_search(run, good) if run.scenario.sweep.search else _of_a_grid(run, good)
    return [*found, _limit(good)]


def _of_a_search(run: Run, rows: Sequence[Row]) -> list[Number]:
    """The most that arrived with drops, and the rate within the target at the largest count that has one."""
    search = run.scenario.sweep.search
    names = search_columns.rates(search) if search else {}
    column = names.get("loss")
    cards = []
    for row in reversed(rows):
        if column and number(row.get(column)) is not None:
            limits = interval_of(row, column, run.scenario)
            interval = f", 95 % interval {text_of(limits[0])} to {text_of(limits[1])}/s" if limits else ""
            target = f"{100 * search.target:g} %" if search else ""
            remark = f"to {name_of(run.scenario, row)} within {target} loss{interval}"
            cards.append(Number("carried", f"{text_of(row[column])}/s", remark))
            break
    else:
        why = [warning.said for row in reversed(rows) for warning in of_figure(row, "loss")]
        said = why[0] if why else "within the target of loss no rate was found: see the warnings"
        cards.append(Number("carried", UNKNOWN, said))
    best = max(rows, key=lambda row: number(row.get(AGGREGATE_MAX)) or 0.0)
    if number(best.get(AGGREGATE_MAX)):
        remark = f"by {name_of(run.scenario, best)} together, with drops"
        cards.append(Number("at most received", f"{text_of(best[AGGREGATE_MAX])}/s", remark))
    return cards


def _of_a_grid(run: Run, rows: Sequence[Row]) -> list[Number]:
    """The row in which most arrived: of those that kept their rate and lost nothing, if there are any."""
    whole = [row for row in rows if not number(row.get(LOSS)) and row.get(RATE_HELD) is not False]
    best = max(whole or rows, key=lambda row: number(row.get(AGGREGATE)) or number(row.get(AVG_RX)) or 0.0)
    loss = "without loss" if best in whole else f"with {text_of(best.get(LOSS))} % loss"
    cards = []
    if number(best.get(AGGREGATE)) is not None:
        remark = f"{loss}, by {name_of(run.scenario, best)} together"
        cards.append(Number("carried", f"{text_of(best[AGGREGATE])}/s", remark))
    late = next((p99 for name in (DUE, SENT) if (p99 := number(best.get(f"{name}_p99_us"))) is not None), None)
    if late is not None:
        cards.append(Number("p99 latency", duration_us(late), f"there ({name_of(run.scenario, best)})"))
    return cards


def _limit(rows: Iterable[Row]) -> Number:
    """What limited the rows: the verdict that most of them have."""
    verdicts = Counter(str(row[name]) for row in rows for name in row if name.endswith(VERDICT) and row[name])
    if not verdicts:
        return Number("limited by", UNKNOWN)
    (first, _), *others = verdicts.most_common()
    return Number("limited by", first, f"elsewhere: {', '.join(name for name, _ in others)}" if others else "")
