"""What is left of runs on hosts, as ``hydra ps`` lists it."""

from __future__ import annotations

import pytest

from hydra.ssh import queries


def test_runs_of_one_name_are_listed_with_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    def left(run: str, *which: str) -> queries.Replies:
        return [{"kind": "process", "which": each, "run": run} for each in which]

    replies = {"a": [*left("z/11", "1", "2"), *left("y/33", "3")], "b": [*left("z/22", "4"), *left("z/11", "5")]}
    monkeypatch.setattr(queries, "ask", lambda *_: (replies, {}))
    assert [(row["run"], row["hosts"], row["processes"]) for row in queries.leftovers([])] == [
        ("y", "a", 1),
        ("z/11", "a,b", 3),
        ("z/22", "b", 1),
    ]
    assert queries.end_run([], "z", "") == ["2 processes and 0 folders on a", "2 processes and 0 folders on b"]
    assert queries.end_run([], "z/22", "") == ["1 processes and 0 folders on b"]
