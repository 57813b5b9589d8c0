"""What is known of a stored event by its kind."""

from __future__ import annotations

from typing import Final

from hydra.events.clients import ClientError, ClientExit, Evicted, GroupExit, Launched, LaunchedElsewhere, Present
from hydra.events.event import Event, Level
from hydra.events.runs import (
    EngineWaits,
    Refused,
    Resumed,
    Revived,
    RunBegan,
    RunComplete,
    RunDone,
    RunFailed,
    RunGoesOn,
    ServerExit,
    ServerKilled,
    ServersAgain,
    ServersStarted,
    ServersStarting,
    ServersUp,
    SystemFact,
)
from hydra.events.steps import PhasesTimed, StartUnacknowledged, StepMeasured, StepStored, WindowOpened
from hydra.events.warnings import HydraWarning

EVENTS: Final[tuple[type[Event], ...]] = (
    *(RunBegan, RunDone, RunFailed, RunGoesOn, RunComplete, Resumed, SystemFact, Refused, Revived, HydraWarning),
    *(Launched, Present, Evicted, LaunchedElsewhere, ClientExit, GroupExit, ClientError),
    EngineWaits,
    *(ServersStarting, ServersStarted, ServersUp, ServersAgain, ServerExit, ServerKilled),
    *(StartUnacknowledged, WindowOpened, PhasesTimed, StepStored, StepMeasured),
)
_BY_KIND: Final = {event.kind: event for event in EVENTS}


def level_of(kind: str) -> Level:
    """How much a stored event matters; one of a kind that this version does not know is worth a look."""
    return _BY_KIND[kind].level if kind in _BY_KIND else Level.NOTE


def summary_of(kind: str) -> str:
    """What is said of several stored events of a kind."""
    return _BY_KIND[kind].summary if kind in _BY_KIND else Event.summary
