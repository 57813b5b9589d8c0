"""``[[sweep.points]]``: a list of the rows of a sweep, each with its name and its own settings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any, ClassVar, Final

from hydra.errors import Key, RefusedError, shown
from hydra.measure.column import POINT, Column, SystemColumns, text_column
from hydra.measure.column import PUBLISHERS as UNIT
from hydra.model import PUBLISHERS, Bounded, Scenario, SettingValue, StepPlan, SweepSpec, setting, value_of, with_values
from hydra.model.base import DAY_S, MOST_CLIENTS, MOST_PUBLISHERS
from hydra.sweep.grid import Grid
from hydra.sweep.interface import Row, Sweep
from hydra.sweep.kind import SweepKind
from hydra.sweep.plan import Case, RowSettings, SweepPlan
from hydra.sweep.rows import SweepRows
from hydra.sweep.steps import SweepSteps
from hydra.sweep.texts import SweepTexts

_KEY: Final[Key] = ("sweep", "points")
_NAME_CHARACTERS: Final = 100

_NAMED: Final = text_column(POINT, "name of the row, if the sweep lists its rows", "Point")
_SENDERS: Final = Column(
    PUBLISHERS, UNIT, "publishers that sent, if the sweep lists its rows", "Publishers", repeats="common"
)


@dataclass(frozen=True, slots=True)
class SweepPoint(Bounded):
    """One row of a sweep that lists its rows; ``settings`` are those that differ from the scenario's.

    Attributes:
        name: the name of the row, in the column ``point``.
        clients: the number of subscribers. 0 is possible if servers keep the messages: then only publishers
            run, and the log shows how many messages arrived.
        publishers: the number of publishers, in the column ``publishers``; unset: the scenario's. Publishers that the
            row does not need are ended, and started again for a row that needs them.
        duration_s: the length of the step in seconds; unset: that of ``[sweep]``.
    """

    name: str
    clients: int = setting(0, least=0, most=MOST_CLIENTS)
    publishers: int | None = setting(None, least=1, most=MOST_PUBLISHERS)
    duration_s: float | None = setting(None, least=0.001, most=DAY_S)
    settings: Mapping[str, SettingValue] = field(default_factory=dict)


_POINT_KEYS: Final = tuple(f.name for f in fields(SweepPoint) if f.name != "settings")
"""The keys that may stand beside the settings of a point."""


@dataclass(frozen=True, slots=True)
class PointSweep(SweepSpec):
    """The sweep whose rows are listed.

    Attributes:
        points: the rows one by one, in place of ``clients``, ``vary`` and ``search``.
    """

    key: ClassVar[str] = "points"

    points: tuple[SweepPoint, ...] = ()

    @property
    def rows(self) -> int:
        """See :class:`hydra.model.SweepSpec`."""
        return len(self.points)

    @property
    def counts(self) -> tuple[int, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return tuple(sorted({point.clients for point in self.points}))

    def sizes(self, publishers: int) -> tuple[tuple[int, int], ...]:
        """See :class:`hydra.model.SweepSpec`."""
        found = {(publishers if p.publishers is None else p.publishers, p.clients) for p in self.points}
        return tuple(sorted(found, key=lambda size: (size[1], size[0])))

    @property
    def varied(self) -> tuple[str, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return tuple(dict.fromkeys(name for point in self.points for name in point.settings))

    def values_of(self, name: str, usual: SettingValue) -> tuple[SettingValue, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return tuple(dict.fromkeys(point.settings.get(name, usual) for point in self.points))

    @property
    def first(self) -> Mapping[str, SettingValue]:
        """See :class:`hydra.model.SweepSpec`."""
        return self.points[0].settings

    @property
    def longest_s(self) -> float:
        """See :class:`hydra.model.SweepSpec`."""
        return max(self._length_s(point) for point in self.points)

    @property
    def shortest_s(self) -> float:
        """See :class:`hydra.model.SweepSpec`."""
        return min(self._length_s(point) for point in self.points)

    def length_s(self, point: str) -> float:
        """See :class:`hydra.model.SweepSpec`."""
        return next((self._length_s(p) for p in self.points if p.name == point), self.duration_s)

    def _length_s(self, point: SweepPoint) -> float:
        return point.duration_s or self.duration_s


class PointPlan(SweepPlan):
    """Each point once, in the order of the file."""

    _sweep: PointSweep

    @property
    def aims(self) -> None:
        """See :class:`hydra.sweep.plan.SweepPlan`: no published table lists points."""
        return None

    def completed(self) -> Scenario:
        """The scenario with a number of publishers at each point, and the highest of these numbers itself."""
        usual = self._scenario.publishers
        points = tuple(
            replace(p, publishers=usual if p.publishers is None else p.publishers) for p in self._sweep.points
        )
        most = max(p.publishers for p in points if p.publishers is not None)
        return replace(self._scenario, publishers=most, sweep=replace(self._sweep, points=points))

    def given(self) -> Iterator[RowSettings]:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        for index, point in enumerate(self._sweep.points):
            yield RowSettings((*_KEY, index), point.settings, keys=_POINT_KEYS)

    def cases(self) -> list[Case]:
        """See :class:`hydra.sweep.plan.SweepPlan`: each point alone, with its settings as those of the scenario."""
        return [Case(self._at(point), (*_KEY, index), point.settings) for index, point in enumerate(self._sweep.points)]

    def _length_s(self, point: SweepPoint) -> float:
        return point.duration_s or self._sweep.duration_s

    def _at(self, point: SweepPoint) -> Scenario:
        publishers = self._scenario.publishers if point.publishers is None else point.publishers
        own = replace(point, publishers=publishers, duration_s=self._length_s(point))
        return replace(
            self._scenario,
            settings=with_values(self._scenario.settings, point.settings),
            publishers=publishers,
            sweep=replace(self._sweep, points=(own,), duration_s=self._length_s(point)),
        )

    def begin(self) -> Sweep:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        plans = [
            StepPlan(
                point.clients,
                with_values(self._scenario.settings, point.settings),
                self._length_s(point),
                publishers=self._scenario.publishers if point.publishers is None else point.publishers,
                point=point.name,
            )
            for point in self._sweep.points
        ]
        return Grid(self._scenario, plans)

    def parts(self) -> dict[Hashable, Scenario]:
        """See :class:`hydra.sweep.plan.SweepPlan`: each point with all varied settings, for equal columns."""
        usual = {name: value_of(self._scenario.settings, name) for name in self._sweep.varied}
        alone = {
            (p.name, p.clients): replace(self._sweep, points=(replace(p, settings={**usual, **p.settings}),), repeat=1)
            for p in self._sweep.points
        }
        return {part: replace(self._scenario, sweep=sweep) for part, sweep in alone.items()}


class PointRows(SweepRows):
    """A row for each point, with its name."""

    across: ClassVar[str] = POINT

    def published(self, system: SystemColumns) -> tuple[Column, ...]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        clients, *others = SweepRows.published(self, system)
        return _NAMED, clients, _SENDERS, *others

    def name_of(self, row: Row, title: Callable[[str], str]) -> str:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        return str(row[POINT])


class PointTexts(SweepTexts):
    """The texts about the rows of points."""

    _sweep: PointSweep

    @property
    def outline(self) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`."""
        return f"{', '.join(p.name for p in self._sweep.points)}; "


def _read(written: Any) -> Any:
    """The points as :class:`SweepPoint` is built from them; in a file, a point's settings stand beside its name."""
    if not isinstance(written, list) or not written:
        raise RefusedError(_KEY, "must be tables", "write each point under its own [[sweep.points]]")
    points = [_split((*_KEY, index), row) for index, row in enumerate(written)]
    names: dict[object, int] = {}
    for index, point in enumerate(points):
        name = point.get("name")
        if isinstance(name, str):
            _check_name((*_KEY, index, "name"), name)
        if name is not None and names.setdefault(repr(name), index) != index:
            what = f"{shown(name)} is the name of {'.'.join(map(str, _KEY))}.{names[repr(name)]} already"
            raise RefusedError((*_KEY, index, "name"), what, "give every point a name of its own")
    return points


def _split(key: Key, row: object) -> dict[str, Any]:
    """A point as :class:`SweepPoint` is built from it; in a file its settings stand beside its name."""
    if not isinstance(row, dict):
        raise RefusedError(key, "must be a table")
    settings: dict[str, Any] = {}
    for name, value in row.items():
        if name in _POINT_KEYS:
            continue
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not isfinite(value)):
            what = f"must be a number, a text, true or false, not {shown(value)}"
            raise RefusedError((*key, name), what, "write the settings of a point beside its name, one a line")
        settings[name] = value
    return {**{name: row[name] for name in _POINT_KEYS if name in row}, "settings": settings}


def _check_name(key: Key, name: str) -> None:
    if not name.strip() or len(name) > _NAME_CHARACTERS or not name.isprintable() or "|" in name:
        what = f"must be 1 to {_NAME_CHARACTERS} characters without | and control characters, not {shown(name)}"
        raise RefusedError(key, what, "write the row's name as the table shall show it")


POINTS: Final = SweepKind(
    spec=PointSweep,
    uses=("points",),
    plan=PointPlan,
    rows=PointRows,
    texts=PointTexts,
    steps=SweepSteps,
    read=_read,
    excludes="points stand in place of {instead}: remove {others}",
)
"""The kind of sweeps whose rows are listed."""
