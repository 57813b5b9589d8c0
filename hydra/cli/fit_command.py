"""`hydra fit`: fits a run's throughput and budgets, and predicts them for other subscriber counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from hydra.analysis.costs import BUDGETS, BudgetFit, StepUsage, fit_budget, second_of
from hydra.analysis.host_resources import HostEnds, ResourceEnd, host_ends
from hydra.analysis.scaling_models import (
    FARTHEST,
    KNEE,
    LEAST,
    ThroughputInterval,
    ThroughputLaw,
    ThroughputPrediction,
    fit,
)
from hydra.cli.step_resources import RunUsage, read_run
from hydra.errors import UsageError
from hydra.events.value_formatting import UNKNOWN, counted, number
from hydra.report.run_setup import setup_line, setup_object
from hydra.report.table import fitted, tabled, terminal_width
from hydra.store.run_folders import refuse_unwritable, write_whole


def count(value: float) -> str:
    """A whole number with separators, such as 1,000,000."""
    return f"{value:,.0f}"


def figure(value: float | None) -> str:
    """A figure with three significant digits; "no limit" for None."""
    if value is None:
        return "no limit"
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 99.95 else number(value)


def span(interval: ThroughputInterval, unit: str = "") -> str:
    """An estimate and its interval: ``4.1 [3.9 – 4.4] µs``."""
    scale, name = _scaled(interval, unit)
    estimate, low, high = (None if v is None else v * scale for v in (interval.estimate, interval.low, interval.high))
    # An interval that only limits the value has no estimate.
    first = UNKNOWN if estimate is None else figure(estimate)
    return f"{first} [{figure(low)} – {figure(high)}]{f' {name}' if name else ''}"


def _scaled(interval: ThroughputInterval, unit: str) -> tuple[float, str]:
    if unit in ("s", "s/s"):
        return 1e6, "µs" if unit == "s" else "µs/s"
    if unit.startswith("bytes"):
        largest = interval.estimate or interval.low
        for size, prefix in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if largest >= size:
                return 1 / size, unit.replace("bytes", prefix)
    return 1.0, unit


def fit_run(directory: Path, targets: Sequence[int], page: Path | None, as_json: bool) -> None:
    """Prints the fits of a run, and writes their plot.

    Args:
        directory: the run directory.
        targets: subscriber counts to predict; if empty, 2, 5 and 10 times the largest measured count.
        page: HTML file for the plot; None: no plot is written.
        as_json: whether JSON is printed in place of text.

    Raises:
        UsageError: the run has fewer than six subscriber counts, or none could be measured.
    """
    if any(clients < 1 for clients in targets):
        raise UsageError("--subscribers: 0 subscribers have no throughput", "name counts of at least 1")
    if page is not None:
        refuse_unwritable(page, "--plot")
    run = read_run(directory)
    laws = {name: _law(steps, targets) for name, steps in _large_enough(run).items()}
    ends = {name: host_ends(run.groups[name], law, run.unknown) for name, law in laws.items()}
    budgets = {name: [f for b in BUDGETS if (f := fit_budget(b, run.groups[name])) is not None] for name in laws}
    if as_json:
        click.echo(
            json.dumps(
                [_fit_object(run, n, law, budgets[n], ends[n]) for n, law in laws.items()], indent=1, allow_nan=False
            )
        )
    else:
        texts = (_text(run, name, law, budgets[name], ends[name]) for name, law in laws.items())
        click.echo(fitted("\n\n".join("\n".join(lines) for lines in texts), terminal_width()))
    if page is not None:
        from hydra.jupyter.scaling_plot import drawn

        write_whole(page, drawn(laws), "choose another file with --plot")
        click.echo(str(page), err=as_json)


def _large_enough(run: RunUsage) -> dict[str, tuple[StepUsage, ...]]:
    """The groups of steps that have enough subscriber counts for a fit.

    Raises:
        UsageError: no group has enough.
    """
    different = {name: len({step.clients for step in steps}) for name, steps in run.groups.items()}
    found = {name: steps for name, steps in run.groups.items() if different[name] >= LEAST}
    if not found:
        most = max(different.values())
        raise UsageError(
            f"{run.directory} has {most} subscriber {'count' if most == 1 else 'counts'} that could be measured: "
            f"a fit needs {LEAST}",
            f"run it with at least {LEAST} counts, such as --subscribers 10,15,23,34,51,77",
        )
    return found


def _law(steps: Sequence[StepUsage], targets: Sequence[int]) -> ThroughputLaw:
    largest = max(step.clients for step in steps)
    return fit([(step.clients, step.throughput) for step in steps], targets or [2 * largest, 5 * largest, 10 * largest])


def _text(run: RunUsage, name: str, law: ThroughputLaw, budgets: Sequence[BudgetFit], ends: HostEnds) -> Iterator[str]:
    held = [step.clients for step in run.groups[name] if step.rate is not None and step.held]
    yield f"{run.scenario.name}{f', {name}' if name else ''}: {run.scenario.system}, {run.scenario.client}"
    yield fitted([setup_line(run.setup)], terminal_width()).rstrip("\n")
    yield (
        f"evidence: {len(law.counts)} steps of {count(law.counts[0])} to {counted(round(law.largest), 'subscriber')}; "
        f"the points scatter by {100 * law.scatter:.1f} % around the law"
    )
    yield ""
    yield "X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1)), 95 % intervals"
    yield f"  λ  one client alone          {span(law.rate)} messages/s"
    yield f"  σ  waiting for one another   {span(law.contention)}"
    yield f"  κ  agreeing with each other  {span(law.coherency)}"
    peak = "none: the throughput only grows" if law.peak.estimate is None else f"at {span(law.peak)} subscribers"
    yield f"  peak                         {peak}"
    if law.better == KNEE:
        yield (
            f"a knee at {counted(round(law.knee or 0), 'subscriber')} fits better than the law: "
            "a capacity that is reached suddenly; the estimates below use it"
        )
    yield ""
    yield tabled([_row(prediction) for prediction in law.predictions], terminal_width(), as_text=True)
    yield ""
    yield _held_out(law)
    if held and max(held) == law.largest:
        yield (
            "warning: the largest step held the requested rate: its throughput is that rate, and no limit of the system"
        )
    elif held:
        yield f"warning: steps up to {counted(round(max(held)), 'subscriber')} held the requested rate: λ is that rate"
    for each in budgets:
        yield ""
        yield f"{each.budget.name}, by {each.steps} steps; predictions for the throughput that is estimated above"
        for term, interval in zip(each.budget.terms, each.terms, strict=True):
            yield f"  {term.name:34} {span(interval, term.unit)}"
        for prediction in law.predictions:
            cost = each.at(_step_at(run.groups[name], prediction))
            wide = "" if cost.usable else "; the interval is too wide to be used"
            row = counted(prediction.clients, "subscriber")
            yield f"  {row}: {span(cost, _a_second(each))}{wide}{_beyond(prediction)}"
    yield ""
    yield "the host resource that ends first, for the throughput that is estimated above"
    for prediction in law.predictions:
        yield f"  {counted(prediction.clients, 'subscriber')}: {_ends_first(ends, prediction.clients)}"
    yield f"  not known: {'; '.join(f'{name} ({why})' for name, why in ends.unknown.items())}"
    if run.local:
        yield ""
        yield "all clients were on one host: the bandwidth counts the messages with Hydra's headers, but not TCP's"


def _row(prediction: ThroughputPrediction) -> dict[str, str]:
    interval = prediction.throughput
    notes = [] if interval.usable else ["the interval is too wide to be used"]
    far = f"{number(prediction.beyond)} times the largest measured count"
    if prediction.extrapolated:
        notes.append(f"EXTRAPOLATED to {far}: law, knee and power of N do not agree")
    elif prediction.beyond > 1:
        notes.append(f"{far}{', where law, knee and power of N agree' if prediction.beyond > FARTHEST else ''}")
    return {
        "clients": count(prediction.clients),
        "messages/s of all": figure(interval.estimate),
        "95 % interval": f"{figure(interval.low)} – {figure(interval.high)}",
        "": "; ".join(notes),
    }


def _held_out(law: ThroughputLaw) -> str:
    if law.held_out is None or law.held_out_measured is None:
        return f"no check: without the largest count, fewer than {LEAST} are left"
    interval = law.held_out.throughput
    inside = interval.low <= law.held_out_measured <= (interval.high or float("inf"))
    return (
        f"check: without the steps of {counted(round(law.largest), 'subscriber')}, {figure(interval.low)} – "
        f"{figure(interval.high)} are predicted there; measured were {figure(law.held_out_measured)}: "
        + ("inside" if inside else "OUTSIDE: do not extrapolate this run")
    )


def _step_at(steps: Sequence[StepUsage], prediction: ThroughputPrediction) -> StepUsage:
    """A step of one second with the predicted subscriber count and throughput."""
    return second_of(steps[-1], prediction.clients, prediction.throughput.estimate or 0.0)


def _a_second(each: BudgetFit) -> str:
    """The unit of a budget per second: CPU seconds per second are cores, and memory has no rate."""
    if each.budget.unit == "s":
        return "cores"
    return "bytes" if "memory" in each.budget.name else "bytes/s"


def _beyond(prediction: ThroughputPrediction | ResourceEnd) -> str:
    if prediction.beyond <= FARTHEST:
        return ""
    return f" — EXTRAPOLATED to {number(prediction.beyond)} times the largest measured count"


def _ends_first(ends: HostEnds, clients: int) -> str:
    """Which host resource ends first, whether this many clients reach its end, and what else may end before it."""
    if not ends.known:
        return "not known"
    first = ends.first
    if first is None:
        return f"none; {_named(ends.known[0])} does not end up to {counted(ends.known[0].ends.low, 'subscriber')}"
    end = first.ends
    reached = "" if end.high is not None and clients >= end.high else "perhaps "
    when = "none yet; " if clients < end.low else reached
    others = "".join(f", or {_named(each)}, at {_clients_at(each)}" for each in ends.perhaps_first)
    share, wide = first.shares[clients], "" if end.usable else "; the interval is too wide to be used"
    takes = f"{count(clients)} take {_percent(share)} of {_amount(first)}"
    return f"{when}{_named(first)}, at {_clients_at(first)}{others} ({takes}){wide}{_beyond(first)}"


def _named(end: ResourceEnd) -> str:
    return f"{end.resource.name} of {end.use.host}"


def _clients_at(end: ResourceEnd) -> str:
    interval = end.ends
    at = f"more than {count(interval.low)}" if interval.estimate is None else span(interval)
    return f"{at} subscribers"


def _percent(share: ThroughputInterval) -> str:
    low, estimate, high = (None if v is None else 100 * v for v in (share.low, share.estimate, share.high))
    return f"{figure(estimate)} % [{figure(low)} – {figure(high)}]"


def _amount(end: ResourceEnd) -> str:
    if end.resource.unit == "cores":
        return counted(round(end.use.has), "core")
    scale, unit = _scaled(ThroughputInterval(end.use.has, 0.0, None), end.resource.unit)
    return f"{figure(end.use.has * scale)} {unit}"


def _fit_object(
    run: RunUsage, name: str, law: ThroughputLaw, budgets: Sequence[BudgetFit], ends: HostEnds
) -> dict[str, Any]:
    law_object = asdict(law)
    del law_object["curve"]
    for prediction, each in zip(law_object["predictions"], law.predictions, strict=True):
        prediction |= {"usable": each.throughput.usable, "extrapolated": each.extrapolated}
    return {
        "run": str(run.directory),
        "setup": setup_object(run.setup),
        "settings": name,
        "evidence_ends_at": law.largest,
        "law": law_object,
        "budgets": [
            {
                "name": each.budget.name,
                "unit": each.budget.unit,
                "steps": each.steps,
                "terms": {t.name: asdict(i) for t, i in zip(each.budget.terms, each.terms, strict=True)},
                "predictions": [
                    {"clients": p.clients, **asdict(each.at(_step_at(run.groups[name], p)))} for p in law.predictions
                ],
            }
            for each in budgets
        ],
        "host_resources": {
            "first": ends.first and ends.first.resource.name,
            "perhaps_first": [end.resource.name for end in ends.perhaps_first],
            "known": [_end_object(end) for end in ends.known],
            "unknown": dict(ends.unknown),
        },
    }


def _end_object(end: ResourceEnd) -> dict[str, Any]:
    return {
        "name": end.resource.name,
        "host": end.use.host,
        "has": end.use.has,
        "unit": end.resource.unit,
        "ends_at_share": end.resource.ends_at,
        "ends_at_clients": asdict(end.ends),
        "usable": end.ends.usable,
        "extrapolated": end.extrapolated,
        "predictions": [{"clients": clients, **asdict(share)} for clients, share in end.shares.items()],
    }
