"""What a scenario varies, the common part of all kinds of sweeps; and the plan and the result of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from hydra.model.base import DAY_S, MOST_CLIENTS, Bounded, Figure, Setting, SettingValue, require, setting
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


DEFAULT_LOSS_TARGET: Final = 0.005
"""The loss (a fraction) within which a step passes where no target was given: the published one."""


@dataclass(frozen=True, slots=True)
class SweepSpec(Bounded):
    """The common part of all kinds of sweeps: subscriber counts, one after another.

    Each kind has a file in ``hydra/sweep``; ``hydra/sweep/kind.py`` has the objects for results and tables.

    Attributes:
        clients: the numbers of subscribers, measured in ascending order; required unless ``points`` are listed.
        duration_s: the length of a step in seconds.
        repeat: how often each row is measured; a repeated row has means with their 95 % confidence intervals, and
            percentiles of all repeats together.
        seconds: whether the time series of each step is kept, if its rate is given or ``"max"``; loads that change and
            ``hydra slo`` always keep it. The report and ``hydra compare`` plot it.
    """

    key: ClassVar[str] = ""
    """The field of its kind, a key of the table ``[sweep]``; "" for a sweep without a kind."""
    decided: ClassVar[tuple[str, ...]] = ()
    """The settings that results decide: their values are not known before a step is measured."""

    duration_s: float = field(
        metadata=Setting(
            help="Length of each step, such as 90s or 10min.",
            flag=("--duration",),
            unit="s",
            least=0.001,
            most=DAY_S,
        ).metadata
    )
    clients: tuple[int, ...] = setting(
        (), "Subscriber counts.", flag=("--subscribers", "--clients"), least=1, most=MOST_CLIENTS
    )
    repeat: int = setting(
        1,
        "Measure each row N times. Rates and losses are means with 95 % intervals; percentiles are those of the "
        "latencies of all repeats together.",
        metavar="N",
        least=1,
        most=10_000,
    )
    seconds: bool = False

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(len(set(self.clients)) == len(self.clients), f"a subscriber count stands twice in {list(self.clients)}")
        if self.key and not self.counts:
            raise ValueError("clients must name at least one subscriber count, or list points")

    @property
    def rows(self) -> int:
        """The number of rows of the complete table."""
        return len(self.counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """The subscriber counts that rows can have, each once, ascending."""
        return tuple(sorted(self.clients))

    def sizes(self, publishers: int) -> tuple[tuple[int, int], ...]:
        """The sizes (publishers, subscribers) that rows can have, each once, ascending by subscribers.

        Args:
            publishers: the scenario's number of publishers.
        """
        return tuple((publishers, clients) for clients in self.counts)

    @property
    def varied(self) -> tuple[str, ...]:
        """The settings that vary between rows, in the order of the file."""
        return ()

    @property
    def crossed(self) -> tuple[str, ...]:
        """The varied settings whose values are combined with every client count; they name rows and lines of plots."""
        return ()

    def values_of(self, name: str, usual: SettingValue) -> tuple[SettingValue, ...]:
        """Every value that a setting has in some row; ``usual`` is the scenario's value."""
        return (usual,)

    @property
    def first(self) -> Mapping[str, SettingValue]:
        """The settings of the first row that differ from the scenario's."""
        return {}

    def key_of(self, name: str) -> tuple[str, ...]:
        """The path of the key that sets the values of a setting."""
        return ("settings", name)

    @property
    def loss_target(self) -> float:
        """The maximum loss, as a fraction, with which a step passes, unless the scenario has another target."""
        return DEFAULT_LOSS_TARGET

    @property
    def cohorts(self) -> Mapping[str, tuple[str, ...]]:
        """The kinds of cohorts of the steps, each with the path of the key that asks for it."""
        return {}

    @property
    def longest_s(self) -> float:
        """The length of the longest step in seconds."""
        return self.duration_s

    @property
    def shortest_s(self) -> float:
        """The length of the shortest step in seconds."""
        return self.duration_s

    def length_s(self, point: str) -> float:
        """The length in seconds of the steps of a point; ``point`` is "" if no points are listed."""
        return self.duration_s
