"""Whether a row is clean (the system carried the requested load), and what happened on its hosts. Pure.

Trouble on its hosts is why a clean row may still mislead.

Everything that shows a row (the line of a step, tables, headlines, lists of runs, JSON, ``--strict``) asks here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hydra.events.value_formatting import counted, number
from hydra.measure.acceptance import STALLED_S
from hydra.measure.column import ANSWER, CLEAN, NOT_CLEAN_WHY, POINT, REASON, REPEATS, STATUS, WHY, values_of
from hydra.measure.disturbance import Disturbance, Disturbances
from hydra.measure.host_columns import DISTURBED, HOST_CPU, HOST_OTHERS, Hosts
from hydra.measure.loss_columns import Loss
from hydra.measure.step_result import StepFigures, StepResult
from hydra.measure.traffic_columns import CLIENTS, REQUESTED
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.model import Figure
from hydra.model import number as number_of
from hydra.sweep.interface import Row

Figures = Mapping[str, Figure]

_GOOD: Final = frozenset(("figure", "held", "at_least"))
"""The answers of searches and ladders that found a rate."""
_OF_LADDERS: Final = ("none_held", "unconfirmed")
"""The answers of ladders without a rate."""
HOST_FACTS: Final = (HOST_CPU, HOST_OTHERS, DISTURBED)
"""The columns of a step that the row of a search has, too."""
_FOUND: Final[Mapping[str, str]] = {
    "throttled": "the CPU was slowed down",
    "frequencies_mhz": "the frequency of the cores fell",
    "swapped_bytes": "memory was swapped out",
    "changed": "the machine changed",
    "clock_jumps": "a clock jumped",
}
"""The fields of a disturbance beside other processes, and what each means."""


def flaws(row: Figures) -> tuple[str, ...]:
    """The reasons why a row is not clean; none for a clean row.

    A row is clean if it was measured, the system accepted each publisher's messages at the requested rate (at
    ``max``: all the time), the row passed (docs/measurements.md, *When a rate passes*), no message is undrained or
    unknown, no stop was found (*Stops*), no subscriber died or was silent, and no client lost its connection without
    a cause that the row asked for. A row of a search is clean if every search has a figure, or a rate
    that was held.

    Args:
        row: of a table; or the figures of a measured step, which have no status.
    """
    status = str(row.get(STATUS) or "ok")
    if status != "ok":
        return (": ".join(filter(None, (status, str(row.get(REASON) or "")))),)
    if REQUESTED not in row:
        return tuple(_searches(row))
    figures = StepFigures.of(row)
    # Of a repeated row, such a figure is the highest of its repeats.
    in_a_repeat = " in a repeat" if REPEATS in row else ""
    return (
        *_unreported(figures.loss),
        *_disconnected(figures, in_a_repeat),
        *_rate(figures),
        *_progress(figures, in_a_repeat),
        *_messages(figures),
        *_stops(figures, in_a_repeat),
        *unjudged(figures),
    )


def why_not_clean(row: Figures) -> str:
    """The same in one line; "" for a clean row."""
    return "; ".join(flaws(row))


def judged(row: Figures) -> Row:
    """A row with the columns ``clean`` and ``why``."""
    why = why_not_clean(row)
    return {**row, CLEAN: not why, NOT_CLEAN_WHY: why or None}


def in_short(rows: Sequence[Figures]) -> str:
    """How many rows are not clean, and the first of them with its reason; "" if all are clean."""
    found = [(row, why) for row in rows if (why := why_not_clean(row))]
    if not found:
        return ""
    row, why = found[0]
    if len(rows) == 1:
        return f"not clean: {why}"
    name = row.get(POINT) or counted(row.get(CLIENTS), "subscriber")
    return f"{len(found)} of {len(rows)} rows not clean: {name}: {why}"


def unreported_in(loss: Loss) -> str:
    """How many subscribers died or were silent, "" if none were: ``1 died (SIGKILL), 2 never answered``."""
    return unreported_text(loss.unreported, str(loss.died_by or ""))


def unreported_text(unreported: Mapping[str, float], died_by: str = "") -> str:
    """The same of these numbers by what became of the subscribers; ``died_by``: how the dead ended, "" if unknown."""
    counts = ", ".join(f"{number(count)} {what}" for what, count in unreported.items() if count)
    return counts.replace("died", f"died ({died_by})") if died_by else counts


def unjudged(figures: StepFigures) -> tuple[str, ...]:
    """What is unknown of a measured row, so the row cannot be called clean."""
    if (requested := figures.shares.requested_rate) is None:
        return ()
    rate = figures.held.rate_held is None and requested != "max"
    messages = figures.passing.passed is None and figures.totals.clients != 0
    unknown = ("the rate was held",) * rate + ("messages were lost or late",) * messages
    return (f"unknown whether {' and whether '.join(unknown)}",) if unknown else ()


def _unreported(loss: Loss) -> Iterator[str]:
    if text := unreported_in(loss):
        yield f"subscribers: {text}"


def _rate(figures: StepFigures) -> Iterator[str]:
    requested, sent = number_of(figures.shares.requested_rate), figures.totals.avg_tx_rate_pps
    if figures.held.rate_held is False:
        done = "accepted" if figures.held.rate_sent is True else "sent"
        of = f"{number(sent)} of {number(requested)}/s {done}" if sent is not None and requested is not None else ""
        yield ": ".join(filter(None, ("rate not held", of)))


def _disconnected(figures: StepFigures, in_a_repeat: str) -> Iterator[str]:
    accepted = figures.accepted
    for role, clients, why in (
        ("publisher", accepted.publishers_disconnected, accepted.disconnected_why),
        ("subscriber", accepted.subscribers_disconnected, accepted.subscribers_disconnected_why),
    ):
        if clients:
            yield f"{counted(clients, role)} lost the connection{in_a_repeat}{f' ({why})' if why else ''}"


def _progress(figures: StepFigures, in_a_repeat: str) -> Iterator[str]:
    accepted = figures.accepted
    if accepted.tx_progress is not False:
        return
    unanswered, stalled_s = accepted.tx_unanswered, accepted.tx_stalled_s or 0.0
    if unanswered:
        yield f"{counted(unanswered, 'message')} never acknowledged{in_a_repeat}"
    if stalled_s >= STALLED_S or not unanswered:
        yield f"nothing accepted of a publisher for {number(stalled_s)} s{in_a_repeat}"


def _messages(figures: StepFigures) -> Iterator[str]:
    failed, target = figures.passing.passed is False, figures.passing.loss_target_pct
    parts = [*(_unaccepted_lost_and_late(figures) if failed else ()), *_without_end(figures)]
    if failed and (parts or not figures.passing.stopped_s):
        limit = "" if target is None else f" (loss target {number(target)} %)"
        yield f"{', '.join(parts) or 'did not pass'}{limit}"
    elif parts:
        yield ", ".join(parts)


def _stops(figures: StepFigures, in_a_repeat: str) -> Iterator[str]:
    if stopped_s := figures.passing.stopped_s:
        yield f"nothing arrived for {number(stopped_s)} s{in_a_repeat} although messages were due"


def _unaccepted_lost_and_late(figures: StepFigures) -> Iterator[str]:
    accepted, loss = figures.accepted, figures.loss
    if share := accepted.unaccepted_pct:
        yield f"{number(share)} % not accepted{f' ({accepted.refused_reason})' if accepted.refused_reason else ''}"
    low, high = loss.client_loss_low_pct, loss.client_loss_high_pct
    if low is not None and high is not None:
        yield f"{number(low)} to {number(high)} % lost"
    elif lost := figures.totals.client_loss_pct:
        yield f"{number(lost)} % lost"
    if late := loss.late_pct:
        yield f"{number(late)} % late"


def _without_end(figures: StepFigures) -> Iterator[str]:
    """The messages that were not received and are not known to be lost."""
    loss, outcomes = figures.loss, figures.outcomes
    for what, share, count in (
        ("still waiting (undrained)", loss.undrained_pct, outcomes.undrained),
        ("unknown", loss.unknown_pct, outcomes.unknown),
    ):
        if share:
            yield f"{number(share)} % {what}"
        elif count:
            yield f"{counted(count, 'message')} {what}"


def answers(row: Figures) -> dict[str, Figure]:
    """The answer of each series of a row; several values if repeats differ (``sweep/repetition.py``)."""
    return {
        name.removesuffix(ANSWER): value for name, value in row.items() if name.endswith(ANSWER) and value is not None
    }


def is_good(answer: Figure) -> bool:
    """Whether an answer, or that of every repeat, has a rate."""
    return all(str(each) in _GOOD for each in values_of(answer))


def _searches(row: Figures) -> Iterator[str]:
    for search, answer in answers(row).items():
        if is_good(answer):
            continue
        why = str(row.get(search + WHY) or "").replace("_", " ")
        what = {
            "none": "no rate passes",
            "none_held": "no rate was held",
            "unknown": "no answer",
            "unconfirmed": "not confirmed",
        }.get(str(answer), "no answer in some repeats")
        named = "" if search == "loss" and answer in _OF_LADDERS else f"{search}: "
        yield f"{named}{what}{f' ({why})' if why and answer == 'unknown' else ''}"


def host_trouble(row: Mapping[str, Figure]) -> str:
    """What the hosts of a row lacked, or what disturbed them; "" if nothing is known to have happened.

    A row has a warning about its hosts if and only if this is not empty.
    """
    return ", ".join(_troubles(Hosts.of_row(row)))


def host_trouble_in_short(rows: Sequence[Mapping[str, Figure]]) -> str:
    """How many rows had trouble on their hosts, and the first of them with it; "" if none had."""
    found = [(row, trouble) for row in rows if (trouble := host_trouble(row))]
    if not found:
        return ""
    row, trouble = found[0]
    if len(rows) == 1:
        return trouble
    return f"{len(found)} of {len(rows)} rows: {row.get(POINT) or counted(row.get(CLIENTS), 'subscriber')}: {trouble}"


def disturbances_of(hosts: Hosts) -> list[Disturbance]:
    """What disturbed a row, for each host on which something did, of all its repeats."""
    return [each for found in values_of(hosts.disturbed) if isinstance(found, Disturbances) for each in found.hosts]


def others_of(hosts: Hosts) -> float:
    """The CPU of a host that processes outside the run used, in %: of the worst repeat if they are named."""
    named = max((each.others_pct for each in disturbances_of(hosts)), default=0.0)
    return named or hosts.host_others_pct or 0.0


def _troubles(hosts: Hosts) -> Iterator[str]:
    if (hosts.host_cpu_mean_pct or 0.0) >= BUSY_HOST_PCT:
        yield "a host had no CPU left"
    if (others := others_of(hosts)) >= OTHERS_PCT:
        yield f"other processes used {others:.0f} % of a host's CPU"
    disturbances = disturbances_of(hosts)
    yield from (text for field, text in _FOUND.items() if any(getattr(each, field) for each in disturbances))


def deciding(steps: Sequence[StepResult], limiting: StepResult | None, figure: float | None) -> list[StepResult]:
    """The steps at both sides of a searched rate: the limiting one, and the fastest one below it that passed.

    Args:
        steps: the measured steps of the search.
        limiting: the step at the lowest rate of those with losses; None: there is none.
        figure: the searched rate, messages/s; None: it was not found, so any step may have passed.
    """
    passed = [
        step
        for step in steps
        if step.figures.passing.passed and (figure is None or float(step.plan.settings.rate) <= figure)
    ]
    best = max(passed, key=lambda step: float(step.plan.settings.rate), default=None)
    return [step for step in (limiting, best) if step is not None]


def add_host_facts(row: Row, steps: Iterable[StepResult]) -> None:
    """Adds what the hosts did in these steps to what the row has: the highest use, and all that disturbed them."""
    for step in steps:
        before, hosts = Hosts.of_row(row), step.figures.hosts
        used = {
            HOST_CPU: (before.host_cpu_mean_pct, hosts.host_cpu_mean_pct),
            HOST_OTHERS: (before.host_others_pct, hosts.host_others_pct),
        }
        row |= {name: max((value for value in both if value is not None), default=None) for name, both in used.items()}
        found = dict.fromkeys([*disturbances_of(before), *disturbances_of(hosts)])
        row[DISTURBED] = Disturbances(tuple(found)) if found else None
