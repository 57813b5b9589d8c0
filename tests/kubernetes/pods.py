"""Namespaces and Pods that tests of the rig itself ask for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tests.kubernetes.api import Api, ApiError
from tests.kubernetes.processes import until


@contextmanager
def namespace(api: Api, level: str = "restricted") -> Iterator[str]:
    """The name of a namespace in which Pod Security holds at a level; it is gone afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": level}
    api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    try:
        until(lambda: _names(api, f"/api/v1/namespaces/{name}/serviceaccounts"), "its service account")
        yield name
    finally:
        with suppress(ApiError):  # a test may have deleted it
            api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds=0)
            api.delete(f"/api/v1/namespaces/{name}")


def pod(name: str, image: str, command: Sequence[str], **more: Any) -> dict[str, Any]:
    """A Pod that Pod Security admits at the level "restricted"; ``more`` are fields of its spec."""
    container = {
        "name": "it",
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        **more,
    }
    return {"metadata": {"name": name}, "spec": spec}


def status_of(api: Api, path: str, *phases: str) -> dict[str, Any]:
    """The status of a Pod as soon as it is in one of these phases."""

    def look() -> dict[str, Any] | None:
        status: dict[str, Any] = api.get(path)["status"]
        return status if status.get("phase") in phases else None

    found = until(look, f"{path} in {phases}")
    assert found is not None
    return found


def _names(api: Api, path: str) -> list[str]:
    return [each["metadata"]["name"] for each in api.items(path)]
