"""Names of result columns: the published ones first (``conf/reference/*.csv``), then what a sweep adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.model import SearchSeries, SearchSpec

CLIENTS: Final = "clients"
STATUS: Final = "status"
REASON: Final = "reason"
AVG_RX: Final = "avg_rx_rate_pps"
AGGREGATE: Final = "aggregate_pps"
RATE_HELD: Final = "rate_held"
BURSTS: Final = "bursts_s"
"""What each burst of losses cost, in seconds of traffic: the evidence of a search (measure/shortfall.py)."""
VERDICT: Final = "verdict"
FAILED_STEPS: Final = "failed_steps"
"""Steps of a search's row that could not be measured and were asked for again."""
STEP_S: Final = "step_s"
MAX_RATE: Final = "max_rate_with_drop_pps"
MAX_RATE_NODROP: Final = "max_rate_nodrop_pps"
AGGREGATE_MAX: Final = "aggregate_max_pps"

GONE: Final[Mapping[str, str]] = {"failed_dead": "died", "failed_silent": "never answered"}
"""Columns that count subscribers without a report, with what became of those."""

FIXED: Final = (
    CLIENTS,
    "avg_tx_rate_pps",
    AVG_RX,
    "client_loss_pct",
    "failed_clients",
    "total_tx",
    "total_rx",
)
"""Columns of ``hydra_kafka_fixed_rate.csv``."""
BATCH: Final = (CLIENTS, "msg_batch", *FIXED[1:])
"""Columns of ``hydra_kafka_batch.csv``."""


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.6g}".replace(".", "_")


def search_column(series: SearchSeries, search: SearchSpec) -> str:
    """The column of a search's figure.

    With the published settings these are the columns of ``hydra_zmq_python.csv``; with others the name says so,
    because the figures cannot be laid side by side.
    """
    if series == "max_rate":
        return MAX_RATE
    if series == "nodrop":
        return MAX_RATE_NODROP
    if series == "loss" and not search.loss_target:
        return "max_rate_without_drop_pps"
    if series == "loss":
        return f"max_rate_below_{_percent(search.loss_target)}pct_drop_pps"
    cohort = f"max_rate_{_percent(search.cohort_fraction)}pct_clients"
    if series == "slow":
        share = "half" if search.slow_share == 0.5 else f"{_percent(search.slow_share)}pct"
        return f"{cohort}_{share}_rate_pps"
    times = "" if search.reconnect_rate == 2.0 else f"_{search.reconnect_rate:g}_per_s".replace(".", "_")
    return f"{cohort}_reconnecting{times}_pps"


def sndhwm_column(sndhwm: int, search: SearchSpec) -> str:
    """The column of the search below the loss target at one of several high-water marks.

    As in ``hydra_zmq_cpp.csv``, where only the first of them names the target.
    """
    if sndhwm == search.sndhwms[0]:
        return search_column("loss", search).removesuffix("_pps") + f"_sndhwm_{sndhwm}_pps"
    return f"max_rate_sndhwm_{sndhwm}_pps"


def searched_columns(search: SearchSpec) -> dict[str, str]:
    """The columns with the figures of a search → what the names of the columns beside each of them begin with."""
    found: dict[str, str] = {}
    for series in search.series:
        if series == "loss" and search.sndhwms:
            found |= {sndhwm_column(sndhwm, search): f"loss_sndhwm_{sndhwm}" for sndhwm in search.sndhwms}
        else:
            found[search_column(series, search)] = series
    return found


def search_columns(search: SearchSpec) -> tuple[str, ...]:
    """Columns of a search's table in their order."""
    columns = [CLIENTS]
    for series in search.series:
        if series == "loss" and search.sndhwms:
            columns += [sndhwm_column(sndhwm, search) for sndhwm in search.sndhwms]
            continue
        columns.append(search_column(series, search))
        if series == "max_rate":
            columns.append(AGGREGATE_MAX)
    return tuple(columns)
