"""The columns of what the system accepted, and of whether a step passes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra.measure.column import MESSAGES, PUBLISHERS, SUBSCRIBERS, Differences, LossBursts
from hydra.measure.step_part import Number, StepPart, figure, text, yes_no

_DISCONNECTED: Final = (
    "that lost their connection to a server in the step, if the library reveals it, see "
    "[connections.md](connections.md#phases). Empty in a step with an event, a cohort or `connect_rate`, which may "
    "cause it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRate(StepPart):
    """Whether the requested rate was held."""

    rate_held: bool | None = yes_no(
        "whether `rate_sent` is yes and the system accepted the messages: not accepted was at most the loss target "
        "(`loss_target_pct`), see *Accepted*. Empty at rate `max`",
        of=lambda s: s.acceptance.held if s.acceptance else None,
    )
    rate_sent: bool | None = yes_no(
        "whether each publisher ran to the end of the window and its library took at least 99 % of its messages that "
        "were due, not counting the last message of the window, accepted or not. Empty at rate `max`",
        of=lambda s: s.acceptance.rate_sent if s.acceptance else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(StepPart):
    """What the system accepted, and the clients that lost their connection."""

    sent: Number | None = figure(
        MESSAGES, "messages that the publishers' libraries accepted", of=lambda s: sum(p.sent for p in s.publishers)
    )
    tx_failed: Number | None = figure(
        MESSAGES, "messages that a library or a server rejected", of=lambda s: sum(p.failed for p in s.publishers)
    )
    tx_unanswered: Number | None = figure(
        MESSAGES,
        "messages of which no server had stated, when the publishers had waited for the last answers (at most 10 s), "
        "whether it accepted them",
        repeats="highest",
        of=lambda s: s.acceptance.unanswered if s.acceptance else None,
    )
    unaccepted_pct: Number | None = figure(
        "%",
        "messages that were rejected or never answered, in % of the messages that the libraries took, see *Accepted*",
        better="lower",
        of=lambda s: 100 * s.acceptance.unaccepted_share if s.acceptance and s.acceptance.sent else None,
    )
    refused_reason: str | None = text(
        "the first reason for which messages were rejected, in a word: `message_too_large`, `quota`, `not_authorized`, "
        "`no_space`, `stream_full`, `no_replicas`, `no_destination`, `timeout`, `connection_lost` or `other`; of "
        "several publishers that of the one with most rejected messages. `quota` also if a server only delayed "
        "its answers to a publisher because of a quota, and rejected nothing",
        repeats="first",
        of=lambda s: (s.acceptance.reason if s.acceptance else None) or None,
    )
    refused_text: str | None = text(
        "the text of the server or the library for `refused_reason`",
        repeats="first",
        of=lambda s: (s.acceptance.text if s.acceptance else None) or None,
    )
    tx_stalled_s: Number | None = figure(
        "s",
        "longest time within the window in which a publisher offered messages and the system accepted none of them, in "
        "steps of about 0.05 s. Only at rate `max`",
        repeats="highest",
        of=lambda s: s.acceptance.stalled_s if s.acceptance else None,
    )
    tx_progress: bool | None = yes_no(
        "no: at rate `max`, the system accepted nothing of a publisher for at least 1 s and a tenth of the "
        "window, or messages were never answered. Empty at other rates, and in a step with an event, a cohort or "
        "`connect_rate`",
        of=lambda s: s.unexplained.progressed(s.o.window_s) if s.unexplained else None,
    )
    publishers_slow: Number | None = figure(
        PUBLISHERS,
        "publishers for which `rate_sent` is no although they kept their connection. Empty at rate `max`",
        repeats="highest",
        better="lower",
        of=lambda s: s.acceptance.slow if s.acceptance and s.acceptance.rate_sent is not None else None,
    )
    publishers_disconnected: Number | None = figure(
        PUBLISHERS,
        f"publishers {_DISCONNECTED}",
        repeats="highest",
        better="lower",
        of=lambda s: s.unexplained.lost if s.unexplained else None,
    )
    subscribers_disconnected: Number | None = figure(
        SUBSCRIBERS,
        f"subscribers {_DISCONNECTED}",
        repeats="highest",
        better="lower",
        of=lambda s: s.subscribers_lost and s.subscribers_lost[0],
    )
    disconnected_why: str | None = text(
        "why the first of the publishers lost its connection, as its library or the server states it",
        repeats="first",
        of=lambda s: (s.unexplained.lost_why if s.unexplained else None) or None,
    )
    disconnected_reason: str | None = text(
        "the first reason for which messages of this publisher were rejected: one of those of `refused_reason`",
        repeats="first",
        of=lambda s: (s.unexplained.lost_reason if s.unexplained else None) or None,
    )
    subscribers_disconnected_why: str | None = text(
        "the same of the subscribers",
        repeats="first",
        of=lambda s: (s.subscribers_lost and s.subscribers_lost[1]) or None,
    )
    publisher_cores: Number | None = figure(
        "cores",
        "CPU time of the busiest publisher / *T* (length of the window)",
        better="lower",
        of=lambda s: max(
            ((p.usage.cpu_user_s + p.usage.cpu_system_s) / s.o.window_s for p in s.publishers), default=None
        ),
    )
    stopped_early: str | None = text(
        "why a publisher stopped before the end of the window",
        repeats="noted",
        of=lambda s: "; ".join(sorted({p.stopped_early for p in s.publishers if p.stopped_early})) or None,
    )


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
