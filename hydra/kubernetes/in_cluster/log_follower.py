"""Follows a command in the cluster: its beginning, its log, its end."""

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
"""After so long without a beginning, events are looked at."""
_AWAY_S: Final = 300.0
"""How long the API server may be away, from the first question that it does not answer."""
_UNKNOWN_S: Final = 60.0
"""How long it may not know who asks: whoever renews a token by himself has done so by then."""
_LATE_S: Final = 10.0
"""How long after its grace a Pod that is deleted may still be there; then its node does not answer."""
_PAUSE_S: Final = 0.5
_UNHEARD_S: Final = 2.0
"""Between two looks at a command whose log nobody may read."""


def await_begin(place: RunJob, tell: Callable[[str], None]) -> Json:
    """The command's Pod once the command has begun.

    Args:
        place: where it is to run.
        tell: takes a line about what it waits for, where that takes seconds.

    Raises:
        ClusterError: it does not begin; the text says why.
    """
    began, said = time.monotonic(), ""
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
            waits_for = "its Job makes it" if pod is None else waits(status(pod))
            if waits_for != said and waited_s > _UNSEEN_S:
                said = waits_for
                tell(f"waiting for its Pod: {waits_for}")
    except ApiError as e:
        raise place.refused(e, "watch pods") from None
    raise ClusterError("the command cannot run in the cluster: it has not begun", "look at its Pod's events")


class FollowCancelled(KeyboardInterrupt):  # it is no error
    """Ctrl-C of a command that has been asked to end already."""


def follow(place: RunJob, pod: Json, log: LogReader, *, ends: bool) -> Json:
    """Shows the log of a command until its end, and returns its Pod then.

    Args:
        place: where it runs.
        pod: its own.
        log: what has been shown of it.
        ends: whether Ctrl-C asks the command to end cleanly; otherwise it ends this process only.

    Raises:
        ClusterError: its Pod has gone, or the API server has been away for minutes.
        FollowCancelled: Ctrl-C again.
        KeyboardInterrupt: this process is to end, and nothing else.
    """
    name = str(pod["metadata"]["name"])
    asked, refused = False, False
    while True:
        try:
            return _follow(place, name, log)
        except Terminated:
            raise
        except KeyboardInterrupt:
            if asked:
                raise FollowCancelled from None
            # Where it cannot be asked, nobody shall have to kill this process.
            if refused or not ends:
                raise
            asked = _ask_to_end(place, name)
            refused = not asked


def _ask_to_end(place: RunJob, pod: str) -> bool:
    """Whether it has been asked."""
    click.echo("asking the command in the cluster to end", err=True)
    try:
        for _ in api_streams.execute(place.api, place.namespace, pod, COMMAND, stopping()):
            pass
    except ApiError as e:
        if e.status != 404:  # it has ended by itself
            click.echo(
                f"it cannot be asked: {place.refused(e, 'exec in pods')}; Ctrl-C again leaves it alone", err=True
            )
        return False
    click.echo("it has been asked; Ctrl-C again removes its run from the cluster", err=True)
    return True


def _follow(place: RunJob, pod: str, log: LogReader) -> Json:
    unheard_since: float | None = None
    lost_since: float | None = None
    told = False
    while True:
        whole = False
        log.reconnected()
        try:
            for text in api_streams.log(place.api, place.namespace, pod, COMMAND, log.since):
                unheard_since = None
                _show(log, text)
            whole = True
        except ApiError as e:
            if e.status == 403 and not told:
                told = True
                click.echo(f"its log cannot be shown: {place.refused(e, 'read the log')}", err=True)
            whole = e.status == 403
        try:
            now = place.api.call("GET", place.path("pods", pod))
        except ApiError as e:
            if e.status == 404:
                place.delete(whole=True)
                what = f"the Pod of {place.run} has gone, and its run directory with it"
                raise ClusterError(what, "it was deleted by somebody else") from None
            away_s = _UNKNOWN_S if e.status == UNKNOWN else _AWAY_S
            # Not since the last answer: a log may have been silent for a minute, and nothing was asked.
            unheard_since = unheard_since or time.monotonic()
            if e.status not in AGAIN or time.monotonic() - unheard_since > away_s:
                lost, goes_on = place.refused(e, "read pods"), f"the run goes on in the cluster: {place.fetching}"
                raise ClusterError(lost.what, f"{lost.remedy}; {goes_on}" if lost.remedy else goes_on) from None
            time.sleep(_PAUSE_S)
            continue
        heard, unheard_since = time.monotonic(), None
        # Of a Pod that is deleted the node tells its containers' ends only when all have ended.
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
            # The node tells of an end a moment after the log's.
            time.sleep(_UNHEARD_S if told else _PAUSE_S)


def _show(log: LogReader, text: str) -> None:
    shown = log.line(text)
    if shown is not None:
        # Whoever read it may have gone: the run is fetched all the same.
        with contextlib.suppress(BrokenPipeError):
            click.echo(shown, err=not log.is_output)
