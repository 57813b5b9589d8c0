"""The HTML of the list of runs, of error pages, and of the links above a report or a comparison. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from hydra.events.value_formatting import counted
from hydra.jupyter.summary import label, mark
from hydra.report.figure_texts import OF_RUNS, marks_line
from hydra.serve.overview import RunEntry
from hydra.serve.routing import STYLE, comparing_url, listing_url, run_url
from hydra.sweep.texts import HeadlineFigure

_HEADS: Final = ("Compare", "Run", "Scenario", "Clients", "Subscribers", "Steps", "Figures", "Began", "Ended")
_GOOD: Final = "finished"


def page(title: str, body: str) -> str:
    """A whole page.

    Args:
        title: title of the browser's window, as text.
        body: the page's content as HTML.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<link rel="stylesheet" href="/assets/{STYLE}">\n'
        f"<title>{escaped(title)}</title>\n</head>\n"
        f'<body class="page">\n<a class="skip" href="#content">To the content</a>\n'
        f'<main id="content" class="hydra served">\n{body}\n</main>\n</body>\n</html>\n'
    )


def escaped(name: str) -> str:
    """Text escaped for HTML; bytes of a folder's name that are not UTF-8 become replacement characters."""
    return escape(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def run_list_page(folder: str, within: str, entries: Sequence[RunEntry]) -> str:
    """The page with the list of runs.

    Args:
        folder: the folder of the runs, as text.
        within: the inner folder whose runs are listed; "" for the folder itself.
        entries: the runs in the order in which they are shown.
    """
    title = f"Runs of {within}" if within else "Runs"
    above = f'<nav aria-label="Site"><a href="{listing_url("")}">All runs</a></nav>\n' if within else ""
    bad, runs = sum(each.kind == "unreadable" for each in entries), counted(len(entries), "run")
    runs += f", {bad} of them cannot be read," if bad else ""
    head = f'{above}<h1>{escaped(title)}</h1>\n<p class="lead">{runs} in <code>{escaped(folder)}</code></p>\n'
    if not entries:
        return page(title, f"{head}<p>A run appears here as soon as it has begun: reload the page.</p>")
    rows = "\n".join(_row(each) for each in entries)
    heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
    table = (
        '<div class="scroll runs" role="region" tabindex="0" aria-label="Table of runs"><table class="rows runs">\n'
        f"<caption>Newest first</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )
    shown = [each_mark for each in entries for each_mark in (each.mark, *map(mark, each.numbers))]
    if marks := marks_line(shown, OF_RUNS):
        table += f'\n<p class="below">{escape(marks)}</p>'
    return page(f"Hydra: {title}", f'{head}<form action="/compare" method="get">\n{_button(entries)}{table}\n</form>')


def _button(entries: Sequence[RunEntry]) -> str:
    if not any(each.is_comparable for each in entries):
        return ""
    return (
        '<div class="choose"><button type="submit" aria-describedby="how">Compare the chosen runs</button>\n'
        '<p class="below" id="how">Choose two runs or more. The first of the list is the base; the page of the '
        "comparison offers the others. Hydra makes a report or a comparison when it is opened for the first time, "
        "which takes some seconds.</p></div>\n"
    )


def _row(each: RunEntry) -> str:
    name = escaped(each.name)
    box = f'<input type="checkbox" name="run" value="{name}" aria-label="Compare {name}">'
    link = name if each.kind == "unreadable" else f'<a href="{escape(_opened(each))}">{name}</a>'
    if each.kind in ("experiment", "together"):
        link += f'<br><a href="{escape(listing_url(each.name))}" aria-label="Runs of {name}">its runs</a>'
    steps = f'{each.steps}<br><span class="mark">{each.bad} not measured</span>' if each.bad else each.steps
    figures = "<br>".join(map(_figure, each.numbers))
    below = "".join(f'<br><span class="interval">{escaped(text)}</span>' for text in (each.system, each.setup) if text)
    why = f'<br><span class="why">{escaped(each.why)}</span>' if each.why else ""
    began = each.began[:16].replace("T", " ")
    cells = (
        escaped(each.scenario) + below,
        escaped(each.client),
        each.counts,
        steps,
        figures,
        f'<time datetime="{escape(each.began)}">{escape(began)}</time>' if began else "",
        f"{_ended(each)}{why}",
    )
    classes = ' class="failed"' if each.kind == "unreadable" else ""
    body = "".join(f'<td data-label="{head}">{cell}</td>' for head, cell in zip(_HEADS[2:], cells, strict=True))
    return f'<tr{classes}><td>{box if each.is_comparable else ""}</td><th scope="row">{link}</th>{body}</tr>'


def _figure(n: HeadlineFigure) -> str:
    text = f"{escaped(label(n))} <strong>{escaped(n.value)}</strong>"
    text = f'<span class="mark">{text}</span>' if mark(n) else text
    return f'{text}<br><span class="interval">{escaped(n.detail)}</span>'


def _ended(each: RunEntry) -> str:
    """How a run ended, in green only if the run has no mark."""
    good = each.ended == _GOOD and not each.mark
    text = f"{each.mark} {each.ended}".strip()
    return f'<span class="{"all-good" if good else "mark"}">{escaped(text)}</span>'


def _opened(each: RunEntry) -> str:
    """The URL that a run's link opens; for runs that were measured together, the URL of their comparison."""
    return comparing_url((each.name,)) if each.kind == "together" else run_url(each.name)


def refusal_page(status: int, phrase: str, what: str) -> str:
    """A page that reports why the requested page cannot be shown, with a link to the list of runs."""
    return page(
        f"Hydra: {phrase}",
        f'<h1>{escaped(phrase)}</h1>\n<p class="lead">{escaped(what)}</p>\n<p class="below">{status}</p>\n'
        f'<p><a href="{listing_url("")}">All runs</a></p>',
    )


def above_report(run: str) -> str:
    """The links above a report."""
    parent = run.rpartition("/")[0]
    up = f' · <a href="{escape(listing_url(parent))}">Runs of {escaped(parent)}</a>' if parent else ""
    return _above(f'<a href="{listing_url("")}">All runs</a>{up}')


def above_comparison(runs: tuple[str, ...]) -> str:
    """The links above a comparison: its base, and the same comparison with every other run as the base."""
    parts = [f'<a href="{listing_url("")}">All runs</a>']
    if len(runs) > 1:
        parts.append(f"Base: <strong>{escaped(runs[0])}</strong>")
        others = [(run, (run, *(each for each in runs if each != run))) for run in runs[1:]]
        links = ", ".join(f'<a href="{escape(comparing_url(order))}">{escaped(run)}</a>' for run, order in others)
        parts.append(f"take another as the base: {links}")
    parts += [f'<a href="{escape(run_url(run))}">report of {escaped(run)}</a>' for run in runs if len(runs) > 1]
    return _above(" · ".join(parts))


def _above(inner: str) -> str:
    return (
        f'<link rel="stylesheet" href="/assets/{STYLE}">\n'
        f'<div class="hydra served"><nav aria-label="Site">{inner}</nav></div>\n'
    )
