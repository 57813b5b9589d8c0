"""The keeper's Job, which owns all objects of a run; its Pod runs ``pod_scripts/keeper_pod.py``. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hydra.kubernetes import api_errors, object_names, pod_status
from hydra.kubernetes.pod_status import HOPELESS_S, NODE_WITHIN_S, START_WITHIN_S, WAIT_S
from hydra.kubernetes.pods import RunObjects, labels_of, metadata, security, verbatim, with_user_settings

Json = dict[str, Any]

REMOVED_AFTER_S: Final = 5
"""How long a keeper that has ended stays, together with the objects that it owns."""
_REQUESTS: Final = {"cpu": "10m", "memory": "32Mi"}
_LIMITS: Final = {"memory": "128Mi"}
_CPU_LIMIT: Final = {"cpu": "100m"}
"""The keeper's CPU limit if groups have one: a quota may demand it of every Pod."""
_ATTEMPTS: Final = 20
CONTAINER: Final = "keeper"
UNREACHABLE: Final = 3
"""The exit code of ``pod_scripts/keeper_pod.py`` if it never reached the controller."""
UID: Final = "batch.kubernetes.io/controller-uid"
"""The label of a Pod with its Job's uid, which the API server chooses when it creates the Job."""
_ENDS: Final = (
    # There is no controller to keep anything for.
    {
        "action": "FailJob",
        "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": [UNREACHABLE]},
    },
    # The cluster creates the Pod again on another node.
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
)
MADE_WITHIN_S: Final = 3.0
"""How long a Job may take to create its Pod before Hydra asks for its events."""
REACHES_WITHIN_S: Final = 10.0
"""How long the Pod, once it runs, may take to reach the controller."""


def job(family: RunObjects, source: str, door: str, image: str) -> Json:
    """The keeper's Job.

    Args:
        family: what the run's objects have in common; its owner is not known yet.
        source: the source of ``pod_scripts/keeper_pod.py``.
        door: HOST:PORT to which the keeper connects.
        image: the image of its container.
    """
    pod_security, container_security = security()
    limits = {**_LIMITS, **(_CPU_LIMIT if family.settings.cpu_limit_ratio else {})}
    template = {
        "metadata": {
            "labels": labels_of(family, "keeper"),
            "annotations": {object_names.RUN_NAME: family.run, pod_status.MAIN: CONTAINER},
        },
        "spec": {
            "restartPolicy": "Never",
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
                        _from_pod("HYDRA_DOOR_TOKEN", f"metadata.labels['{UID}']"),
                        _from_pod("HYDRA_AGENT", "spec.nodeName"),
                    ],
                    "resources": {"requests": dict(_REQUESTS), "limits": limits},
                    "securityContext": container_security,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(family, object_names.object_name(family.run, "keeper"), "keeper"),
        "spec": {
            "backoffLimit": _ATTEMPTS,
            "podFailurePolicy": {"rules": _ENDS},
            "ttlSecondsAfterFinished": REMOVED_AFTER_S,
            "template": with_user_settings(family, template),
        },
    }


def owner(job_object: Json) -> Json:
    """The reference by which the Job that the API server has created owns the other objects."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job_object["metadata"]["name"],
        "uid": job_object["metadata"]["uid"],
        "blockOwnerDeletion": False,
        "controller": False,
    }


def refusal(hello: Json, version: str, digest: str, python: str, *, archive: bool, image: str) -> tuple[str, str]:
    """What is wrong with an image and what to try, by its keeper's first message; ("", "") if nothing is wrong.

    Args:
        hello: the keeper's first message.
        version: the version of the Hydra that runs the controller.
        digest: the digest of that Hydra's sources.
        python: the minor version of Python that runs it, ``3.11``.
        archive: whether groups get Hydra from the archive, so the image needs Python only.
        image: the image's name.
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
        return f"the image {image} holds Hydra {hello['hydra']}, and this is {version}", "build the image again"
    if hello.get("digest") != digest:
        return f"the image {image} holds a Hydra {version} of other sources than this one", "build the image again"
    return "", ""


def _from_pod(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


class KeeperStartup:
    """Why the keeper's Pod does not reach the controller, by the Pod's state and by the time that has passed."""

    def __init__(self, family: RunObjects, address: str, uid: str, now: float) -> None:
        """Begins without a Pod.

        Args:
            family: what the run's objects have in common.
            address: the address to which the keeper connects.
            uid: the uid of the keeper's Job.
            now: the time in s, as in the other calls.
        """
        self._family, self._address, self._uid = family, address, uid
        self._began = self._waits_since = now
        self._waits_for = ""
        self._running: float | None = None
        self._hopeless: float | None = None
        self._pod: Json = {}
        self._has_requested = False
        self._refusal: api_errors.ApiFailure | None = None

    def see(self, pod: Json) -> None:
        """Records a Pod of the run if it is the keeper's."""
        if pod["metadata"].get("labels", {}).get(UID) == self._uid:
            self._pod = pod

    def needs_events(self, now: float) -> bool:
        """Whether to ask for the Job's events, as it has no Pod after 3 s; true once."""
        if self._pod or self._has_requested or now - self._began < MADE_WITHIN_S:
            return False
        self._has_requested = True
        return True

    def take_events(self, events: Iterable[Json]) -> None:
        """Records the Job's events."""
        self._refusal = api_errors.not_made(events, namespace=self._family.namespace)

    def waits(self) -> str:
        """What the keeper's Pod waits for now, in a few words."""
        if not self._pod:
            return "its Job makes it"
        status = pod_status.status(self._pod)
        if status.state == "running":
            return f"it dials this machine at {self._address}"
        return pod_status.waits(status)

    def failure(self, now: float) -> tuple[str, str]:
        """What is wrong and what to try; ("", "") while the Pod may still reach the controller."""
        if not self._pod:
            if self._refusal is not None and self._refusal.final:
                return self._refusal.what, self._refusal.remedy
            if now - self._began < NODE_WITHIN_S:
                return "", ""
            what = f"the keeper's Job made no Pod within {NODE_WITHIN_S:g} s"
            return what, f"kubectl describe job -n {self._family.namespace}: a quota or an admission rule may refuse it"
        if (why := last_words(self._pod)) is not None:
            return (
                f"Pods do not reach this machine at {self._address}: {why}",
                "name an address that they reach (--advertise), allow it in the firewall or the network policies, "
                "or run in the cluster (--in-cluster)",
            )
        status = pod_status.status(self._pod)
        if status.state in ("failed", "finished"):
            return f"the first Pod, of the image {self._family.image}: {status.detail}", ""
        return self._silent(now) if status.state == "running" else self._not_started(status, now)

    def _silent(self, now: float) -> tuple[str, str]:
        if self._running is None:
            self._running = now
        if now - self._running < REACHES_WITHIN_S:
            return "", ""
        return (
            f"no Pod reached this machine at {self._address} within {REACHES_WITHIN_S:g} s",
            "name an address that they reach (--advertise), or run in the cluster (--in-cluster)",
        )

    def _not_started(self, status: pod_status.PodStatus, now: float) -> tuple[str, str]:
        if status.waits_for != self._waits_for:
            self._waits_for, self._waits_since = status.waits_for, now
        if not status.hopeless:
            self._hopeless = None
        elif self._hopeless is None:
            self._hopeless = now
        late = now - self._waits_since >= WAIT_S.get(status.waits_for, START_WITHIN_S)
        if late or (self._hopeless is not None and now - self._hopeless >= HOPELESS_S):
            return f"the first Pod, of the image {self._family.image}: {status.detail}", ""
        return "", ""


def last_words(pod: Json) -> str | None:
    """The last message of a keeper that could not reach the controller; None if it has not ended so."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        ended = container.get("state", {}).get("terminated") or {}
        if container.get("name") == CONTAINER and ended.get("exitCode") == UNREACHABLE:
            return str(ended.get("message") or "").strip() or "it gave no reason"
    return None
