"""A controller has ended when its host refuses a connection several times in a row."""

from __future__ import annotations

import pytest

from hydra.control.control_client import LostConnection

SECOND = 1_000_000_000
START = 100 * SECOND


@pytest.mark.parametrize(("found", "due_ns"), [(False, START + SECOND), (True, None)])
def test_only_what_has_been_lost_is_knocked_at_a_second_later(found: bool, due_ns: int | None) -> None:
    refusal = LostConnection()
    refusal.lost(START)
    refusal.lost(START + SECOND // 2)
    if found:
        refusal.found()
    assert refusal.due_ns == due_ns


@pytest.mark.parametrize(
    ("knocks", "ended"),
    [("rrr", True), ("rr", False), ("rrlrr", False), ("rrlrrr", True), ("llll", False), ("rrfrr", False)],
)
def test_three_refusals_in_a_row_are_the_end(knocks: str, ended: bool) -> None:
    """r: refused, l: listened to, f: found again and lost once more."""
    refusal, now_ns = LostConnection(), START
    refusal.lost(now_ns)
    for knock in knocks:
        if knock == "f":
            refusal.found()
            refusal.lost(now_ns)
        else:
            now_ns = refusal.due_ns or 0
            refusal.attempted(now_ns, refused=knock == "r")
    assert refusal.controller_ended is ended
    assert now_ns == START + SECOND * len(knocks.replace("f", ""))
