"""What `hydra ps` lists of what a namespace holds."""

from __future__ import annotations

from typing import Any

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes.leftovers import rows

Json = dict[str, Any]


def thing(run: str, node: str = "", *, named: bool = True) -> Json:
    annotations = {"annotations": {names.RUN_NAME: run}} if named else {}
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"labels": names.labels(run, "group"), **annotations}, "spec": spec}


def test_runs_are_told_by_their_whole_names_in_order() -> None:
    # The Pods that a Job makes carry the label only.
    jobs = [thing("zmq rate 2"), thing("kafka")]
    pods = [thing("zmq rate 2", "n1", named=False), thing("zmq rate 2", "n2"), thing("zmq rate 2", "n2")]
    assert rows(jobs, pods) == [
        {"run": "kafka", "jobs": 1, "pods": 0, "nodes": 0},
        {"run": "zmq rate 2", "jobs": 1, "pods": 3, "nodes": 2},
    ]


def test_pods_without_a_job_and_without_a_name_are_listed_too() -> None:
    assert rows([], [thing("Lost One", named=False)]) == [
        {"run": names.slug("Lost One"), "jobs": 0, "pods": 1, "nodes": 0}
    ]


def test_nothing_there_is_nothing_listed() -> None:
    assert rows([], []) == []
