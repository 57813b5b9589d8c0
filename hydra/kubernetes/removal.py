"""The end of everything that belongs to a run."""

from __future__ import annotations

import time
from typing import Final

from hydra.kubernetes.api_client import Api, ApiError, Json, Query

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
