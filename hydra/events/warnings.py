"""What a warning of a run is, each with what to do about it; and the journal, where everything that happens passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hydra.errors import EXIT_INCOMPLETE
from hydra.events.event import Event, Level

GO_ON: Final = "go on with --resume and the run's directory"


class HydraWarning(Event):
    """Something the user has to know."""

    kind = category = "warning"
    level = Level.NOTE
    summary = "what has to be known of the run"


class Interrupted(HydraWarning):
    """The user ended the run, ``by_key`` after the step that was measured; ``out`` is its directory."""

    template = "{how}: what was measured is kept"
    out: str
    by_key: bool = False

    @property
    def how(self) -> str:
        """How it ended."""
        return "ended after this step, as was asked for with a key" if self.by_key else "interrupted"

    @property
    def remedy(self) -> str:
        return f"go on with --resume {self.out}"


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


class RunEndedBadly(HydraWarning):
    """A run measured every step, and could not conclude."""

    level = Level.FAIL
    remedy = GO_ON
    template = "{how}, after its last step"
    ended: str
    error: str

    @property
    def how(self) -> str:
        """How it ended."""
        return _how_it_ended(self.ended, self.error)


def _how_it_ended(ended: str, error: str) -> str:
    known = {
        "finished": "",
        "interrupted": "it was interrupted",
        "failed": f"it could not go on: {error}" if error else "it could not go on",
        "": "it was killed, or it still goes on",
    }
    return known.get(ended, f"it ended as {ended!r}")


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


class SubscribersFailed(HydraWarning):
    """Subscribers died or fell silent that nobody planned to lose: (number, clients, what became of them) by row."""

    rows: Sequence[tuple[int, object, str]]

    @property
    def text(self) -> str:
        rows = "; ".join(f"row {number} ({clients} clients): {gone}" for number, clients, gone in self.rows)
        return f"subscribers failed by themselves, the exit code is {EXIT_INCOMPLETE}: {rows}"


class CleanupFailed(HydraWarning):
    """Something of this run that could not be removed from servers that are not ours; ``removal`` says how to."""

    kind = "left_behind"

    template = "{what} may be left at {where}"
    what: str
    where: str
    removal: str

    @property
    def remedy(self) -> str:
        return self.removal


class EarlierCleanup(HydraWarning):
    """Something that an earlier, killed part of this run had left behind, and what has become of it."""

    kind = "left_earlier"

    template = "an earlier part of this run left {what} behind: {outcome}"
    what: str
    outcome: str


class SettingsSkipped(HydraWarning):
    """Settings of servers that are the user's: they keep their own."""

    names: Sequence[str]
    address: str

    @property
    def text(self) -> str:
        return f"the servers at {self.address} keep their own settings: {', '.join(self.names)} of the preset not set"


class MetricsRefused(HydraWarning):
    """An OpenTelemetry receiver has not taken what it was sent; ``url`` is its address."""

    remedy = "check its address; the run goes on, and its rows are kept"
    template = "{url} does not take all metrics"
    url: str


class EarlierRates(HydraWarning):
    """Rates that an earlier version searched for in another way."""

    level = Level.LOSS
    remedy = "measure them again"
    template = (
        "an earlier Hydra searched for them in another way: another search may have found rates several times as high "
        "or as low, and an interval that is shown may be too narrow"
    )


class ForeignRates(HydraWarning):
    """Rates of a search that this version would have carried out otherwise."""

    level = Level.LOSS
    template = (
        "another version of Hydra searched for them, and this one would have asked for other steps: they are shown as "
        "that version stored them"
    )


class Journal:
    """Takes the events of a run.

    Args:
        keep: stores an event with the epoch of the step in which it happened.
        show: shows an event to the user.

    Attributes:
        epoch: the step that is being measured; None between steps.
    """

    def __init__(self, keep: Callable[[Event, int | None], None], show: Callable[[Event], None]) -> None:
        self.epoch: int | None = None
        self._keep = keep
        self._show = show

    def note(self, event: Event) -> None:
        """Keeps an event that happened now."""
        self._keep(event, self.epoch)
        if isinstance(event, HydraWarning):
            self._show(event)
