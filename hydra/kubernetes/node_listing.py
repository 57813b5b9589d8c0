"""The nodes of a cluster as agents, for commands that run nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hydra.engine.resources import parse_resources
from hydra.errors import ClusterError
from hydra.kubernetes import api_errors, nodes
from hydra.kubernetes.api_client import Api, ApiError, Json, Query, context_of, require_client
from hydra.kubernetes.settings import KubernetesSettings
from hydra.model import Agent

_HOLDING: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Leaves out Pods that have ended: they use no resources of their nodes."""


def agents(master: str, settings: KubernetesSettings) -> list[Agent]:
    """The nodes as agents, with the free resources of each.

    Raises:
        UsageError, ClusterError, MissingDependencyError: there is no such cluster, or it does not list its nodes.
    """
    api = opened(master)
    found, pods, _ = nodes_and_pods(api, settings.namespace or api.namespace)
    return nodes.agents(found, pods, ports_of(settings), settings.tolerations)


def opened(master: str) -> Api:
    """The API that ``--master`` names; raises the same exceptions as :func:`agents`."""
    require_client()
    return Api(context_of(master))


def nodes_and_pods(api: Api, namespace: str) -> tuple[list[Json], list[Json], bool]:
    """The nodes, the Pods on them, and whether these are those of ``namespace`` only, as the user may not list others.

    Raises:
        ClusterError: the cluster does not list them.
    """
    try:
        return listed(lambda path, query: api.call("GET", path, query=query), namespace)
    except ApiError as e:
        raise refused(e, "list nodes and Pods", namespace) from None


def listed(get: Callable[[str, Query], Json], namespace: str) -> tuple[list[Json], list[Json], bool]:
    """What :func:`nodes_and_pods` returns, by the caller's GET.

    Raises:
        ApiError: ``get`` raised it.
    """
    found = get("/api/v1/nodes", {})["items"]
    try:
        return found, get("/api/v1/pods", _HOLDING)["items"], False
    except ApiError as e:
        if e.status != 403:
            raise
        return found, get(f"/api/v1/namespaces/{namespace}/pods", _HOLDING)["items"], True


def ports_of(settings: KubernetesSettings) -> nodes.Ports:
    """The range of ports for servers, in the form that :class:`Resources` uses."""
    return parse_resources(f"ports:[{settings.ports}]").ports


def refused(e: ApiError, doing: str, namespace: str) -> ClusterError:
    """The API server's error as an error of a command."""
    refusal = api_errors.api_failure(e.status, e.reason, e.message, doing=doing, namespace=namespace)
    return ClusterError(refusal.what, refusal.remedy)
