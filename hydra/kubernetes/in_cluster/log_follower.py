"""Follows a command in the cluster from its beginning to its end, and shows its log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import click

from hydra.errors import ClusterError, Terminated
from hydra.kubernetes import api_streams
from hydra.kubernetes.api_client import UNKNOWN, ApiError
from hydra.kubernetes.in_cluster.job_objects import COMMAND, GRACE_S, stopping
from hydra.kubernetes.in_cluster.job_state import BEGINS_WITHIN_S, LogReader, has_begun, has_ended, why_not_begun
from hydra.kubernetes.in_cluster.run_job import RunJob
from hydra.kubernetes.pod_status import status, waits
from hydra.kubernetes.run_removal import AGAIN

Json = dict[str, Any]

_UNSEEN_S: Final = 3.0
"""How long to wait for the beginning before Hydra looks at events."""
_UNREACHABLE_S: Final = 300.0
"""How long the API server may not answer, counted from the first call without an answer."""
_UNKNOWN_S: Final = 60.0
"""How long the API server may reject the credentials, which another program may be renewing."""
_LATE_S: Final = 10.0
"""How long after its grace period a deleted Pod may still exist; then its node does not answer."""
_PAUSE_S: Final = 0.5
_UNHEARD_S: Final = 2.0
"""The pause between two looks at a command whose log the user may not read."""


def await_begin(place: RunJob, notify: Callable[[str], None]) -> Json:
    """Waits until the command has begun, and returns its Pod.

    Args:
        place: the run in the cluster.
        notify: called with a line about what the command waits for, if that takes more than 3 s.

    Raises:
        ClusterError: the command does not begin; the text gives the reason.
    """
    began, reported = time.monotonic(), ""
    try:
        for pod in place.changes(BEGINS_WITHIN_S + 5):
            waited_s = time.monotonic() - began
            if pod is not None and has_begun(pod):
                return pod
            named = (place.name, *([pod["metadata"]["name"]] if pod else ()))
            events = place.events(*named) if waited_s > _UNSEEN_S or pod is None else []
            what, remedy = why_not_begun(pod, events, waited_s, place.namespace)
            if what:
                raise ClusterError(f"the command cannot run in the cluster: {what}", remedy)
            waits_for = "the run's Job makes the Pod" if pod is None else waits(status(pod))
            if waits_for != reported and waited_s > _UNSEEN_S:
                reported = waits_for
                notify(f"waiting for the run's Pod: {waits_for}")
    except ApiError as e:
        raise place.refused(e, "watch pods") from None
    raise ClusterError(
        "the command cannot run in the cluster: the command has not begun", "look at the events of the run's Pod"
    )


class FollowCancelled(KeyboardInterrupt):  # not an error, so its name does not end so
    """Ctrl-C after the command has already been asked to end."""


def follow(place: RunJob, pod: Json, log: LogReader, *, ends: bool) -> Json:
    """Shows the log of a command until its end, and returns its Pod as it is then.

    Args:
        place: the run in the cluster.
        pod: the command's Pod.
        log: the reader of its log.
        ends: whether Ctrl-C asks the command to end cleanly; otherwise it ends this process only.

    Raises:
        ClusterError: the Pod was deleted, or the API server has not answered for minutes.
        FollowCancelled: the user pressed Ctrl-C again.
        KeyboardInterrupt: only this process is to end.
    """
    name = str(pod["metadata"]["name"])
    is_ending, refused = False, False
    while True:
        try:
            return _follow(place, name, log)
        except Terminated:
            raise
        except KeyboardInterrupt:
            if is_ending:
                raise FollowCancelled from None
            # If the command cannot be asked, a second Ctrl-C ends this process.
            if refused or not ends:
                raise
            is_ending = _ask_to_end(place, name)
            refused = not is_ending


def _ask_to_end(place: RunJob, pod: str) -> bool:
    """Asks the command to end; returns whether it was asked."""
    click.echo("asking the command in the cluster to end", err=True)
    try:
        for _ in api_streams.execute(place.api, place.namespace, pod, COMMAND, stopping()):
            pass
    except ApiError as e:
        if e.status != 404:  # it has ended by itself
            click.echo(
                f"the command cannot be asked to end: {place.refused(e, 'exec in pods')}; Ctrl-C again leaves it "
                f"running",
                err=True,
            )
        return False
    click.echo(
        "the command in the cluster has been asked to end; Ctrl-C again removes its run from the cluster", err=True
    )
    return True


def _follow(place: RunJob, pod: str, log: LogReader) -> Json:
    unheard_since: float | None = None
    lost_since: float | None = None
    is_refused = False
    while True:
        whole = False
        log.reconnected()
        try:
            for text in api_streams.log(place.api, place.namespace, pod, COMMAND, log.since):
                unheard_since = None
                _show(log, text)
            whole = True
        except ApiError as e:
            if e.status == 403 and not is_refused:
                is_refused = True
                click.echo(f"its log cannot be shown: {place.refused(e, 'read the log')}", err=True)
            whole = e.status == 403
        try:
            now = place.api.call("GET", place.path("pods", pod))
        except ApiError as e:
            if e.status == 404:
                place.delete(whole=True)
                what = f"the Pod of {place.run} was deleted, and its run directory with it"
                raise ClusterError(what, "another user or process deleted it") from None
            limit_s = _UNKNOWN_S if e.status == UNKNOWN else _UNREACHABLE_S
            # Not since the last answer: a log may have been silent for a minute, during which there were no calls.
            unheard_since = unheard_since or time.monotonic()
            if e.status not in AGAIN or time.monotonic() - unheard_since > limit_s:
                lost, goes_on = place.refused(e, "read pods"), f"the run continues in the cluster: {place.fetching}"
                raise ClusterError(lost.what, f"{lost.remedy}; {goes_on}" if lost.remedy else goes_on) from None
            time.sleep(_PAUSE_S)
            continue
        heard, unheard_since = time.monotonic(), None
        # The node reports the ends of a deleted Pod's containers only when all of them have ended.
        if whole and (has_ended(now) or now["metadata"].get("deletionTimestamp")):
            return now
        state = status(now)
        lost_since = lost_since or heard if state.state == "lost" else None
        if not has_ended(now) and (
            now["status"].get("phase") == "Failed" or (lost_since and heard - lost_since > GRACE_S + _LATE_S)
        ):
            place.delete(whole=True)
            raise ClusterError(f"the run in the cluster is lost: {state.detail}")
        if whole or has_ended(now):
            # The node reports the end of a container a moment after its log ends.
            time.sleep(_UNHEARD_S if is_refused else _PAUSE_S)


def _show(log: LogReader, text: str) -> None:
    shown = log.line(text)
    if shown is not None:
        # The reader of this process's output may have ended: the run is fetched all the same.
        with contextlib.suppress(BrokenPipeError):
            click.echo(shown, err=not log.is_output)
