"""What is known of a run at one moment: made by the controller, read by threads that show it elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hydra.model import Figure, HostSample, Role, StepPlan
from hydra.monitor.distribution import Distribution


class Present(NamedTuple):
    """How many clients of a role a step has: asked for, connected, and heard of since the step began."""

    asked: int
    connected: int
    telling: int


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A step of a run.

    Attributes:
        number: its place in the run, from 1 on, as the lines of a run count it.
        plan: what was asked for.
        status: "running", or what became of it.
        figures: by the column's name, once it is measured.
    """

    number: int
    plan: StepPlan
    status: str = "running"
    figures: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the running step is, since its window is open.

    Attributes:
        elapsed_s: seconds since then, or since subscribers began to read what was stored.
        share: the part that is done, 0 to 1.
        sent_pps: mean rate of a publisher so far; None before one has told something.
        received_pps: likewise of a subscriber.
        clients: by role.
        hosts: two samples of each host, by its name: what it did between them is what it did last.
    """

    elapsed_s: float
    share: float
    sent_pps: float | None = None
    received_pps: float | None = None
    clients: Mapping[Role, Present] = field(default_factory=dict)
    hosts: Mapping[str, tuple[HostSample, HostSample]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the steps that this command has measured, with what the running one has told. They only rise.

    Attributes:
        sent: messages that the publishers' libraries accepted.
        received: messages that subscribers received, each counted as often as there were subscribers that did.
        lost: messages that subscribers lost in steps that are measured; None before there is a step that knows.
        steps: how many have ended, by what became of them.
        latency: of subscribers outside the cohort, by what it counts from (``measure.latency.prefix_for``).
    """

    sent: int = 0
    received: int = 0
    lost: int | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    latency: Mapping[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment.

    Attributes:
        run: its name.
        system: what it measures.
        totals: of all its steps.
        ended: the last steps that have ended, oldest first.
        running: the step that is being measured, None between steps.
        progress: how far that is, None before its window.
    """

    run: str
    system: str
    totals: Totals = field(default_factory=Totals)
    ended: Sequence[KeptStep] = ()
    running: KeptStep | None = None
    progress: Progress | None = None
