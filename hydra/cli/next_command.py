"""The command that may find what a run did not. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from hydra.measure.column import STATUS
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Scenario
from hydra.sweep import Row
from hydra.sweep.cleanness import answers

_REPLACED: Final = ("--subscribers", "--clients", "--within", "--out")


def unanswered_line(scenario: Scenario, rows: Sequence[Row], words: Sequence[str]) -> str:
    """The client counts for which the time was over before a rate was held, and the next command; "": there are none.

    Args:
        scenario: the scenario of the run.
        rows: its rows.
        words: the words of its command.
    """
    rows = [row for row in rows if row[STATUS] == "ok" and "unconfirmed" in answers(row).values()]
    if not rows:
        return ""
    from hydra.sweep.held import HeldSweep

    if not isinstance(scenario.sweep, HeldSweep):
        return ""
    counts, twice_s = ",".join(str(row[CLIENTS]) for row in rows), 2 * scenario.sweep.held.within_s
    within = f"{twice_s:g}s" if twice_s % 60 else f"{twice_s / 60:g}min"
    return f"no answer for {counts} subscribers: {_command(words)} --subscribers {counts} --within {within}"


def _command(words: Sequence[str]) -> str:
    """The command and its scenario; it is not written again if it has other flags, which may have secrets."""
    others = iter(words[2:])
    for word in others:
        if word not in _REPLACED:
            return "the same command with"
        next(others, None)
    return shlex.join(words[:2])
