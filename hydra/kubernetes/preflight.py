"""Checks a cluster for ``hydra check``: rights, nodes, quotas, network policies, and a first Pod."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hydra.engine.specification import Opening
from hydra.events.value_formatting import counted
from hydra.kubernetes import nodes, object_names
from hydra.kubernetes.api_client import Api, ApiError, Json
from hydra.kubernetes.node_listing import nodes_and_pods, opened
from hydra.kubernetes.settings import KubernetesSettings

RIGHTS: Final = (
    ("", "pods", ("create", "get", "list", "watch", "deletecollection")),
    ("", "secrets", ("create", "deletecollection")),
    ("batch", "jobs", ("create", "get", "list", "deletecollection")),
    ("", "events", ("list",)),
)
"""API group, resource and verbs that a run uses in its namespace."""


def check(master: str, settings: KubernetesSettings) -> Iterator[str]:
    """Checks a cluster and yields lines for people, first those that demand a change.

    The check creates the first object of a run (a Job with one small Pod), and removes it.

    Raises:
        UsageError, ClusterError, MissingDependencyError: there is no such cluster, it does not list its nodes, or no
            run could begin there.
    """
    from hydra.kubernetes.run_start import begun

    api = opened(master)
    namespace = settings.namespace or api.namespace
    yield from _missing_rights(api, namespace)
    found, pods, partial = nodes_and_pods(api, namespace)
    yield from nodes.left_out(found, pods, settings.tolerations)
    yield from policies(_listed(api, f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"))
    if partial:
        yield f"Pods of other namespaces than {namespace} are not seen: {nodes.UNSEEN}"
    else:
        for node in found:
            yield f"node {node['metadata']['name']}: room for {counted(nodes.slots(node, pods), 'more Pod')}"
    yield ports(settings)
    yield from quotas(_listed(api, f"/api/v1/namespaces/{namespace}/resourcequotas"))
    with tempfile.TemporaryDirectory() as folder:
        opening = Opening(master, (), settings, f"check-{secrets.token_hex(4)}", Path(folder), lambda: ())
        with begun(opening) as run:
            yield from first_pod_lines(run.hello)


def policies(found: Iterable[Json]) -> Iterator[str]:
    """A line for each network policy that selects Hydra's Pods and may cut them off. Pure."""
    own_labels = {object_names.MANAGED_BY: object_names.MANAGER}
    for policy in found:
        spec = policy.get("spec", {})
        wanted = spec.get("podSelector", {})
        kinds = spec.get("policyTypes") or ["Ingress"]
        if wanted.get("matchExpressions") or _chooses(wanted.get("matchLabels", {}), own_labels):
            name, restricts = policy["metadata"]["name"], " and ".join(kind.lower() for kind in kinds)
            yield (
                f"network policy {name} restricts the {restricts} of Pods here: it must let Hydra's Pods reach each "
                "other and the controller, on any TCP port; see conf/kubernetes/network-policy.yaml"
            )


def _chooses(labels: Mapping[str, str], own_labels: Mapping[str, str]) -> bool:
    """Whether a selector may select Hydra's Pods; it ignores labels that users add, as they are not known here."""
    known = {key: value for key, value in labels.items() if key in own_labels or key.startswith("hydra/")}
    return all(own_labels.get(key, value) == value for key, value in known.items()) and (not labels or bool(known))


def ports(settings: KubernetesSettings) -> str:
    """A line about the ports that servers get. Pure."""
    whose = "of their nodes" if settings.pod.get("hostNetwork") else "in their Pods' own network"
    return f"servers are given ports {settings.ports} {whose}"


def quotas(found: Iterable[Json]) -> Iterator[str]:
    """A line for each quota: used and allowed amounts. Pure."""
    for quota in found:
        status = quota.get("status", {})
        used = status.get("used", {})
        parts = [f"{key} {used.get(key, '0')} of {hard}" for key, hard in sorted(status.get("hard", {}).items())]
        if parts:
            yield f"quota {quota['metadata']['name']}: {', '.join(parts)}"


def first_pod_lines(hello: Mapping[str, Any]) -> Iterator[str]:
    """Lines about what the first Pod found. Pure."""
    yield f"a Pod on {hello.get('node') or 'some node'} reached this machine at {hello['address']}"
    limit = hello.get("pids_max")
    if limit == "max":
        yield (
            "the Pod's container has no limit of processes; a limit of the kubelet "
            "(podPidsLimit) cannot be seen from a Pod"
        )
    elif limit:
        yield (
            f"the Pod's container may have {counted(limit, 'process', 'processes')}: one for each client that is "
            "not packed, three for the group"
        )


def _missing_rights(api: Api, namespace: str) -> Iterator[str]:
    missing = []
    for group, resource, verbs in RIGHTS:
        for verb in verbs:
            attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
            body = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            try:
                answer = api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
            except ApiError:
                return  # without the right to ask, the first Pod shows what is missing
            if not answer.get("status", {}).get("allowed"):
                missing.append(f"{verb} {resource}")
    if missing:
        yield f"you may not {', '.join(missing)} in namespace {namespace}: apply conf/kubernetes/role.yaml there"


def _listed(api: Api, path: str) -> list[Json]:
    try:
        return list(api.call("GET", path)["items"])
    except ApiError:
        return []  # without the right to list them, the check omits them
