"""What a warning is, and everything that has to be known of a run as a whole, each with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hydra.errors import EXIT_INCOMPLETE
from hydra.events.event import Event, Level

GO_ON: Final = "go on with --resume and the run's directory"


class HydraWarning(Event):
    """Something the user has to know. ``str(warning)`` is its text and its remedy."""

    __slots__ = ()

    kind = "warning"
    level = Level.NOTE
    summary = "what has to be known of the run"

    @property
    def remedy(self) -> str:
        """What to try; "" where nothing is to be done."""
        return ""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


@dataclass(frozen=True, slots=True)
class Interrupted(HydraWarning):
    """The user ended the run, ``by_key`` after the step that was measured; ``out`` is its directory."""

    out: str
    by_key: bool = False

    @property
    def text(self) -> str:
        how = "ended after this step, as was asked for with a key" if self.by_key else "interrupted"
        return f"{how}: what was measured is kept"

    @property
    def remedy(self) -> str:
        return f"go on with --resume {self.out}"


@dataclass(frozen=True, slots=True)
class RunIncomplete(HydraWarning):
    """A run did not measure all that it was to measure; ``ahead`` is its next step in words."""

    level = Level.FAIL
    remedy = GO_ON
    ended: str
    error: str
    ahead: str

    @property
    def text(self) -> str:
        ahead = f"the sweep would go on with {self.ahead}"
        return "; ".join(filter(None, (_how_it_ended(self.ended, self.error), ahead)))


@dataclass(frozen=True, slots=True)
class RunEndedBadly(HydraWarning):
    """A run measured every step, and could not conclude."""

    level = Level.FAIL
    remedy = GO_ON
    ended: str
    error: str

    @property
    def text(self) -> str:
        return f"{_how_it_ended(self.ended, self.error)}, after its last step"


def _how_it_ended(ended: str, error: str) -> str:
    known = {
        "finished": "",
        "interrupted": "it was interrupted",
        "failed": f"it could not go on: {error}" if error else "it could not go on",
        "": "it was killed, or it still goes on",
    }
    return known.get(ended, f"it ended as {ended!r}")


@dataclass(frozen=True, slots=True)
class StepNotMeasured(HydraWarning):
    """A step failed or was skipped; ``position`` tells it from the others, as in ``StepMeasured``.

    ``again`` is whether it is tried once more.
    """

    position: str
    status: str
    reason: str
    again: bool = False

    @property
    def text(self) -> str:
        status = f"{self.status.upper()}, is tried once more" if self.again else self.status.upper()
        return f"{self.position}: {status}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SubscribersFailed(HydraWarning):
    """Subscribers died or fell silent that nobody planned to lose: (number, clients, what became of them) by row."""

    rows: Sequence[tuple[int, object, str]]

    @property
    def text(self) -> str:
        rows = "; ".join(f"row {number} ({clients} clients): {gone}" for number, clients, gone in self.rows)
        return f"subscribers failed by themselves, the exit code is {EXIT_INCOMPLETE}: {rows}"


@dataclass(frozen=True, slots=True)
class LeftBehind(HydraWarning):
    """Something of this run that could not be removed from servers that are not ours; ``removal`` says how to."""

    what: str
    where: str
    removal: str

    @property
    def text(self) -> str:
        return f"{self.what} may be left at {self.where}"

    @property
    def remedy(self) -> str:
        return self.removal


@dataclass(frozen=True, slots=True)
class LeftEarlier(HydraWarning):
    """Something that an earlier, killed part of this run had left behind, and what has become of it."""

    what: str
    outcome: str

    @property
    def text(self) -> str:
        return f"an earlier part of this run left {self.what} behind: {self.outcome}"


@dataclass(frozen=True, slots=True)
class SettingsSkipped(HydraWarning):
    """Settings of servers that are the user's: they keep their own."""

    names: Sequence[str]
    address: str

    @property
    def text(self) -> str:
        return f"the servers at {self.address} keep their own settings: {', '.join(self.names)} of the preset not set"


@dataclass(frozen=True, slots=True)
class MetricsRefused(HydraWarning):
    """An OpenTelemetry receiver has not taken what it was sent; ``url`` is its address."""

    remedy = "check its address; the run goes on, and its rows are kept"
    url: str

    @property
    def text(self) -> str:
        return f"{self.url} does not take all metrics"


@dataclass(frozen=True, slots=True)
class EarlierRates(HydraWarning):
    """Rates that an earlier version searched for in another way."""

    level = Level.LOSS
    remedy = "measure them again"

    @property
    def text(self) -> str:
        return (
            "an earlier Hydra searched for them in another way: another search may have found rates several times as "
            "high or as low, and an interval that is shown may be too narrow"
        )


@dataclass(frozen=True, slots=True)
class ForeignRates(HydraWarning):
    """Rates of a search that this version would have carried out otherwise."""

    level = Level.LOSS

    @property
    def text(self) -> str:
        return (
            "another version of Hydra searched for them, and this one would have asked for other steps: they are shown "
            "as that version stored them"
        )
