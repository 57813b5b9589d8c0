"""The last line of a run without an answer: its rows and the next command."""

from __future__ import annotations

import pytest

from hydra.cli.next_command import unanswered_line
from hydra.config.scenario import load_scenario
from hydra.sweep import Row

ROWS: list[Row] = [
    {"clients": 10, "status": "ok", "loss_answer": "unconfirmed"},
    {"clients": 30, "status": "ok", "loss_answer": "held"},
    {"clients": 50, "status": "partial", "loss_answer": "unconfirmed"},
]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["hydra", "nats-rate", "--subscribers", "10,30,50", "--within", "20s"], "hydra nats-rate"),
        (["hydra", "run", "nats-rate"], "the same command with"),
        (["hydra", "nats-rate", "--username", "me"], "the same command with"),
    ],
)
def test_rows_without_an_answer_have_a_command_with_twice_the_time(words: list[str], command: str) -> None:
    scenario = load_scenario("nats-rate", {})
    assert unanswered_line(scenario, ROWS, words) == (
        f"no answer for 10 subscribers: {command} --subscribers 10 --within 2min"
    )
    assert unanswered_line(scenario, ROWS[1:], words) == ""
    assert unanswered_line(load_scenario("nats-fixed", {}), ROWS, words) == ""
