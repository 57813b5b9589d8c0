"""A grid: every client count with every combination of the settings that vary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import ClassVar, Final

from hydra.errors import Key
from hydra.measure.column import POINT, REASON, STATUS
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import PUBLISHERS, Scenario, SettingValue, StepPlan, SweepSpec, with_values
from hydra.model.base import MOST_PUBLISHERS
from hydra.sweep.interface import QUICK_DRAIN_S, Row, Sweep, connecting_s, expected_step_s, step_bound_s
from hydra.sweep.kind import SweepKind
from hydra.sweep.plan import RowSettings, SweepPlan
from hydra.sweep.rows import SweepRows
from hydra.sweep.steps import SweepSteps
from hydra.sweep.texts import SweepTexts

_TRIES: Final = 2
"""The most tries of a step."""


@dataclass(frozen=True, slots=True)
class GridSweep(SweepSpec):
    """The sweep in which every combination of values is a step; the client count is the outer loop.

    Attributes:
        vary: a table of lists: any key of ``[settings]``, or ``publishers``, and its values, each once. Every
            combination is a step, for each subscriber count.
    """

    key: ClassVar[str] = "vary"

    vary: Mapping[str, tuple[SettingValue, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        SweepSpec.__post_init__(self)  # with slots, super() does not find it
        if not all(self.vary.values()):
            raise ValueError("every list under vary needs at least one value")

    @property
    def publishers(self) -> tuple[int, ...]:
        """The numbers of publishers, if they vary."""
        return tuple(n for n in self.vary.get(PUBLISHERS, ()) if isinstance(n, int))

    @property
    def rows(self) -> int:
        """See :class:`hydra.model.SweepSpec`."""
        return len(self.clients) * prod(len(values) for values in self.vary.values())

    @property
    def varied(self) -> tuple[str, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return tuple(self.vary)

    @property
    def crossed(self) -> tuple[str, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return tuple(self.vary)

    def values_of(self, name: str, usual: SettingValue) -> tuple[SettingValue, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return tuple(self.vary.get(name, (usual,)))

    @property
    def first(self) -> Mapping[str, SettingValue]:
        """See :class:`hydra.model.SweepSpec`."""
        return {name: values[0] for name, values in self.vary.items()}

    def key_of(self, name: str) -> tuple[str, ...]:
        """See :class:`hydra.model.SweepSpec`."""
        return ("sweep", "vary", name) if name in self.vary else ("settings", name)

    def sizes(self, publishers: int) -> tuple[tuple[int, int], ...]:
        """See :class:`hydra.model.SweepSpec`."""
        counts = sorted(self.publishers or (publishers,))
        return tuple((senders, clients) for clients in self.counts for senders in counts)


class GridPlan(SweepPlan):
    """Every client count with every combination of the values under ``vary``."""

    _sweep: GridSweep

    def given(self) -> Iterator[RowSettings]:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        for name, values in self._sweep.vary.items():
            if name == PUBLISHERS:
                continue
            yield from (RowSettings(("sweep", "vary"), {name: value}, index) for index, value in enumerate(values))

    def refusals(self) -> Iterator[tuple[Key, str, str]]:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        for name, values in self._sweep.vary.items():
            if name == PUBLISHERS and not all(type(n) is int and 1 <= n <= MOST_PUBLISHERS for n in values):
                what = f"must be whole numbers from 1 to {MOST_PUBLISHERS}, not {list(values)}"
                yield ("sweep", "vary", name), what, ""
            if len(set(values)) < len(values):
                yield ("sweep", "vary", name), f"a value stands twice in {list(values)}", ""

    def completed(self) -> Scenario:
        """The scenario with the highest number of publishers of any row."""
        publishers = self._sweep.publishers
        return replace(self._scenario, publishers=max([1, *publishers])) if publishers else self._scenario

    def begin(self) -> Sweep:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        combinations = [
            dict(zip(self._sweep.vary, values, strict=True)) for values in product(*self._sweep.vary.values())
        ]
        plans = [self._plan(clients, varied) for clients in self._sweep.counts for varied in combinations]
        return Grid(self._scenario, plans)

    def _plan(self, clients: int, varied: Mapping[str, SettingValue]) -> StepPlan:
        publishers = varied.get(PUBLISHERS)
        settings = with_values(self._scenario.settings, varied)
        return StepPlan(
            clients, settings, self._sweep.duration_s, publishers=publishers if isinstance(publishers, int) else None
        )

    @property
    def facts(self) -> dict[str, object]:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        sweep = self._sweep
        vary = dict(sweep.vary)
        return {"duration_s": sweep.duration_s, "vary": vary, "repeat": sweep.repeat, "seconds": sweep.seconds}


class GridTexts(SweepTexts):
    """The texts about the rows of a grid."""

    _sweep: GridSweep

    @property
    def _outline_addition(self) -> str:
        return "".join(f" × {name} {', '.join(map(str, values))}" for name, values in self._sweep.vary.items())


GRID: Final = SweepKind(
    spec=GridSweep,
    uses=("clients", "vary"),
    plan=GridPlan,
    rows=SweepRows,
    texts=GridTexts,
    steps=SweepSteps,
    excludes="a sweep has either vary (a grid) or {others}, not both",
)
"""The kind of sweeps in which every combination of values is a step."""


class Grid(Sweep):
    """Steps in the order of their plans: ascending by client count, or as they are listed.

    A skipped step skips the other steps of its client count, because that number of clients did not fit; each of them
    keeps a row with the reason. A listed point, or a step that the user skipped, skips only itself. A failed step is
    retried once, and the row shows the last try.

    Results are matched by their plan, not by their order, because a resumed run returns to earlier rows. What was
    matched before is not matched again, so a step of a long run costs as much as one of a short run.
    """

    def __init__(self, scenario: Scenario, plans: Sequence[StepPlan]) -> None:
        self._varied = scenario.sweep.varied
        self._points = [(plan, _known(plan, self._varied)) for plan in plans]
        self._bound_s = sum(_TRIES * _bound_s(scenario, plan) for plan in plans)
        self._expected_s = sum(connecting_s(plan) + expected_step_s(scenario, plan) + QUICK_DRAIN_S for plan in plans)
        self._warmup_s = max(scenario.warmup_s, scenario.warmup_max_s) * len(scenario.sizes)
        self._begin()

    def _begin(self) -> None:
        """Forgets all results."""
        self._seen: list[StepResult] = []
        # The results of each point, in their order.
        self._tries: list[list[StepResult]] = [[] for _ in self._points]
        self._of_plan: dict[StepPlan, list[list[StepResult]]] = defaultdict(list)
        for (plan, _), tries in zip(self._points, self._tries, strict=True):
            self._of_plan[plan].append(tries)
        # All points before this one are closed; the client counts that they have skipped.
        self._closed = 0
        self._skipped: set[int] = set()

    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        self._take(results)
        for point in range(self._closed, len(self._points)):
            (plan, _), tries = self._points[point], self._tries[point]
            if _open(tries) and (tries or plan.clients not in self._skipped):
                return plan
            if tries and _skips_its_count(tries[-1]):
                self._skipped.add(plan.clients)
            self._closed = point + 1
        return None

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        self._take(results)
        rows: list[Row] = []
        skipped: dict[int, str] = {}
        for (plan, known), tries in zip(self._points, self._tries, strict=True):
            if not tries:
                if plan.clients in skipped:
                    rows.append({**known, STATUS: "skipped", REASON: skipped[plan.clients]})
                continue
            last = tries[-1]
            if _skips_its_count(last):
                skipped[plan.clients] = last.reason
            reason = last.reason
            if last.status == "ok" and len(tries) > 1:
                reason = f"measured at the second try; the first failed: {tries[0].reason}"
            # Varied settings keep the values of the plan, although figures may have columns of the same name.
            rows.append({**known, **last.figures.cells, **known, STATUS: last.status, REASON: reason})
        return rows

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        self._take(results)
        return {tries[0].epoch for tries in self._tries if _exhausted(tries)}

    def steps(self) -> int | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return len(self._points)

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return self._bound_s + self._warmup_s

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`."""
        return self._expected_s + self._warmup_s

    def _take(self, results: Sequence[StepResult]) -> None:
        """Matches these results with points.

        Raises:
            ValueError: a result belongs to no point.
        """
        if list(results[: len(self._seen)]) != self._seen:
            self._begin()
        for result in results[len(self._seen) :]:
            if result.plan not in self._of_plan:
                raise ValueError(
                    f"step {result.epoch} measured {result.plan}, which this sweep does not ask for: "
                    "the results belong to another scenario"
                )
            open_point = next((tried for tried in self._of_plan[result.plan] if _open(tried)), None)
            if open_point is None:
                raise ValueError("there are more results than this sweep has steps")
            open_point.append(result)
            self._seen.append(result)


def _bound_s(scenario: Scenario, plan: StepPlan) -> float:
    waits_s = 0.0 if plan.settings.connect_rate is None else plan.settings.connect_within_s
    return connecting_s(plan) + waits_s + step_bound_s(scenario, plan.duration_s)


def _known(plan: StepPlan, varied: Sequence[str]) -> Row:
    """What is known of a row before it is measured."""
    settings = {name: plan.value(name) for name in varied}
    if not plan.point:
        return {CLIENTS: plan.clients, **settings}
    return {POINT: plan.point, CLIENTS: plan.clients, PUBLISHERS: plan.publishers, **settings}


def _open(tries: Sequence[StepResult]) -> bool:
    """Whether a point is still to be measured."""
    return not tries or (tries[-1].status == "failed" and not _exhausted(tries))


def _skips_its_count(last: StepResult) -> bool:
    """Whether the last try of a point skips the other points of its client count."""
    return last.status == "skipped" and not last.plan.point and not last.passed_over


def _exhausted(tries: Sequence[StepResult]) -> bool:
    return len(tries) >= _TRIES and tries[-1].status == "failed"
