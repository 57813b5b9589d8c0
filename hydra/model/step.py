"""Plans of steps, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hydra.model.base import Figure, require
from hydra.model.settings import PUBLISHERS, Settings, value_of

CohortKind = Literal["none", "slow", "reconnecting", "spells"]
ImpairmentKind = Literal["slow", "gone"]


@dataclass(frozen=True, slots=True)
class ImpairmentSpec:
    """A part of the window (s since its start) in which the cohort is slow (``rate`` messages/s) or disconnected."""

    kind: ImpairmentKind
    begin_s: float
    end_s: float
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Cohort:
    """A part of the subscribers that behaves differently during a step.

    It is ``fraction`` of the subscribers, drawn with ``seed``. ``rate`` is the messages/s that a slow subscriber reads,
    or the reconnections/s of a reconnecting one. The kind ``"spells"`` is impaired in parts of the step only
    (``StepPlan.spells``).
    """

    kind: CohortKind = "none"
    fraction: float = 0.0
    rate: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(0 <= self.fraction < 1, f"fraction of a cohort must be 0 to below 1, not {self.fraction}")


@dataclass(frozen=True, slots=True)
class ServerRestart:
    """The end of the server by SIGKILL, in seconds since the start, and the time until it is started again."""

    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The plan of one step of a sweep.

    ``series`` names the search or grid that the step belongs to (``"grid"``, ``"max_rate"``, ``"loss"``, ``"slow"``,
    ``"reconnecting"``). ``publishers`` is how many publishers send; None: all of the scenario's. Without subscribers
    (``clients`` 0) only the log shows what arrived. ``load`` is a changing rate: seconds since the start and messages/s
    of each publisher; ``settings.rate`` is then its mean. ``spells`` are the impairments of the cohort, and ``course``
    asks for a time series. ``restarts`` are the planned ends of the server, in the order of time. ``point`` is the name
    of the sweep's point, "" if the sweep lists none. ``rest_s`` is a pause without traffic before the step, in seconds.
    """

    clients: int
    settings: Settings
    duration_s: float
    series: str = "grid"
    cohort: Cohort = Cohort()
    publishers: int | None = None
    point: str = ""
    load: tuple[tuple[float, float], ...] = ()
    spells: tuple[ImpairmentSpec, ...] = ()
    course: bool = False
    restarts: tuple[ServerRestart, ...] = ()
    rest_s: float = 0.0

    def __post_init__(self) -> None:
        require(self.publishers is None or self.publishers >= 1, f"publishers must be 1 or more, not {self.publishers}")
        require(self.clients >= 0, f"clients must be 0 or more, not {self.clients}")
        require(0 < self.duration_s <= 86_400, f"duration_s must be above 0 and at most 86400, not {self.duration_s}")
        require(0 <= self.rest_s <= 86_400, f"rest_s must be 0 to 86400, not {self.rest_s}")

    def value(self, name: str) -> Figure:
        """The value of what a sweep varies: a setting, or the number of publishers."""
        return self.publishers if name == PUBLISHERS else value_of(self.settings, name)


StepStatus = Literal["ok", "failed", "skipped"]
SKIPPED_BY: Final = "skipped_by"
"""The figure of a skipped step that is ``USER`` if the user skipped it."""
USER: Final = "user"
"""The value of ``SKIPPED_BY`` if the user skipped the row; other rows may still be measured."""
