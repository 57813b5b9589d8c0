"""The warnings of a run, with their remedies, and the journal, which stores events and shows warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Final

from hydra.errors import EXIT_INCOMPLETE
from hydra.events.event import Event, Level
from hydra.events.value_formatting import counted
from hydra.model import Figure

GO_ON: Final = "continue with --resume and the run's directory"


class HydraWarning(Event):
    """A warning about the run."""

    kind = category = "warning"
    level = Level.NOTE
    summary = "warnings about the run"


class Interrupted(HydraWarning):
    """The user ended the run, with ``by_key`` after the current step.

    ``out`` is the run directory, "" if there is none yet; ``steps`` is the number of steps that were measured.
    """

    template = "{how}: {kept}"
    out: str = ""
    steps: int = 0
    by_key: bool = False

    @property
    def how(self) -> str:
        """How the run ended."""
        if self.by_key:
            return "ended after this step, because the user pressed a key"
        return "interrupted" if self.steps else "interrupted before the first step ended"

    @property
    def kept(self) -> str:
        """What is kept."""
        return "what was measured is kept" if self.steps or self.by_key else "nothing was measured"

    @property
    def remedy(self) -> str:
        return f"continue with --resume {quote(self.out)}" if self.out else ""


class RunIncomplete(HydraWarning):
    """A run did not measure everything; ``ahead`` describes its next step."""

    level = Level.FAIL
    remedy = GO_ON
    ended: str
    error: str
    ahead: str

    @property
    def text(self) -> str:
        ahead = f"the next step would be {self.ahead}"
        return "; ".join(filter(None, (_end_text(self.ended, self.error), ahead)))


class RunEndedBadly(HydraWarning):
    """A run measured every step, but did not end normally."""

    level = Level.FAIL
    remedy = GO_ON
    template = "{how}, after the last step of the run"
    ended: str
    error: str

    @property
    def how(self) -> str:
        """How the run ended."""
        return _end_text(self.ended, self.error)


def _end_text(ended: str, error: str) -> str:
    known = {
        "finished": "",
        "interrupted": "the run was interrupted",
        "failed": f"the run could not continue: {error}" if error else "the run could not continue",
        "": "the run was killed, or is still running",
    }
    return known.get(ended, f"the run ended as {ended!r}")


class StepNotMeasured(HydraWarning):
    """A step failed or was skipped; ``position`` names it, as in ``StepMeasured``.

    ``again`` is whether the step is retried.
    """

    position: str
    status: str
    reason: str
    again: bool = False

    @property
    def text(self) -> str:
        status = f"{self.status.upper()}, is measured again" if self.again else self.status.upper()
        return f"{self.position}: {status}: {self.reason}"


class SubscribersFailed(HydraWarning):
    """Subscribers died or fell silent without an event that caused it; a (number, clients, outcome) for each row."""

    rows: Sequence[tuple[int, Figure, str]]

    @property
    def text(self) -> str:
        rows = "; ".join(
            f"row {number} ({counted(clients, 'subscriber')}): {losses}" for number, clients, losses in self.rows
        )
        return f"subscribers died or fell silent by themselves, so the exit code is {EXIT_INCOMPLETE}: {rows}"


class CleanupFailed(HydraWarning):
    """Something of this run could not be removed from the user's servers; ``removal`` describes how to remove it."""

    kind = "left_behind"

    template = "{what} may be left at {where}"
    what: str
    where: str
    removal: str

    @property
    def remedy(self) -> str:
        return self.removal


class EarlierCleanup(HydraWarning):
    """An earlier, killed part of this run had left something behind; ``outcome`` is the result of its removal."""

    kind = "left_earlier"

    template = "an earlier part of this run left {what} behind: {outcome}"
    what: str
    outcome: str


class SettingsSkipped(HydraWarning):
    """The user's servers keep their own settings in place of a preset's."""

    names: Sequence[str]
    address: str

    @property
    def text(self) -> str:
        return (
            f"the servers at {self.address} keep their own settings: Hydra did not set {', '.join(self.names)} "
            "of the preset"
        )


class AddressesSilent(HydraWarning):
    """Some addresses of the user's servers do not answer while others do; ``silent`` has the reasons by address."""

    remedy = "clients use the other addresses of --servers; leave out those that are wrong"
    template = "{system} does not answer at {places}"
    system: str
    silent: Mapping[str, str]

    @property
    def places(self) -> str:
        """The addresses and their reasons."""
        return _with_reasons(self.silent)


class AdvertisedSilent(HydraWarning):
    """The user's servers send clients that lose their connection to addresses that do not answer on this machine."""

    remedy = "make these addresses reachable from the clients' hosts, or correct what the servers advertise"
    template = "{servers} names further addresses to its clients, of which these do not answer: {places}"
    servers: str
    silent: Mapping[str, str]

    @property
    def places(self) -> str:
        """The addresses and their reasons."""
        return _with_reasons(self.silent)


def _with_reasons(silent: Mapping[str, str]) -> str:
    return ", ".join(f"{address} ({reason})" for address, reason in silent.items())


class MetricsRefused(HydraWarning):
    """An OpenTelemetry receiver did not accept metrics; ``url`` is its address."""

    remedy = "check the address of the receiver; the run continues, and Hydra keeps all rows"
    template = "the OpenTelemetry receiver at {url} does not accept all metrics"
    url: str


class Journal:
    """Stores the events of a run, and shows its warnings.

    Args:
        keep: stores an event with the epoch of its step.
        show: shows an event to the user.

    Attributes:
        epoch: the step that is being measured; None between steps.
    """

    def __init__(self, keep: Callable[[Event, int | None], None], show: Callable[[Event], None]) -> None:
        self.epoch: int | None = None
        self._keep = keep
        self._show = show

    def note(self, event: Event) -> None:
        """Stores an event that happened now, and shows it if it is a warning."""
        self._keep(event, self.epoch)
        if isinstance(event, HydraWarning):
            self._show(event)
