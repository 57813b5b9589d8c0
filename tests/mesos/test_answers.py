"""What is read from the answers of a master and of agents."""

from __future__ import annotations

from typing import Any

import pytest

from hydra.mesos.master import OperatorApi, last_lines

FETCHER = "I1128 15:58:59.997551 29086 fetcher.cpp:564] Fetching URI"


@pytest.mark.parametrize(
    ("text", "whole", "reported"),
    [
        ("one\ntwo\n", True, "one | two"),
        ("e\ntwo\n", False, "two"),
        (f"{FETCHER}\nTraceback\n{FETCHER}\nno room\n", True, "Traceback | no room"),
        ("cpp:564] Fetching URI\nTraceback\n", False, "Traceback"),
        ("\n1\n2\n3\n4\n5\n6", False, "2 | 3 | 4 | 5 | 6"),
        ("", True, ""),
    ],
)
def test_the_end_of_a_tasks_stderr_has_whole_lines_of_the_task_only(text: str, whole: bool, reported: str) -> None:
    assert last_lines(text, whole=whole) == reported


def test_tasks_that_have_ended_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    states = ("TASK_RUNNING", "TASK_KILLED", "TASK_FINISHED", "TASK_STAGING", "TASK_UNREACHABLE", "TASK_LOST")
    tasks = [{"id": str(n), "state": state, "slave_id": "a"} for n, state in enumerate(states)]
    answer: dict[str, Any] = {"frameworks": [{"id": "f", "name": "hydra/r", "tasks": tasks}]}
    monkeypatch.setattr(OperatorApi, "_get", lambda *_: answer)
    (framework,) = OperatorApi("h:1").frameworks()
    assert [task for task, _, _ in framework.tasks] == ["0", "3"]
