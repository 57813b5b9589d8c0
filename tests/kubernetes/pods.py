"""Namespaces and Pods that tests of the rig itself ask for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.kubernetes.api import Api, ApiError
from tests.suite.waiting import LONG_S, wait_until


@contextmanager
def namespace(api: Api) -> Iterator[str]:
    """The name of a namespace in which Pod Security admits what is "restricted"; it is removed afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    try:
        wait_until(lambda: api.items(f"/api/v1/namespaces/{name}/serviceaccounts"), "its service account", LONG_S)
        yield name
    finally:
        delete(api, f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds=0)
        delete(api, f"/api/v1/namespaces/{name}")


def delete(api: Api, path: str, **options: Any) -> None:
    """Deletes an object, or all of a list; nothing happens if it does not exist any more."""
    try:
        api.delete(path, **options)
    except ApiError as e:
        if e.status != 404:
            raise


def pod(name: str, image: str, command: Sequence[str], **more: Any) -> dict[str, Any]:
    """A Pod that Pod Security admits at the level "restricted"; ``more`` are fields of its spec."""
    may = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    container = {"name": "it", "image": image, "imagePullPolicy": "Never", "command": list(command)}
    user = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "securityContext": user}
    return {"metadata": {"name": name}, "spec": {**spec, "containers": [{**container, "securityContext": may}], **more}}


def status_of(api: Api, path: str, *phases: str) -> dict[str, Any]:
    """The status of a Pod as soon as it is in one of these phases."""

    def look() -> dict[str, Any] | None:
        status: dict[str, Any] = api.get(path)["status"]
        return status if status.get("phase") in phases else None

    found = wait_until(look, f"{path} in {phases}", LONG_S, saw=lambda: api.get(path)["status"])
    assert found is not None
    return found
