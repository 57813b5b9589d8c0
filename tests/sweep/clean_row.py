"""The figures of a clean row of a grid, for tests that change some of them."""

from __future__ import annotations

from typing import Final

from hydra.sweep import Row

CLEAN: Final[Row] = {
    "clients": 30, "avg_tx_rate_pps": 1000.0, "client_loss_pct": 0.0, "late_pct": 0.0, "undrained": 0,
    "undrained_pct": 0.0, "unknown": 0, "unknown_pct": 0.0, "failed_dead": 0, "failed_silent": 0,
    "requested_rate": 1000.0, "rate_held": True, "passed": True, "loss_target_pct": 0.5, "status": "ok", "reason": "",
}  # fmt: skip
