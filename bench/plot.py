"""Draws curves on logarithmic axes as SVG: what something costs by the number of clients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

Point = tuple[float, float]

_WIDTH: Final = 760
_HEIGHT: Final = 440
_LEFT: Final = 80
_RIGHT: Final = 210
_TOP: Final = 20
_BOTTOM: Final = 60
_GUIDE: Final = "#999"
_COLOURS: Final = ("#3949ab", "#e64a19", "#00897b", "#8e24aa", "#6d4c41", "#546e7a", "#c0ca33", "#d81b60")


class Axes(NamedTuple):
    """What the axes show, with units."""

    across: str
    up: str


def svg(curves: Mapping[str, Sequence[Point]], axes: Axes, goal: float) -> str:
    """One curve for each name, and a dashed line with the slope of the goal; values must be above zero to be drawn."""
    good = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in curves.items()}
    every = [point for points in good.values() for point in points]
    scales = [_Scale([point[axis] for point in every]) for axis in (0, 1)]
    drawn = [part for n, curve in enumerate(good.items()) for part in _curve(n, curve, *scales)]
    body = "\n".join([*_grid(*scales), *_labels(axes), *_guide(goal, len(good), *scales), *drawn])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        f' font-size="12"><rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


class _Scale:
    """Whole decades around values."""

    def __init__(self, values: Sequence[float]) -> None:
        self.first = math.floor(math.log10(min(values)))
        self.last = max(math.ceil(math.log10(max(values))), self.first + 1)

    def share(self, value: float) -> float:
        """0 at the first decade, 1 at the last."""
        return self.at(math.log10(value))

    def at(self, exponent: float) -> float:
        """The share of the value with this exponent."""
        return (exponent - self.first) / (self.last - self.first)

    @property
    def middle(self) -> float:
        """The exponent in the middle."""
        return (self.first + self.last) / 2

    @property
    def decades(self) -> range:
        """Exponents of the marks."""
        return range(self.first, self.last + 1)


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _grid(across: _Scale, up: _Scale) -> Iterator[str]:
    line = '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#ddd"/>'
    for exponent in across.decades:
        x = _x(across.share(10.0**exponent))
        yield line.format(x, _y(0), x, _y(1))
        yield f'<text x="{x:.1f}" y="{_y(0) + 18:.1f}" text-anchor="middle">{_value(exponent)}</text>'
    for exponent in up.decades:
        y = _y(up.share(10.0**exponent))
        yield line.format(_x(0), y, _x(1), y)
        yield f'<text x="{_x(0) - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{_value(exponent)}</text>'


def _value(exponent: int) -> str:
    return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:g}"


def _labels(axes: Axes) -> Iterator[str]:
    yield f'<text x="{_x(0.5):.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{escape(axes.across)}</text>'
    turned = f'transform="rotate(-90 18 {_y(0.5):.1f})"'
    yield f'<text x="18" y="{_y(0.5):.1f}" text-anchor="middle" {turned}>{escape(axes.up)}</text>'


def _guide(slope: float, place: int, across: _Scale, up: _Scale) -> Iterator[str]:
    """A dashed line of this slope through the middle, as long as it fits, and its name below those of the curves."""
    reach = min((across.last - across.first) / 2, (up.last - up.first) / 2 / slope)
    ends = [(_x(across.at(across.middle + d)), _y(up.at(up.middle + slope * d))) for d in (-reach, reach)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in ends)
    yield f'<polyline points="{path}" fill="none" stroke="{_GUIDE}" stroke-width="2" stroke-dasharray="6 5"/>'
    yield _name(place, f"goal: slope {slope:g} or less", _GUIDE)


def _name(place: int, text: str, colour: str) -> str:
    return f'<text x="{_x(1) + 12:.1f}" y="{_TOP + 12 + 18 * place}" fill="{colour}">{escape(text)}</text>'


def _curve(n: int, curve: tuple[str, Sequence[Point]], across: _Scale, up: _Scale) -> Iterator[str]:
    name, points = curve
    colour = _COLOURS[n % len(_COLOURS)]
    places = [(_x(across.share(x)), _y(up.share(y))) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)
    yield _name(n, name, colour)
