"""What runs have left in a namespace, and its end."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from hydra.errors import ClusterError, UsageError
from hydra.kubernetes import names
from hydra.kubernetes.api_client import Api, ApiError, Json
from hydra.kubernetes.node_listing import opened, refused
from hydra.kubernetes.removal import remove
from hydra.kubernetes.settings import KubernetesSettings

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
        left = remove(api, namespace, names.selector(run), time.monotonic() + ENDS_WITHIN_S)
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
            run = each["metadata"]["labels"][names.RUN]
            known.setdefault(run, each["metadata"].get("annotations", {}).get(names.RUN_NAME, run))
            counts.setdefault(run, Counter())[kind] += 1
            if node := each.get("spec", {}).get("nodeName"):
                nodes.setdefault(run, set()).add(node)
    return [
        {"run": known[run], "jobs": count["jobs"], "pods": count["pods"], "nodes": len(nodes.get(run, ()))}
        for run, count in sorted(counts.items(), key=lambda item: known[item[0]])
    ]


def _objects(api: Api, namespace: str, run: str = "") -> tuple[list[Json], list[Json]]:
    query = {"labelSelector": names.selector(run)}
    try:
        jobs = api.call("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs", query=query)["items"]
        pods = api.call("GET", f"/api/v1/namespaces/{namespace}/pods", query=query)["items"]
    except ApiError as e:
        raise refused(e, "list jobs and pods", namespace) from None
    return jobs, pods
