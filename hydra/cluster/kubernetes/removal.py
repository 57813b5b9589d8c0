"""The end of everything that belongs to a run."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes.access import Api, ApiError, Json, Query

AGAIN: Final = (0, 401, 409, 429, 500, 502, 503, 504)
"""Status codes for which a call is made again; of 409, that is an object which somebody else is changing."""
GRACE_S: Final = 2
"""How long Pods have to end by themselves: their clients have been told to by then."""
DELETED_WITHIN_S: Final = 30.0
"""How long the answer to a call may take that deletes hundreds of objects."""
_ANSWER_S: Final = 6.0
"""How long a node has to say that a Pod of it has ended, beyond the grace."""


def remove(api: Api, namespace: str, run: str, parts: Collection[str], deadline: float) -> int:
    """Deletes what belongs to a run; returns how many Pods are still there at the deadline.

    Args:
        api: as whom.
        namespace: where.
        run: its name.
        parts: of these parts only (``names.PART``); () is all.
        deadline: s, the monotonic clock.

    Raises:
        ApiError: the API server refuses, or is not there.
    """
    query = {"labelSelector": names.selector(run, parts)}
    space = f"namespaces/{namespace}"
    pods = f"/api/v1/{space}/pods"
    _insist(api, f"/apis/batch/v1/{space}/jobs", {"propagationPolicy": "Background"}, query, deadline)
    # The cluster would remove these as well, some seconds later.
    _insist(api, pods, {"gracePeriodSeconds": GRACE_S}, query, deadline)
    _insist(api, f"/api/v1/{space}/secrets", {}, query, deadline)
    left = _await_end(api, pods, query, min(deadline, time.monotonic() + GRACE_S + _ANSWER_S))
    if left:
        # Their node does not answer: nobody else would ever remove them.
        _insist(api, pods, {"gracePeriodSeconds": 0}, query, deadline)
        left = _await_end(api, pods, query, deadline)
    return left


def _await_end(api: Api, pods: str, query: Query, deadline: float) -> int:
    """Watches until all of these Pods have gone; returns how many have not."""
    listed = api.call("GET", pods, query=query)
    there = {pod["metadata"]["name"] for pod in listed["items"]}
    asked = {**query, "resourceVersion": listed["metadata"]["resourceVersion"]}
    while there and (left_s := deadline - time.monotonic()) > 0:
        for event in api.watch(pods, asked, max(1, round(left_s))):
            if event["type"] == "DELETED":
                there.discard(event["object"]["metadata"]["name"])
            if not there or time.monotonic() >= deadline:
                break
        else:
            break  # the server has ended it: the time is over
    return len(there)


def _insist(api: Api, path: str, options: Json, query: Query, deadline: float) -> None:
    while True:
        try:
            api.call("DELETE", path, options, query, DELETED_WITHIN_S)
        except ApiError as e:
            if e.status not in AGAIN or time.monotonic() + 1.0 > deadline:
                raise
            time.sleep(0.5)
        else:
            return
