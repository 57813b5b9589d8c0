"""What cells of a notebook show: HTML, and figures as text in it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from hydra.measure.column import Column
from hydra.model import Figure

UNKNOWN: Final = "—"


@dataclass(frozen=True, slots=True)
class Html:
    """What a cell shows."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


def style() -> str:
    """The look of the parts below, as an element."""
    css = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"


def figure(column: Column, value: Figure) -> str:
    """A figure as text, thousands grouped; large ones have no digits behind the point."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column.digits == "six":
            return f"{value:.6g}"
        return f"{value:,.0f}" if value.is_integer() or abs(value) >= 10_000 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else escape(value)


def scrolling(inner: str, classes: str) -> str:
    """A table that is wider than the page can be moved."""
    return f'<div class="scroll"><table class="{classes}">{inner}</table></div>'


def block(inner: str) -> Html:
    """Part of a page, in the look of :func:`style`."""
    return Html(f'<div class="hydra">{inner}</div>')
