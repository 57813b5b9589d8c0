"""The answer to whether a workload holds, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

from hydra.events.event import Level
from hydra.events.value_formatting import MARK, UNKNOWN, counted, number
from hydra.events.warnings import HydraWarning
from hydra.measure.column import CLEAN, NOT_CLEAN_WHY
from hydra.measure.event_recovery import EventImpact, SpanLatency
from hydra.measure.host_columns import LOCAL_LIMIT
from hydra.measure.slo import RATE, ObjectiveResult, word
from hydra.measure.verdict import HOST, OTHERS_PCT
from hydra.model import RunSetup, Scenario
from hydra.report.row_context import RowLimit, at_hosts
from hydra.report.run_setup import setup_line, setup_object
from hydra.report.table import Document, PartedLine, Table, plain
from hydra.store.slo_results import SloResult


def json_text(setup: RunSetup, answer: SloResult, warnings: Sequence[HydraWarning] = (), not_clean: str = "") -> str:
    """The answer as JSON, with what was measured, the warnings of its row, and why it is not clean ("" if it is)."""
    objectives = [{**asdict(o), "answer": word(o.holds), "margin": o.margin} for o in answer.objectives]
    body = {
        "answer": word(answer.holds),
        "setup": setup_object(setup),
        "measure_s": measure_s(answer),
        "holds": answer.holds,
        LOCAL_LIMIT: answer.local or None,
        "objectives": objectives,
        "events": [asdict(c) for c in answer.consequences],
        "highest_backlog": answer.highest_backlog,
        "complete": answer.complete,
        CLEAN: not not_clean,
        NOT_CLEAN_WHY: not_clean or None,
        "warnings": [asdict(warning.data()) for warning in warnings],
    }
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


def answer_sentence(answer: SloResult) -> str:
    """The answer yes, no or unknown in a sentence."""
    if answer.holds is not None:
        return f"{word(answer.holds)}: the workload {'holds' if answer.holds else 'does not hold'}"
    if answer.local:
        return f"{word(None)} on this machine: {_local(answer)}"
    seconds = measure_s(answer)
    more = f": measure for at least {seconds} s" if seconds else " whether the workload holds"
    return f"{word(None)}{more}"


def _local(answer: SloResult) -> str:
    """What limited or delayed the workload at the hosts of the run, and what would give an answer."""
    others_pct = answer.others_pct or 0.0
    shared = answer.local == HOST and others_pct >= OTHERS_PCT
    by = f" (other processes used {number(others_pct, 2)} % of it)" if shared else ""
    remedy = at_hosts(RowLimit(local=answer.local, others_pct=others_pct), same_rate=True)
    return f"limited by {answer.local}{by}; to get an answer, {remedy}"


def answer_line(answer: SloResult) -> str:
    """The answer, then each figure that decides it, with its interval, beside the objective.

    These are the missed objectives for a no, the undecided ones if the answer is unknown, and all but the rate for a
    yes: ``no: p99_ms 23.1 ms (95 % interval: 21 ms – 25.2 ms), target <= 20 ms``.
    """
    where = " on this machine" if answer.local else ""
    return f"{word(answer.holds)}{where}: {deciding(answer)}"


def deciding(answer: SloResult) -> str:
    """The same without the word."""
    shown = [o for o in answer.objectives if o.holds is answer.holds and (answer.holds is not True or o.name != RATE)]
    seconds = measure_s(answer)
    if answer.local:
        shown = [o for o in shown if o.local]
        return "; ".join([*map(_measured_and_target, shown), _local(answer)])
    return "; ".join([*map(_measured_and_target, shown), *([f"measure for at least {seconds} s"] if seconds else [])])


def _measured_and_target(o: ObjectiveResult) -> str:
    why = f": {o.why}" if o.why and o.measure_s is None else ""
    between = f" (95 % interval: {limits})" if (limits := _interval(o)) else ""
    return f"{o.name} {_text(o, o.measured)}{between}, target {_target(o)}{why}"


def _interval(o: ObjectiveResult) -> str:
    """The limits of the 95 % interval; "" if there is none."""
    low, high = _text(o, o.low), _text(o, o.limit)
    if o.low is None:
        return "" if o.limit is None else f"at most {high}"
    return f"at least {low}" if o.limit is None else f"{low} – {high}"


def measure_s(answer: SloResult) -> int | None:
    """The step length (s) that would give an answer; None: the answer is known, or a longer step would not give one."""
    unknown = [o.measure_s for o in answer.objectives if o.holds is None]
    known = [seconds for seconds in unknown if seconds is not None]
    return max(known) if known and answer.holds is None and len(known) == len(unknown) else None


def objective_warnings(answer: SloResult) -> list[str]:
    """Warnings about the objectives, one text each."""
    notes = [f"{o.name}: {o.why}" for o in answer.objectives if o.why]
    if answer.complete is False:
        notes.append("some figures of the time series were lost on their way: the figures about events may be too low")
    return notes


def document(
    scenario: Scenario,
    setup: RunSetup,
    answer: SloResult,
    row: Table,
    warnings: Sequence[HydraWarning] = (),
    not_clean: str = "",
) -> Document:
    """The answer, each objective with its margin, the row, the effect of each event, and the warnings of the row.

    Args:
        scenario: the scenario.
        setup: what was measured.
        answer: the answer.
        row: the table of the row, below which its mark is explained.
        warnings: the warnings of the row.
        not_clean: why the row is not clean; "" if it is.
    """
    title = f"# {scenario.name}: {answer_sentence(answer)}"
    parts: list[str | PartedLine | Table] = [title, setup_line(setup), objectives_table(answer.objectives), row]
    marks = (f"{MARK} " if not_clean and warning.level != Level.NOTE else "" for warning in warnings)
    of_row = [f"{mark}{warning}" for mark, warning in zip(marks, warnings, strict=True)]
    if lines := [*objective_warnings(answer), *of_row]:
        parts.append("\n".join(f"- {line}" for line in lines))
    if answer.consequences:
        parts.append(events_table(answer))
    parts.append(f"Highest backlog: {counted(answer.highest_backlog, 'copy', 'copies')}.")
    return [*parts, answer_line(answer)]


def objectives_table(objectives: Sequence[ObjectiveResult]) -> Table:
    """The table of the objectives with their margins."""
    headings = ["objective", "target", "measured", "margin", "95 % interval", "holds"]
    return plain(headings, map(_objective_row, objectives))


_UNITS: Final = {RATE: "messages/s", "ms": "ms", "pct": "%", "s": "s"}
"""The units of objectives, by the last part of their names."""


def _text(o: ObjectiveResult, value: float | None) -> str:
    """A figure in the unit of an objective."""
    unit = _UNITS.get(o.name.rpartition("_")[2], "messages")
    return UNKNOWN if value is None else f"{number(value, 4)} {unit}"


def _target(o: ObjectiveResult) -> str:
    return f"{'>=' if o.name == RATE else '<='} {_text(o, o.target)}"


def _objective_row(o: ObjectiveResult) -> list[str]:
    text = partial(_text, o)
    return [
        o.name,
        _target(o),
        text(o.measured),
        text(o.margin),
        _interval(o) or text(None),
        word(o.holds),
    ]


def events_table(answer: SloResult) -> Table:
    """The table of the effects of each event."""
    rows = [
        [
            c.kind,
            f"{number(c.at_s)} s",
            _recovered(c, answer.facts.interval_s),
            f"{c.highest_backlog:,}",
            f"{number(c.catch_up_pps)}/s",
            UNKNOWN if c.lost is None else f"{c.lost:,}",
            *(_latency(stretch) for stretch in (c.before, c.during, c.after)),
        ]
        for c in answer.consequences
    ]
    headings = ["event", "at", "recovered after", "highest backlog", "caught up at", "lost"]
    headings += [f"p50 / p99 / max {when}" for when in ("before", "during", "after")]
    return plain(headings, rows)


def _recovered(c: EventImpact, interval_s: float) -> str:
    if c.recovered_s is None:
        return "not recovered"
    return f"{c.recovered_s:g} s" + (f", then {c.bad_after * interval_s:g} s bad" if c.bad_after else "")


def _latency(stretch: SpanLatency) -> str:
    values = (stretch.p50_us, stretch.p99_us, stretch.max_us)
    return " / ".join(UNKNOWN if us is None else f"{number(us / 1000)}" for us in values) + " ms"
