"""Names of columns that code asks for outside their formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

POINT: Final = "point"
"""The name of a row, where a sweep lists its rows."""
CLIENTS: Final = "clients"
PUBLISHERS: Final = "publishers"
"""How many publishers took part, where a sweep lists its rows."""
BURST: Final = "burst"
LOG_GROWTH: Final = "log_growth"
ACCOUNT: Final = "account"
STATUS: Final = "status"
REASON: Final = "reason"
AVG_TX: Final = "avg_tx_rate_pps"
AVG_RX: Final = "avg_rx_rate_pps"
AGGREGATE: Final = "aggregate_pps"
LOSS: Final = "client_loss_pct"
LOSS_LOW: Final = "client_loss_low_pct"
LOSS_HIGH: Final = "client_loss_high_pct"
"""The loss where it is known as a bound only: an interval."""
RATE_HELD: Final = "rate_held"
REQUESTED: Final = "requested_rate"
BLOCKED: Final = "blocked_s"
SHORTFALL: Final = "shortfall_pct"
BURSTS: Final = "bursts_s"
"""What each burst of losses cost, in seconds of traffic: the evidence of a search (measure/shortfall.py)."""
GROUP: Final = "group"
"""The consumer group whose members share the messages; no column where there is none."""
PAYLOAD: Final = "payload"
"""What followed the headers, in words; no column where these are zeros of one size."""
VERDICT: Final = "verdict"
FAILED_STEPS: Final = "failed_steps"
"""Steps of a search's row that could not be measured and were asked for again."""
STEP_S: Final = "step_s"
AGGREGATE_MAX: Final = "aggregate_max_pps"

GONE: Final[Mapping[str, str]] = {"failed_dead": "died", "failed_silent": "never answered"}
"""Columns that count subscribers without a report, with what became of those."""
