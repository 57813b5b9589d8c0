"""A command's Job and Pod in the cluster, and the calls that create, read and delete them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from hydra.errors import ClusterError
from hydra.events.value_formatting import counted
from hydra.kubernetes import object_names
from hydra.kubernetes.api_client import Api, ApiError
from hydra.kubernetes.in_cluster.job_objects import PART
from hydra.kubernetes.node_listing import opened, refused
from hydra.kubernetes.run_removal import AGAIN, remove
from hydra.kubernetes.settings import KubernetesSettings

Json = dict[str, Any]

_CREATED_WITHIN_S: Final = 5.0
_REMOVED_WITHIN_S: Final = 30.0
_UNREACHABLE_S: Final = 60.0
_LOOK_S: Final = 2
_PAUSE_S: Final = 0.5


class ObjectNotMadeError(ClusterError):
    """The cluster refused to create an object; an object of this name, if any, belongs to another command."""


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run in the cluster.

    Attributes:
        api: the API of the cluster.
        master: the value of ``--master``.
        namespace: the namespace of the Job.
        run: the run's name.
    """

    api: Api
    master: str
    namespace: str
    run: str

    @classmethod
    def of(cls, master: str, settings: KubernetesSettings, run: str) -> RunJob:
        """The run in the cluster that ``--master`` and the settings name; makes no call yet.

        Raises:
            UsageError: there is no such context.
            MissingDependencyError: the official client is not installed.
        """
        api = opened(master)
        return cls(api, master, settings.namespace or api.namespace, run)

    @property
    def name(self) -> str:
        """The Job's name."""
        return object_names.object_name(self.run, PART)

    @property
    def fetching(self) -> str:
        """The command that fetches the run directory."""
        return shlex.join(["hydra", "fetch", self.run, *self._where])

    @property
    def _where(self) -> list[str]:
        return ["--master", self.master, "--namespace", self.namespace]

    def path(self, kind: str, name: str = "") -> str:
        """The API path of the objects of a kind (``jobs``, ``pods``, …), or of one of them."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        return f"{group}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def create(self, kind: str, body: Json) -> Json:
        """Creates an object; its annotations distinguish it from objects of other commands.

        Raises:
            ObjectNotMadeError: the cluster refused to create it.
            ClusterError: there was no answer, so the object may exist.
        """
        deadline, unanswered = time.monotonic() + _CREATED_WITHIN_S, False
        while True:
            try:
                return self.api.call("POST", self.path(kind), body)
            except ApiError as e:
                try:
                    if e.reason == "AlreadyExists" and unanswered:
                        existing = self.api.call("GET", self.path(kind, body["metadata"]["name"]))
                        # The object was created although the answer was lost.
                        if (
                            existing["metadata"].get("annotations", {}).items()
                            >= body["metadata"]["annotations"].items()
                        ):
                            return existing
                        unanswered = False
                except ApiError as again:
                    e = again
                unanswered = unanswered or e.status in (0, 500, 504)
                if e.status not in AGAIN or e.reason == "AlreadyExists" or time.monotonic() > deadline:
                    refusal = self.refused(e, f"create {kind}")
                    raise refusal if unanswered else ObjectNotMadeError(refusal.what, refusal.remedy) from None
            time.sleep(_PAUSE_S)

    def pod(self) -> Json | None:
        """The command's Pod as it is now; None if there is none.

        Raises:
            ClusterError: the API server rejects the call, or does not answer.
        """
        try:
            return _newest(self.api.call("GET", self.path("pods"), query=self._own_objects())["items"])
        except ApiError as e:
            raise self.refused(e, "list pods") from None

    def changes(self, within_s: float) -> Iterator[Json | None]:
        """The Pod now, whenever it may have changed, and every 2 s, for ``within_s`` seconds.

        Raises:
            ApiError: the API server rejects the call, or has not answered for a minute.
        """
        heard = time.monotonic()
        deadline = heard + within_s
        while time.monotonic() < deadline:
            try:
                listed = self.api.call("GET", self.path("pods"), query=self._own_objects())
                heard = time.monotonic()
                yield _newest(listed["items"])
                watched = {**self._own_objects(), "resourceVersion": listed["metadata"]["resourceVersion"]}
                next(self.api.watch(self.path("pods"), watched, _LOOK_S), None)
            except ApiError as e:
                if e.status not in (*AGAIN, 410) or time.monotonic() - heard > _UNREACHABLE_S:
                    raise
                time.sleep(_PAUSE_S)

    def events(self, *objects: str) -> list[Json]:
        """The warnings about some objects, by name; none if the user may not read them or there is no answer."""
        found: list[Json] = []
        for name in objects:
            query = {"fieldSelector": f"involvedObject.name={name},type=Warning"}
            try:
                found += self.api.call("GET", self.path("events"), query=query)["items"]
            except ApiError as e:
                if e.status not in (403, *AGAIN):
                    raise
        return found

    def delete(self, *, whole: bool = False) -> None:
        """Deletes Job, Secret and Pod; prints a warning if it cannot, as this is always the last call.

        Args:
            whole: whether to delete the command's own objects too, as it is lost or Hydra does not wait for it.
        """
        try:
            until = time.monotonic() + _REMOVED_WITHIN_S
            left = remove(self.api, self.namespace, object_names.selector(self.run, () if whole else (PART,)), until)
            what = f"{counted(left, 'Pod')} of {self.run} did not end within {_REMOVED_WITHIN_S:g} s" if left else ""
        except ApiError as e:
            what = self.refused(e, f"delete the Job {self.name}").what
        if what:
            kill = shlex.join(["hydra", "kill", self.run, *self._where])
            click.echo(f"warning: {what}; {kill} removes what is left in the cluster", err=True)

    def refused(self, error: ApiError, doing: str) -> ClusterError:
        """The API server's error as a text for people."""
        return refused(error, doing, self.namespace)

    def _own_objects(self) -> dict[str, str]:
        return {"labelSelector": object_names.selector(self.run, (PART,))}


def _newest(pods: Sequence[Json]) -> Json | None:
    return max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
