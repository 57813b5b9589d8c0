"""What runs have left in a namespace, and the end of everything that belongs to a run."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from hydra.errors import ClusterError, UsageError
from hydra.kubernetes import object_names
from hydra.kubernetes.api_client import Api, ApiError, Json, Query
from hydra.kubernetes.node_listing import opened, refused
from hydra.kubernetes.settings import KubernetesSettings

AGAIN: Final = (0, 401, 409, 429, 500, 502, 503, 504)
"""Status codes for which a call is made again; of 409, that is an object which somebody else is changing."""
TRIES_S: Final = 60.0
"""How long a call is tried again that had no answer, or that the API server was too busy for."""
GRACE_S: Final = 2
"""How long Pods have to end by themselves: their clients have been told to by then."""
DELETED_WITHIN_S: Final = 30.0
"""How long the answer to a call may take that deletes hundreds of objects."""
_FORCED_S: Final = 3.0
"""How long before the deadline Pods are given up whose node does not answer."""
_LEAST_S: Final = 2.0
"""What a call gets at least, however near the deadline is."""


def remove(api: Api, namespace: str, selector: str, deadline: float) -> int:
    """Deletes Jobs, Pods and Secrets; returns how many of the Pods are still there at the deadline.

    Args:
        api: as whom.
        namespace: where.
        selector: of their labels (:func:`names.selector`).
        deadline: s, the monotonic clock.

    Raises:
        ApiError: the API server refuses, or is not there.
    """
    query = {"labelSelector": selector}
    space = f"namespaces/{namespace}"
    pods = f"/api/v1/{space}/pods"
    _insist(api, f"/apis/batch/v1/{space}/jobs", {"propagationPolicy": "Background"}, query, deadline)
    # The cluster would remove these as well, some seconds later.
    _insist(api, pods, {"gracePeriodSeconds": GRACE_S}, query, deadline)
    _insist(api, f"/api/v1/{space}/secrets", {}, query, deadline)
    left = _await_end(api, pods, query, deadline - _FORCED_S)
    if left:
        _give_up(api, pods, query)
        left = _await_end(api, pods, query, deadline)
    return len(left)


def _await_end(api: Api, pods: str, query: Query, deadline: float) -> set[str]:
    """Watches until all of these Pods have gone; returns the names of those that have not."""
    listed = api.call("GET", pods, query=query)
    there = {pod["metadata"]["name"] for pod in listed["items"]}
    asked = {**query, "resourceVersion": listed["metadata"]["resourceVersion"]}
    while there and (left_s := deadline - time.monotonic()) > 0:
        for event in api.watch(pods, asked, max(1, round(left_s))):
            if event["type"] == "DELETED":
                there.discard(event["object"]["metadata"]["name"])
            elif event["type"] == "ADDED":
                there.add(event["object"]["metadata"]["name"])
            if not there or time.monotonic() >= deadline:
                break
        else:
            time.sleep(min(0.5, max(0.0, left_s)))  # ended early, by an API server that is restarted for instance
    return there


def _give_up(api: Api, pods: str, query: Query) -> None:
    """Deletes those whose node does not answer without waiting for it: nobody else ever would."""
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
    """A row for each run of which something is there, for ``hydra ps``.

    Raises:
        UsageError, ClusterError, MissingDependencyError: there is no such cluster, or it does not tell.
    """
    api = opened(master)
    return rows(*_objects(api, settings.namespace or api.namespace))


def end_run(master: str, settings: KubernetesSettings, run: str) -> list[str]:
    """Deletes all that is there of a run, a controller in the cluster too; tells what, in one line.

    Raises:
        UsageError: nothing is there of such a run.
        ClusterError, MissingDependencyError: the cluster does not answer, or refuses; or Pods do not end.
    """
    if not run:
        raise UsageError("a run has a name", f"hydra ps --master {master} lists those that are there")
    api = opened(master)
    namespace = settings.namespace or api.namespace
    found = rows(*_objects(api, namespace, run))
    try:
        # Also where nothing is seen: Secrets may be left, which nobody here may list.
        left = remove(api, namespace, object_names.selector(run), time.monotonic() + ENDS_WITHIN_S)
    except ApiError as e:
        raise refused(e, "delete pods", namespace) from None
    if not found:
        raise UsageError(
            f"namespace {namespace} has nothing of a run {run!r}", f"hydra ps --master {master} lists those it knows"
        )
    if left:
        raise ClusterError(
            f"{left} Pods of {run} have not ended within {ENDS_WITHIN_S:g} s",
            "their nodes may be gone: kubectl get pods",
        )
    return [f"{row['run']}: {_counted(row['jobs'], 'Job')} and {_counted(row['pods'], 'Pod')}" for row in found]


def _counted(count: object, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def rows(jobs: list[Json], pods: list[Json]) -> list[dict[str, object]]:
    """What is there, by run, in alphabetical order. Pure."""
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
