"""Fetches the run directory of a command in the cluster, and removes the command's objects there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeGuard

import click

from hydra.errors import EXIT_INTERRUPTED, ClusterError, UsageError
from hydra.kubernetes.in_cluster.job_objects import COMMAND
from hydra.kubernetes.in_cluster.job_state import LogReader, end_reason, has_begun, is_kept, kept_s, why_not_begun
from hydra.kubernetes.in_cluster.log_follower import FollowCancelled, follow
from hydra.kubernetes.in_cluster.run_job import RunJob
from hydra.kubernetes.in_cluster.transfer import FetchedFiles, refuse_existing, release, transfer
from hydra.kubernetes.settings import KubernetesSettings

Json = dict[str, Any]


def follow_run(master: str, settings: KubernetesSettings, run: str, out: Path) -> int:
    """Follows a command in the cluster from its first line on and returns its exit code.

    Ctrl-C ends this process only: the command may belong to another user.

    Raises:
        UsageError: the cluster has no such run.
        ClusterError: as for :func:`followed_and_fetched`.
    """
    refuse_existing(out)
    place, pod = _found(master, settings, run)
    return followed_and_fetched(place, pod, out, ends=False)


def fetch_run(master: str, settings: KubernetesSettings, run: str, out: Path) -> str:
    """Fetches a run directory as it is now, and returns a line about it; removes an ended run from the cluster.

    Raises:
        UsageError: the cluster has no such run.
        RunDirectoryError: ``out`` exists already.
        ClusterError: there is nothing to fetch, or it cannot be fetched.
    """
    refuse_existing(out)
    place, pod = _found(master, settings, run)
    fetched = transfer(place, pod["metadata"]["name"], out)
    if not fetched.measured and not fetched.ended:
        raise ClusterError(f"{run} has measured nothing yet", f"try again: {place.fetching}")
    if not fetched.measured:
        log = f"kubectl logs -n {place.namespace} job/{place.name} -c {COMMAND}"
        raise ClusterError(
            f"{run} has ended and measured nothing", f"see the log of the run: {log}; hydra kill removes the run"
        )
    if not fetched.ended:
        return f"{out} has what {run} has measured so far; the run is still running"
    _remove(place, pod)
    if _is_own(fetched.code):
        return f"{out} has all of {run}, which has ended with exit code {fetched.code}"
    return f"{out} has all of {run}, which has not come to its end: {end_reason(pod)[0]}"


def followed_and_fetched(place: RunJob, pod: Json, out: Path, *, ends: bool) -> int:
    """Follows a command that has begun to its end, fetches its run directory and removes its objects.

    Args:
        place: the run in the cluster.
        pod: the command's Pod.
        out: the run directory on this machine.
        ends: whether Ctrl-C asks the command to end.

    Raises:
        ClusterError: the run is lost, or its directory cannot be fetched yet.
    """
    try:
        ended = follow(place, pod, LogReader(place.run, str(out)), ends=ends)
        fetched = _fetched(place, ended, out)
    except FollowCancelled:
        place.delete(whole=True)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return left_in_cluster(place)
    _remove(place, ended)
    return _code(ended, fetched, out)


def _remove(place: RunJob, pod: Json) -> None:
    if pod["metadata"].get("deletionTimestamp"):
        release(place, pod["metadata"]["name"])
    place.delete()


def left_in_cluster(place: RunJob) -> int:
    """Prints how to fetch a run that stays in the cluster; returns this command's exit code."""
    click.echo(f"the run stays in the cluster: {place.fetching}", err=True)
    return EXIT_INTERRUPTED


def _fetched(place: RunJob, ended: Json, out: Path) -> FetchedFiles:
    try:
        return transfer(place, ended["metadata"]["name"], out)
    except ClusterError as e:
        if ended["metadata"].get("deletionTimestamp"):
            what = f"the Pod of {place.run} was deleted before its run directory could be fetched"
            raise ClusterError(what, "hydra kill deletes Pods, for example") from None
        raise ClusterError(e.what, f"{f'{e.remedy}; then ' if e.remedy else ''}{place.fetching}") from None


def _code(pod: Json, fetched: FetchedFiles, out: Path) -> int:
    if _is_own(fetched.code):
        return fetched.code
    what, remedy = end_reason(pod)
    kept = f"what the command had measured is in {out}" if fetched.measured else "the command had measured nothing"
    raise ClusterError(f"the command in the cluster has not come to its end: {what}; {kept}", remedy)


def _is_own(code: int | None) -> TypeGuard[int]:
    """Whether a command ended by itself: its largest own code is that of Ctrl-C; larger codes are other signals."""
    return code is not None and code <= EXIT_INTERRUPTED


def _found(master: str, settings: KubernetesSettings, run: str) -> tuple[RunJob, Json]:
    """The run in the cluster and its Pod, from which its directory can be fetched."""
    place = RunJob.of(master, settings, run)
    pod = place.pod()
    if pod is None:
        raise UsageError(
            f"no command {run} runs in the cluster's namespace {place.namespace}",
            f"hydra ps --master {master} --namespace {place.namespace} lists the runs that it knows",
        )
    if not has_begun(pod):
        what, remedy = why_not_begun(pod, (), 0.0, place.namespace)
        remedy = remedy or f"kubectl describe pod -n {place.namespace} shows more, hydra kill {run} removes the run"
        raise ClusterError(f"{run} has not begun{': ' if what else ''}{what}", remedy)
    if not is_kept(pod):
        raise ClusterError(
            f"the directory of {run} was removed: the cluster kept it for {kept_s(pod)} s after the end of the run",
            "raise keep_s in [kubernetes] for the next run",
        )
    return place, pod
