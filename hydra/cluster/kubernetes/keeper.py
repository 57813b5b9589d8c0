"""The Job to which everything of a run belongs; its Pod runs ``inside/keeper.py``. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hydra.cluster.kubernetes import names
from hydra.cluster.kubernetes.pods import Family, dressed, metadata, security, verbatim

Json = dict[str, Any]

REMOVED_AFTER_S: Final = 5
"""How long a keeper that has ended stays, and with it what belongs to it."""
_REQUESTS: Final = {"cpu": "10m", "memory": "32Mi"}
_LIMITS: Final = {"memory": "128Mi"}
_ATTEMPTS: Final = 20
"""It fails only where it does not reach the controller, which then ends the run; else it shall come back."""
CONTAINER: Final = "keeper"


def job(family: Family, source: str, door: str, image: str) -> Json:
    """The keeper's Job.

    Args:
        family: what the run's objects have in common; its owner is not known yet.
        source: of ``inside/keeper.py``.
        door: HOST:PORT where it dials in.
        image: of its container.
    """
    pod_security, container_security = security()
    template = {
        "metadata": {"labels": names.labels(family.run, "keeper")},
        "spec": {
            "restartPolicy": "OnFailure",
            "securityContext": pod_security,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": CONTAINER,
                    "image": image,
                    "imagePullPolicy": family.settings.pull_policy,
                    "command": ["python3", "-c", *verbatim([source])],
                    "env": [
                        {"name": "HYDRA_DOOR", "value": door},
                        _from_pod("HYDRA_DOOR_TOKEN", "metadata.labels['batch.kubernetes.io/controller-uid']"),
                        _from_pod("HYDRA_AGENT", "spec.nodeName"),
                    ],
                    "resources": {"requests": dict(_REQUESTS), "limits": dict(_LIMITS)},
                    "securityContext": container_security,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(family, names.object_name(family.run, "keeper"), "keeper"),
        "spec": {
            "backoffLimit": _ATTEMPTS,
            "ttlSecondsAfterFinished": REMOVED_AFTER_S,
            "template": dressed(family, template),
        },
    }


def owner(job_object: Json) -> Json:
    """The reference by which everything else belongs to the Job that the API server has made."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job_object["metadata"]["name"],
        "uid": job_object["metadata"]["uid"],
        "blockOwnerDeletion": False,
        "controller": False,
    }


def refusal(hello: Json, version: str, digest: str, python: str, *, archive: bool, image: str) -> tuple[str, str]:
    """What is wrong with an image and what to try, by what its keeper says; ("", "") if it will do.

    Args:
        hello: of the keeper.
        version: of the Hydra that runs the controller.
        digest: of its sources.
        python: the minor version that it runs, ``3.11``.
        archive: whether groups get Hydra from the archive, so that the image needs Python only.
        image: its name.
    """
    if archive:
        if hello.get("python") == python:
            return "", ""
        return (
            f"the image {image} has Python {hello.get('python')}, and this Hydra runs {python}",
            f"name one with Python {python} behind --image",
        )
    if not hello.get("hydra"):
        return f"the image {image} holds no Hydra", "build it (Containerfile), or name any image with Python: --image"
    if hello["hydra"] != version:
        return f"the image {image} holds Hydra {hello['hydra']}, and this is {version}", "build the image anew"
    if hello.get("digest") != digest:
        return f"the image {image} holds a Hydra {version} of other sources than this one", "build the image anew"
    return "", ""


def _from_pod(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def failures(pods: Sequence[Json]) -> str:
    """The last words of a keeper that could not reach the controller, "" if there are none."""
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", ()):
            for state in (container.get("state", {}), container.get("lastState", {})):
                ended = state.get("terminated")
                if ended and ended.get("exitCode"):
                    return str(ended.get("message") or ended.get("reason") or "").strip()
    return ""
