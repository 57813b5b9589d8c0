"""The columns of the outcomes of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.measure.column import MESSAGES, SUBSCRIBERS, TEXT
from hydra.measure.evidence import LossEvidence
from hydra.measure.step_column import HeaderColumn, StepColumn, step_text
from hydra.model.batch_columns import BATCH_COLUMNS, BatchColumn

LATE: Final = "late_pct"
DIED_BY: Final = "died_by"
LOSS_LOW: Final = "client_loss_low_pct"
LOSS_HIGH: Final = "client_loss_high_pct"
LOSS_UNLISTED: Final = "client_loss_unlisted"
LOSS_CI_LOW: Final = "client_loss_ci_low_pct"
LOSS_CI_HIGH: Final = "client_loss_ci_high_pct"
LOSS_EVIDENCE: Final = "loss_evidence"
LOG_GROWTH: Final = "log_growth"
ACCOUNT: Final = "account"

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
NO_REPORT: Final[Mapping[str, str]] = {"failed_dead": "died", "failed_silent": "never answered"}
"""The columns that count subscribers without a report, with the text for each."""


def _sum_of(column: BatchColumn) -> StepColumn:
    """The column with the sum of a count that all subscribers report."""
    about = f"{column.shown}; sum over all subscribers, slow and reconnecting ones included"
    return HeaderColumn(column.name, MESSAGES, about, of=lambda s: s.added(column.name))


_ADDED_UP: Final = {column.name: _sum_of(column) for column in BATCH_COLUMNS if column.shown}

LOSSES: Final = (
    HeaderColumn(
        "loss_at_stop_pct",
        "%",
        "messages not received in the window, in % of the messages expected (*E*), summed over the subscribers; "
        "messages that were still on their way count as lost, as in the original experiments",
        of=lambda s: s.live.loss_at_stop_pct if s.live else None,
    ),
    HeaderColumn(LATE, "%", _PARTS, "late", better="lower", of=lambda s: s.live.pct(s.live.late) if s.live else None),
    HeaderColumn(
        "undrained_pct",
        "%",
        _PARTS,
        "still waiting (undrained)",
        better="lower",
        of=lambda s: s.outcome.pct(s.outcome.undrained),
    ),
    HeaderColumn("unknown_pct", "%", _PARTS, "unknown", better="lower", of=lambda s: s.outcome.pct(s.outcome.unknown)),
    StepColumn(
        "rx_clients",
        SUBSCRIBERS,
        "number of subscribers over which `rx_span_rate_pps` is averaged",
        of=lambda s: len(s.traffic.rx_spans_pps),
    ),
    StepColumn("failed_lossy", SUBSCRIBERS, _FAILED, of=lambda s: s.failed.lossy),
    StepColumn("failed_dead", SUBSCRIBERS, _FAILED, of=lambda s: s.failed.dead),
    StepColumn("failed_silent", SUBSCRIBERS, _FAILED, of=lambda s: s.failed.silent),
    step_text(
        DIED_BY,
        "how the processes of the subscribers in `failed_dead` ended, for example by `SIGKILL` or with `exit code 3`, "
        "and the state of the process group of each such subscriber. Only if subscribers died",
        of=lambda s: s.deaths,
        when=lambda s: s.deaths is not None,
    ),
    HeaderColumn(LOSS_LOW, "%", _BOUNDS, of=lambda s: s.outcome.loss_pct, when=lambda s: s.bounded),
    HeaderColumn(LOSS_HIGH, "%", _BOUNDS, of=lambda s: s.least.loss_pct, when=lambda s: s.bounded),
    step_text(
        LOSS_UNLISTED,
        "why only the limits of the loss are known. `publisher`: a publisher could not list every unacknowledged "
        "message. `members`: the members of a consumer group could not list every message received",
        of=lambda s: s.accounts.unlisted if s.accounts else None,
        when=lambda s: s.bounded,
    ),
    HeaderColumn(
        LOSS_CI_LOW,
        "%",
        _INTERVAL,
        digits="six",
        repeats="pooled",
        of=lambda s: s.loss_limits.low if s.loss_limits else None,
    ),
    HeaderColumn(
        LOSS_CI_HIGH,
        "%",
        _INTERVAL,
        digits="six",
        repeats="pooled",
        of=lambda s: s.loss_limits.high if s.loss_limits else None,
    ),
    HeaderColumn(
        LOSS_EVIDENCE,
        TEXT,
        "the figures from which `client_loss_low_pct` and `client_loss_high_pct` are computed: length of the step (s); "
        "number of independent bursts of losses; sum, sum of squares and maximum of the bursts' sizes, in seconds of "
        "traffic. If messages were lost throughout the step, the standard error of the sum and the degrees of freedom "
        "of this error follow, otherwise 0. A repeated row has the bursts of all repeats",
        repeats="pooled",
        of=lambda s: s.loss_evidence,
        evidence=LossEvidence,
    ),
    StepColumn(
        LOG_GROWTH,
        MESSAGES,
        "messages by which the servers' log grew in the step, probes excluded. Only if servers keep a log",
        "Log growth",
        of=lambda s: s.o.log_growth,
        when=lambda s: s.o.log_growth is not None,
    ),
    step_text(
        ACCOUNT,
        "`exact` if acknowledged = `log_growth` = received; otherwise which of these three counts differ, and by how "
        "many messages, see *The log*. Only if servers keep a log",
        "Account",
        repeats="noted",
        of=lambda s: s.account,
        when=lambda s: s.o.log_growth is not None or s.o.counted,
    ),
)

_OUTCOMES: Final = (
    HeaderColumn(
        "in_window",
        MESSAGES,
        _FATES,
        of=lambda s: s.exact_of_all.in_window if s.exact_of_all and not s.o.stored else None,
    ),
    HeaderColumn(
        "late", MESSAGES, _FATES, of=lambda s: s.exact_of_all.late if s.exact_of_all and not s.o.stored else None
    ),
    HeaderColumn("undrained", MESSAGES, _FATES, of=lambda s: s.everyone.undrained if s.everyone else None),
    HeaderColumn(
        "lost", MESSAGES, _FATES, better="lower", of=lambda s: s.exact_of_all.lost if s.exact_of_all else None
    ),
    HeaderColumn("unknown", MESSAGES, _FATES, of=lambda s: s.everyone.unknown if s.everyone else None),
)

_USAGE: Final = (
    StepColumn(
        "subscriber_cpu_s", "s", "CPU time of all subscribers together", better="lower", of=lambda s: s.subscriber_cpu_s
    ),
    StepColumn(
        "subscriber_rss_max_bytes",
        "bytes",
        "largest resident set size of one subscriber process",
        repeats="median",
        better="lower",
        of=lambda s: s.subscriber_rss_max_bytes,
    ),
)

COUNTS: Final = (
    *_OUTCOMES,
    *({name: _ADDED_UP[name] for name in ("duplicates", "reordered", "stale")} | _ADDED_UP).values(),
    *_USAGE,
)
