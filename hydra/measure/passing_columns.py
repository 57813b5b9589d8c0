"""The columns of what was sent, whether the rate passed, and whether the seconds were alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra.measure.column import SUBSCRIBERS
from hydra.measure.evidence import Differences, LossBursts
from hydra.measure.step_part import Number, StepPart, figure, text, yes_no

PAYLOAD: Final = "payload"
GROUP: Final = "group"
SHORTFALL: Final = "shortfall_pct"
BURSTS: Final = "bursts_s"
STEADY: Final = "steady"
STOPPED: Final = "stopped_s"
UNSTEADY: Final = "unsteady"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing(StepPart):
    """What was sent, whether the rate passed, and whether the seconds were alike."""

    payload: str | None = text(
        "what the messages contained after the header, and the sizes of the messages, see *Bytes*. Only if the content "
        "was not zeros of one size",
        of=lambda s: s.payload or None,
        optional=True,
    )
    pacing: str | None = text(
        "`bursty` if publishers sent all messages of a second at its start (`--pacing bursty`). Only if they did",
        "Pacing",
        of=lambda s: None if s.o.pacing == "smooth" else s.o.pacing,
        optional=True,
    )
    group: str | None = text(
        "the consumer group whose members share the messages, see *Groups*",
        of=lambda s: s.o.group or None,
        optional=True,
    )
    falling_behind: Number | None = figure(
        SUBSCRIBERS,
        "number of subscribers whose backlog grows, see *Lag*. Empty if no lag is known",
        of=lambda s: None if s.growing.share is None else s.growing.falling_behind,
    )
    backlog_growth_pct: Number | None = figure(
        "%",
        "mean growth of the backlog of all subscribers in % of the rate, see *Lag*. Empty if no lag is known",
        of=lambda s: None if s.growing.share is None else 100 * s.growing.share,
    )
    passed: bool | None = yes_no(
        "whether the loss and the backlog at this rate are within the loss target, and no stop was found, see *When a "
        "rate passes*",
        of=lambda s: s.passed,
        header=True,
    )
    loss_target_pct: Number | None = figure(
        "%",
        "the loss target: the highest loss at which a rate still passes",
        repeats="common",
        of=lambda s: 100 * s.o.loss_target,
    )
    shortfall_pct: Number | None = figure(
        "%",
        "share of the due messages that a search counts as lost or as backlog, see *Rates that are searched for*",
        axis="lost or backlog, % of the messages due",
        better="lower",
        of=lambda s: s.shortfall.pct if s.shortfall else None,
        header=True,
    )
    bursts_s: LossBursts | None = text(
        "sizes of the bursts of lost messages that `shortfall_pct` counts, in seconds of traffic",
        of=lambda s: s.shortfall.bursts if s.shortfall else None,
        header=True,
    )
    start_lost_ms: Number | None = figure(
        "ms",
        "messages lost in the first 0.1 s of the step, as the time in ms in which the publishers send this number",
        better="lower",
        of=lambda s: s.shortfall.start_ms if s.shortfall else None,
    )
    lone_loser: int | None = figure(
        "",
        "id of the subscriber that lost at least ten messages, and at least four times the share that every other "
        "subscriber lost. Only if there is such a subscriber, and without a consumer group",
        repeats="common",
        of=lambda s: s.lone.client if s.lone else None,
        optional=True,
    )
    lone_loser_loss_pct: Number | None = figure(
        "%",
        "loss of the subscriber in `lone_loser`",
        better="lower",
        of=lambda s: 100 * s.lone.loss if s.lone else None,
        optional=True,
    )
    rest_bursts_s: LossBursts | None = text(
        "`bursts_s` of all subscribers except the one in `lone_loser`",
        of=lambda s: s.shortfall.rest if s.shortfall else None,
        optional=True,
    )
    steady: bool | None = yes_no(
        "whether about the same number of messages was received in each second of the window, see *Steady state*. "
        "Empty if data of fewer than 8 seconds is stored, or if the load changes or an event happens; but no if a "
        "second received nothing or much less than was due",
        of=lambda s: None if s.differences is None else not s.differences.found,
    )
    stopped_s: Number | None = figure(
        "s",
        "seconds of the window in which nothing arrived at the subscribers outside the cohort although messages were "
        "due, see *Stops*. Empty if the messages of each second are unknown, or in a window shorter than 2 s",
        repeats="highest",
        better="lower",
        of=lambda s: s.stops.stopped_s if s.stops else None,
    )
    unsteady: Differences | None = text(
        "how the seconds of the window differ: `beginning 3 -0.2` (20 % less was received before second 3 than later), "
        "`change 12 0.1` (from second 12 on, 10 % more than before), `second 7 -0.5` (in second 7, 50 % less than in "
        "the median second), `short 7 -0.5` (in second 7, 50 % less than was due), `stop 3 4` (from second 3 on, "
        "nothing was received for about 4 s); for repeats `first 0 -0.2` (in the first repeat, 20 % less than in the "
        "other repeats)",
        repeats="noted",
        of=lambda s: s.differences if s.differences and s.differences.found else None,
    )
