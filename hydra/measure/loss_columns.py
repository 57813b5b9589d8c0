"""The columns of the outcomes of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hydra.measure.column import MESSAGES, SUBSCRIBERS, LossEvidence, UnlistedMessages
from hydra.measure.step_part import Number, StepPart, figure, text
from hydra.model.batch_columns import BATCH_COLUMNS

LATE: Final = "late_pct"
LOSS_CI_LOW: Final = "client_loss_ci_low_pct"
LOSS_CI_HIGH: Final = "client_loss_ci_high_pct"
LOSS_EVIDENCE: Final = "loss_evidence"

_PARTS: Final = (
    "messages that arrived after the window (late), still wait in a server "
    "(undrained) or may still arrive (unknown), each in % of the messages expected "
    "(*E*); without slow and reconnecting subscribers"
)
_FAILED: Final = (
    "the parts of `failed_clients`: subscribers that lost messages (`failed_lossy`), subscribers whose process ended "
    "(`failed_dead`), and subscribers that sent no report in time (`failed_silent`)"
)
_INTERVAL: Final = (
    "limits of the 95 % confidence interval of `client_loss_pct`, see *How well a loss is known*. Empty if the step "
    "does not determine the limits"
)
_FATES: Final = (
    "the five parts of the messages expected (*E*), see *Terms*; each is a sum "
    "over all subscribers, slow and reconnecting ones included"
)
_BOUNDS: Final = "lowest and highest possible `client_loss_pct`; only if the exact `client_loss_pct` is unknown"


def _sum_of(name: str) -> Number | None:
    """The field of the sum of a count that all subscribers report."""
    about = f"{_REPORTED[name].shown}; sum over all subscribers, slow and reconnecting ones included"
    return figure(MESSAGES, about, of=lambda s: s.added(name), header=True)


_REPORTED: Final = {column.name: column for column in BATCH_COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss(StepPart):
    """The shares of messages that were not received in time, and the subscribers that lost some."""

    loss_at_stop_pct: Number | None = figure(
        "%",
        "messages not received in the window, in % of the messages expected (*E*), summed over the subscribers; "
        "messages that were still on their way count as lost, as in the original experiments",
        of=lambda s: s.live.loss_at_stop_pct if s.live else None,
        header=True,
    )
    late_pct: Number | None = figure(
        "%", _PARTS, "late", better="lower", of=lambda s: s.live.pct(s.live.late) if s.live else None, header=True
    )
    undrained_pct: Number | None = figure(
        "%",
        _PARTS,
        "still waiting (undrained)",
        better="lower",
        of=lambda s: s.outcome.pct(s.outcome.undrained),
        header=True,
    )
    unknown_pct: Number | None = figure(
        "%", _PARTS, "unknown", better="lower", of=lambda s: s.outcome.pct(s.outcome.unknown), header=True
    )
    rx_clients: Number | None = figure(
        SUBSCRIBERS,
        "number of subscribers over which `rx_span_rate_pps` is averaged",
        of=lambda s: len(s.traffic.rx_spans_pps),
    )
    failed_lossy: Number | None = figure(SUBSCRIBERS, _FAILED, of=lambda s: s.failed.lossy)
    failed_dead: Number | None = figure(SUBSCRIBERS, _FAILED, of=lambda s: s.failed.dead)
    failed_silent: Number | None = figure(SUBSCRIBERS, _FAILED, of=lambda s: s.failed.silent)
    died_by: str | None = text(
        "how the processes of the subscribers in `failed_dead` ended, for example by `SIGKILL` or with `exit code 3`, "
        "and the state of the process group of each such subscriber. Only if subscribers died",
        of=lambda s: s.deaths,
        optional=True,
    )
    client_loss_low_pct: Number | None = figure(
        "%", _BOUNDS, of=lambda s: s.outcome.loss_pct if s.bounded else None, optional=True, header=True
    )
    client_loss_high_pct: Number | None = figure(
        "%", _BOUNDS, of=lambda s: s.least.loss_pct if s.bounded else None, optional=True, header=True
    )
    client_loss_unlisted: UnlistedMessages | None = text(
        "the clients that could not list single messages, so only the limits of the loss are known",
        of=lambda s: s.accounts.unlisted if s.accounts else None,
        optional=True,
        shown=False,
    )
    client_loss_ci_low_pct: Number | None = figure(
        "%",
        _INTERVAL,
        digits="six",
        repeats="pooled",
        of=lambda s: s.loss_limits.low if s.loss_limits else None,
        header=True,
    )
    client_loss_ci_high_pct: Number | None = figure(
        "%",
        _INTERVAL,
        digits="six",
        repeats="pooled",
        of=lambda s: s.loss_limits.high if s.loss_limits else None,
        header=True,
    )
    loss_evidence: LossEvidence | None = text(
        "the figures from which `client_loss_low_pct` and `client_loss_high_pct` are computed: length of the step (s); "
        "number of independent bursts of losses; sum, sum of squares and maximum of the bursts' sizes, in seconds of "
        "traffic. If messages were lost throughout the step, the standard error of the sum and the degrees of freedom "
        "of this error follow, otherwise 0. A repeated row has the bursts of all repeats",
        repeats="pooled",
        of=lambda s: s.loss_evidence,
        header=True,
    )
    log_growth: Number | None = figure(
        MESSAGES,
        "messages by which the servers' log grew in the step, probes excluded. Only if servers keep a log",
        "Log growth",
        of=lambda s: s.o.log_growth,
        optional=True,
    )
    account: str | None = text(
        "`exact` if acknowledged = `log_growth` = received; otherwise which of these three counts differ, and by how "
        "many messages, see *The log*. Only if servers keep a log",
        "Account",
        repeats="noted",
        of=lambda s: s.account,
        optional=True,
    )

    @property
    def unreported(self) -> Mapping[str, Number]:
        """The numbers of subscribers without a report, by what became of them."""
        return {"died": self.failed_dead or 0, "never answered": self.failed_silent or 0}

    @property
    def without_report(self) -> Number:
        """The number of all subscribers without a report."""
        return sum(self.unreported.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes(StepPart):
    """The number of messages of each outcome."""

    in_window: Number | None = figure(
        MESSAGES,
        _FATES,
        of=lambda s: s.exact_of_all.in_window if s.exact_of_all and not s.o.stored else None,
        header=True,
    )
    late: Number | None = figure(
        MESSAGES, _FATES, of=lambda s: s.exact_of_all.late if s.exact_of_all and not s.o.stored else None, header=True
    )
    undrained: Number | None = figure(
        MESSAGES, _FATES, of=lambda s: s.everyone.undrained if s.everyone else None, header=True
    )
    lost: Number | None = figure(
        MESSAGES, _FATES, better="lower", of=lambda s: s.exact_of_all.lost if s.exact_of_all else None, header=True
    )
    unknown: Number | None = figure(
        MESSAGES, _FATES, of=lambda s: s.everyone.unknown if s.everyone else None, header=True
    )
    duplicates: Number | None = _sum_of("duplicates")
    reordered: Number | None = _sum_of("reordered")
    stale: Number | None = _sum_of("stale")
    extra: Number | None = _sum_of("extra")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(StepPart):
    """What the subscribers used of their hosts."""

    subscriber_cpu_s: Number | None = figure(
        "s", "CPU time of all subscribers together", better="lower", of=lambda s: s.subscriber_cpu_s
    )
    subscriber_rss_max_bytes: Number | None = figure(
        "bytes",
        "largest resident set size of one subscriber process",
        repeats="median",
        better="lower",
        of=lambda s: s.subscriber_rss_max_bytes,
    )
