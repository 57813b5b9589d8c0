"""The columns of what the system accepted, and of the clients that lost their connection."""

from __future__ import annotations

from typing import Final

from hydra.measure.column import MESSAGES, PUBLISHERS, SUBSCRIBERS
from hydra.measure.step_column import StepColumn, step_text, step_yes_no

RATE_HELD: Final = "rate_held"
RATE_SENT: Final = "rate_sent"
UNANSWERED: Final = "tx_unanswered"
UNACCEPTED: Final = "unaccepted_pct"
REFUSED_REASON: Final = "refused_reason"
REFUSED_TEXT: Final = "refused_text"
STALLED: Final = "tx_stalled_s"
PROGRESS: Final = "tx_progress"
PUBLISHERS_SLOW: Final = "publishers_slow"
PUBLISHERS_LOST: Final = "publishers_disconnected"
SUBSCRIBERS_LOST: Final = "subscribers_disconnected"
LOST_WHY: Final = "disconnected_why"
LOST_REASON: Final = "disconnected_reason"
SUBSCRIBERS_LOST_WHY: Final = "subscribers_disconnected_why"

_DISCONNECTED: Final = (
    "that lost their connection to a server in the step, if the library reveals it, see "
    "[connections.md](connections.md#phases). Empty in a step with an event, a cohort or `connect_rate`, which may "
    "cause it"
)
HELD: Final = (
    step_yes_no(
        RATE_HELD,
        "whether `rate_sent` is yes and the system accepted the messages: not accepted was at most the loss target "
        "(`loss_target_pct`), see *Accepted*. Empty at rate `max`",
        of=lambda s: s.acceptance.held if s.acceptance else None,
    ),
    step_yes_no(
        RATE_SENT,
        "whether each publisher ran to the end of the window and its library took at least 99 % of its messages that "
        "were due, not counting the last message of the window, accepted or not. Empty at rate `max`",
        of=lambda s: s.acceptance.rate_sent if s.acceptance else None,
    ),
)

ACCEPTED: Final = (
    StepColumn(
        "sent",
        MESSAGES,
        "messages that the publishers' libraries accepted",
        of=lambda s: sum(p.sent for p in s.publishers),
    ),
    StepColumn(
        "tx_failed",
        MESSAGES,
        "messages that a library or a server rejected",
        of=lambda s: sum(p.failed for p in s.publishers),
    ),
    StepColumn(
        UNANSWERED,
        MESSAGES,
        "messages of which no server had stated, when the publishers had waited for the last answers (at most 10 s), "
        "whether it accepted them",
        repeats="highest",
        of=lambda s: s.acceptance.unanswered if s.acceptance else None,
    ),
    StepColumn(
        UNACCEPTED,
        "%",
        "messages that were rejected or never answered, in % of the messages that the libraries took, see *Accepted*",
        better="lower",
        of=lambda s: 100 * s.acceptance.unaccepted_share if s.acceptance and s.acceptance.sent else None,
    ),
    step_text(
        REFUSED_REASON,
        "the first reason for which messages were rejected, in a word: `message_too_large`, `quota`, `not_authorized`, "
        "`no_space`, `stream_full`, `no_replicas`, `no_destination`, `timeout`, `connection_lost` or `other`; of "
        "several publishers that of the one with most rejected messages. `quota` also if a server only delayed "
        "its answers to a publisher because of a quota, and rejected nothing",
        repeats="first",
        of=lambda s: (s.acceptance.reason if s.acceptance else None) or None,
    ),
    step_text(
        REFUSED_TEXT,
        "the text of the server or the library for `refused_reason`",
        repeats="first",
        of=lambda s: (s.acceptance.text if s.acceptance else None) or None,
    ),
    StepColumn(
        STALLED,
        "s",
        "longest time within the window in which a publisher offered messages and the system accepted none of them, in "
        "steps of about 0.05 s. Only at rate `max`",
        repeats="highest",
        of=lambda s: s.acceptance.stalled_s if s.acceptance else None,
    ),
    step_yes_no(
        PROGRESS,
        "no: at rate `max`, the system accepted nothing of a publisher for at least 1 s and a tenth of the "
        "window, or messages were never answered. Empty at other rates, and in a step with an event, a cohort or "
        "`connect_rate`",
        of=lambda s: s.unexplained.progressed(s.o.window_s) if s.unexplained else None,
    ),
    StepColumn(
        PUBLISHERS_SLOW,
        PUBLISHERS,
        "publishers for which `rate_sent` is no although they kept their connection. Empty at rate `max`",
        repeats="highest",
        better="lower",
        of=lambda s: s.acceptance.slow if s.acceptance and s.acceptance.rate_sent is not None else None,
    ),
    StepColumn(
        PUBLISHERS_LOST,
        PUBLISHERS,
        f"publishers {_DISCONNECTED}",
        repeats="highest",
        better="lower",
        of=lambda s: s.unexplained.lost if s.unexplained else None,
    ),
    StepColumn(
        SUBSCRIBERS_LOST,
        SUBSCRIBERS,
        f"subscribers {_DISCONNECTED}",
        repeats="highest",
        better="lower",
        of=lambda s: s.subscribers_lost and s.subscribers_lost[0],
    ),
    step_text(
        LOST_WHY,
        "why the first of the publishers lost its connection, as its library or the server states it",
        repeats="first",
        of=lambda s: (s.unexplained.lost_why if s.unexplained else None) or None,
    ),
    step_text(
        LOST_REASON,
        "the first reason for which messages of this publisher were rejected: one of those of `refused_reason`",
        repeats="first",
        of=lambda s: (s.unexplained.lost_reason if s.unexplained else None) or None,
    ),
    step_text(
        SUBSCRIBERS_LOST_WHY,
        "the same of the subscribers",
        repeats="first",
        of=lambda s: (s.subscribers_lost and s.subscribers_lost[1]) or None,
    ),
    StepColumn(
        "publisher_cores",
        "cores",
        "CPU time of the busiest publisher / *T* (length of the window)",
        better="lower",
        of=lambda s: max(
            ((p.usage.cpu_user_s + p.usage.cpu_system_s) / s.o.window_s for p in s.publishers), default=None
        ),
    ),
    step_text(
        "stopped_early",
        "why a publisher stopped before the end of the window",
        repeats="noted",
        of=lambda s: "; ".join(sorted({p.stopped_early for p in s.publishers if p.stopped_early})) or None,
    ),
)
