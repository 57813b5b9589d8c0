"""The columns of what the system accepted, and of the clients that lost their connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra.measure.column import MESSAGES, PUBLISHERS, SUBSCRIBERS
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
