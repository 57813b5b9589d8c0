"""Lists what runs have left in a namespace, and deletes all objects of a run."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

from hydra.errors import ClusterError, UsageError
from hydra.events.value_formatting import counted
from hydra.kubernetes import object_names
from hydra.kubernetes.api_client import Api, ApiError, Json, Query
from hydra.kubernetes.node_listing import opened, refused
from hydra.kubernetes.settings import KubernetesSettings

AGAIN: Final = (0, 401, 409, 429, 500, 502, 503, 504)
"""Status codes after which Hydra repeats a call; 409 is an object that another process is changing."""
TRIES_S: Final = 60.0
"""How long Hydra repeats a call that the API server did not answer, or was too busy for."""
GRACE_S: Final = 2
"""How long Pods have to end by themselves; their clients received ``quit`` before."""
DELETED_WITHIN_S: Final = 30.0
"""The longest time for the answer to a call that deletes hundreds of objects."""
_FORCED_S: Final = 3.0
"""How long before the deadline Hydra deletes Pods without waiting for nodes that do not answer."""
_LEAST_S: Final = 2.0
"""The shortest time limit of a call, even if the deadline is nearer."""


def remove(api: Api, namespace: str, selector: str, deadline: float) -> int:
    """Deletes Jobs, Pods and Secrets; returns the number of Pods that still exist at the deadline.

    Args:
        api: the API of the cluster.
        namespace: the namespace of the objects.
        selector: the selector of their labels (:func:`object_names.selector`).
        deadline: s, the monotonic clock.

    Raises:
        ApiError: the API server rejects the call, or does not answer.
    """
    query = {"labelSelector": selector}
    space = f"namespaces/{namespace}"
    pods = f"/api/v1/{space}/pods"
    _insist(api, f"/apis/batch/v1/{space}/jobs", {"propagationPolicy": "Background"}, query, deadline)
    # The cluster would delete the Pods too, some seconds later.
    _insist(api, pods, {"gracePeriodSeconds": GRACE_S}, query, deadline)
    _insist(api, f"/api/v1/{space}/secrets", {}, query, deadline)
    left = _await_end(api, pods, query, deadline - _FORCED_S)
    if left:
        _give_up(api, pods, query)
        left = _await_end(api, pods, query, deadline)
    return len(left)


def _await_end(api: Api, pods: str, query: Query, deadline: float) -> set[str]:
    """Watches until all of these Pods are deleted; returns the names of the others at the deadline."""
    listed = api.call("GET", pods, query=query)
    names = {pod["metadata"]["name"] for pod in listed["items"]}
    watched = {**query, "resourceVersion": listed["metadata"]["resourceVersion"]}
    while names and (left_s := deadline - time.monotonic()) > 0:
        for event in api.watch(pods, watched, max(1, round(left_s))):
            if event["type"] == "DELETED":
                names.discard(event["object"]["metadata"]["name"])
            elif event["type"] == "ADDED":
                names.add(event["object"]["metadata"]["name"])
            if not names or time.monotonic() >= deadline:
                break
        else:
            time.sleep(min(0.5, max(0.0, left_s)))  # the watch ended early: the API server may be restarting
    return names


def _give_up(api: Api, pods: str, query: Query) -> None:
    """Deletes Pods on nodes that do not answer, without waiting for the node: otherwise they would stay for ever."""
    lost = {
        node["metadata"]["name"]
        for node in api.call("GET", "/api/v1/nodes")["items"]
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    }
    for pod in api.call("GET", pods, query=query)["items"]:
        if pod["spec"].get("nodeName") in lost:
            named = {**query, "fieldSelector": f"metadata.name={pod['metadata']['name']}"}
            api.call("DELETE", pods, {"gracePeriodSeconds": 0}, named)


def _insist(api: Api, path: str, options: Json, query: Query, deadline: float) -> None:
    while True:
        try:
            answer_s = min(DELETED_WITHIN_S, max(_LEAST_S, deadline - time.monotonic()))
            api.call("DELETE", path, options, query, answer_s)
        except ApiError as e:
            if e.status not in AGAIN or time.monotonic() + 1.0 > deadline:
                raise
            time.sleep(0.5)
        else:
            return


ENDS_WITHIN_S: Final = 30.0


def leftovers(master: str, settings: KubernetesSettings) -> list[dict[str, object]]:
    """A row for each run that has objects in the namespace, for ``hydra ps``.

    Raises:
        UsageError, ClusterError, MissingDependencyError: there is no such cluster, or it does not list its objects.
    """
    api = opened(master)
    return rows(*_objects(api, settings.namespace or api.namespace))


def end_run(master: str, settings: KubernetesSettings, run: str) -> list[str]:
    """Deletes all objects of a run, a controller in the cluster too; returns a line with what was deleted.

    Raises:
        UsageError: there are no objects of such a run.
        ClusterError, MissingDependencyError: the cluster does not answer or rejects the call, or Pods do not end.
    """
    if not run:
        raise UsageError("a run has a name", f"hydra ps --master {master} lists the runs that are there")
    api = opened(master)
    namespace = settings.namespace or api.namespace
    found = rows(*_objects(api, namespace, run))
    try:
        # Also if nothing was found: Secrets may be left, which Hydra needs no right to list.
        left = remove(api, namespace, object_names.selector(run), time.monotonic() + ENDS_WITHIN_S)
    except ApiError as e:
        raise refused(e, "delete pods", namespace) from None
    if not found:
        raise UsageError(
            f"namespace {namespace} has nothing of a run {run!r}", f"hydra ps --master {master} lists the runs"
        )
    if left:
        raise ClusterError(
            f"{counted(left, 'Pod')} of {run} did not end within {ENDS_WITHIN_S:g} s",
            "the nodes of these Pods may not answer: kubectl get pods",
        )
    return [f"{row['run']}: {counted(row['jobs'], 'Job')} and {counted(row['pods'], 'Pod')}" for row in found]


def rows(jobs: list[Json], pods: list[Json]) -> list[dict[str, Any]]:
    """A row for each run, in alphabetical order. Pure."""
    known: dict[str, str] = {}
    counts: dict[str, Counter[str]] = {}
    nodes: dict[str, set[str]] = {}
    for kind, found in (("jobs", jobs), ("pods", pods)):
        for each in found:
            run = each["metadata"]["labels"][object_names.RUN]
            known.setdefault(run, each["metadata"].get("annotations", {}).get(object_names.RUN_NAME, run))
            counts.setdefault(run, Counter())[kind] += 1
            if node := each.get("spec", {}).get("nodeName"):
                nodes.setdefault(run, set()).add(node)
    return [
        {"run": known[run], "jobs": count["jobs"], "pods": count["pods"], "nodes": len(nodes.get(run, ()))}
        for run, count in sorted(counts.items(), key=lambda item: known[item[0]])
    ]


def _objects(api: Api, namespace: str, run: str = "") -> tuple[list[Json], list[Json]]:
    query = {"labelSelector": object_names.selector(run)}
    try:
        jobs = api.call("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs", query=query)["items"]
        pods = api.call("GET", f"/api/v1/namespaces/{namespace}/pods", query=query)["items"]
    except ApiError as e:
        raise refused(e, "list jobs and pods", namespace) from None
    return jobs, pods
