"""The live view of a run: the lines for the terminal from the present state of the run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich.text import Text

from hydra.events.value_formatting import countdown, duration_us, number
from hydra.monitor.step_progress import LiveViewState, ProgressDetails

END_KEY: Final = "e"
SKIP_KEY: Final = "s"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_NONE: Final = "·"
"""The character in a sparkline for a step without the figure."""
_MOST_POINTS: Final = 40
_BAR: Final = 24
_LEAST_WIDTH: Final = 40
"""Terminal columns below which the title has no remaining time beside it."""
_HEAD: Final = 10
"""Terminal columns of the labels at the beginning of lines."""
_LEAST_MISSING: Final = 0.01
"""Smaller shares of missing messages are not shown as numbers, since such messages may be on their way or not reported
yet."""
_DRAINING: Final = "draining: subscribers receive the messages that are still on their way"
_READING: Final = "reading the stored messages"
_PREPARING: Final = "preparing: clients are launched and made ready"


def lines(shown: LiveViewState, width: int, height: int) -> list[Text]:
    """The view in at most ``height`` lines of ``width`` columns; the least important lines are left out first."""
    cpu = sorted(shown.watched.cpu_pct.items(), key=lambda each: -each[1])
    by_weight: list[tuple[int, Text]] = [
        (0, _title(shown, width)),
        (2, _progress(shown)),
        (3, _now(shown)),
        (7, _slowest(shown.watched)),
        (6, _line("CPU", ", ".join(f"{host} {pct:.0f} %" for host, pct in cpu))),
        (4, _sparkline("delivered", [p.delivered_pps for p in shown.points], lambda v: f"{number(v)}/s")),
        (5, _sparkline("lost", [p.loss_pct for p in shown.points], lambda v: f"{number(v)} %", "yellow")),
        (8, _sparkline("p99", [p.p99_us for p in shown.points], duration_us)),
        (1, _keys(shown)),
    ]
    visible = [(weight, line) for weight, line in by_weight if line.plain]
    kept = sorted(weight for weight, _ in visible)[: max(height, 1)]
    found = [line for weight, line in visible if weight in kept]
    for line in found:
        line.truncate(width, overflow="ellipsis")
    return found


def sparkline(values: Sequence[float | None], most: int = _MOST_POINTS) -> str:
    """The last ``most`` values as bars between zero and the largest of them; a dot for each unknown value."""
    values = values[-most:]
    top = max((v for v in values if v is not None), default=0.0)
    return "".join(
        _NONE if v is None else _LEVELS[0] if top <= 0 else _LEVELS[min(int(v / top * len(_LEVELS)), len(_LEVELS) - 1)]
        for v in values
    )


def _title(shown: LiveViewState, width: int) -> Text:
    left = "" if shown.left_s is None or width < _LEAST_WIDTH else f"about {countdown(shown.left_s)} left"
    title = Text(shown.title, style="bold")
    title.truncate(max(width - len(left) - 2, 1), overflow="ellipsis")
    gap = " " * max(width - title.cell_len - len(left), 2) if left else ""
    return title.append(gap + left, style="not bold")


def _progress(shown: LiveViewState) -> Text:
    moment = shown.moment
    if moment is None:
        connected = "" if shown.clients is None else "; {:,} of {:,} have connected".format(*shown.clients)
        return Text(shown.preparing or _PREPARING + connected, style="dim")
    if moment.doing == "draining":
        return Text(_DRAINING, style="dim")  # its end, when all messages have arrived, is unknown before
    full = round(_BAR * moment.share)
    left = "" if moment.left_s is None else f"{countdown(moment.left_s)} of this step left"
    parts = ", ".join(
        filter(None, (_READING if moment.doing == "reading" else "", f"{100 * moment.share:.0f} %", left))
    )
    return Text.assemble(("━" * full, "cyan"), ("─" * (_BAR - full), "dim"), f"  {parts}")


def _now(shown: LiveViewState) -> Text:
    if shown.moment is None or shown.moment.doing == "draining":
        return Text()
    moment, missing = shown.moment, shown.watched.missing
    parts = [
        f"{number(moment.sent_pps)}/s sent" if moment.sent_pps else "",
        f"{number(moment.received_pps)}/s per subscriber" if moment.received_pps else "",
        f"p99 {duration_us(moment.p99_us)}" if moment.p99_us is not None else "",
    ]
    if missing is not None:
        share = f"{number(round(100 * missing, 1))} %" if missing >= _LEAST_MISSING else "under 1 %"
        parts.insert(2, f"{share} not there yet")
    return _line("now", ", ".join(filter(None, parts)))


def _slowest(watched: ProgressDetails) -> Text:
    if len(watched.slowest) < 2:
        return Text()
    rates = ", ".join(f"client {client}: {number(pps)}/s" for client, pps in watched.slowest)
    return _line("slowest", f"{rates} (of {watched.of:,})")


def _sparkline(
    name: str, values: Sequence[float | None], value_text: Callable[[float], str], style: str = "green"
) -> Text:
    known = [v for v in values if v is not None]
    if not known:
        return Text()
    last = "–" if values[-1] is None else value_text(values[-1])
    return _line(name, f"{sparkline(values)}  last {last}, highest {value_text(max(known))}", style)


def _keys(shown: LiveViewState) -> Text:
    if not shown.keys:
        return Text("Ctrl-C ends the run now", style="dim")
    keys = [
        "ends after this step" if shown.ends else f"{END_KEY} end after this step",
        "skips this row" if shown.passes_over else f"{SKIP_KEY} skip this row",
        "Ctrl-C end now",
    ]
    styles = ["bold yellow" if wanted else "dim" for wanted in (shown.ends, shown.passes_over, False)]
    return Text("   ").join(Text(text, style=style) for text, style in zip(keys, styles, strict=True))


def _line(name: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{name:<{_HEAD}}", "dim"), (text, style)) if text else Text()
