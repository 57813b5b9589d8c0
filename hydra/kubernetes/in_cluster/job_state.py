"""The state of a command by its Pod: whether it has begun, what prevents that, its log, its end. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hydra.kubernetes.api_errors import api_failure, not_started
from hydra.kubernetes.in_cluster.job_objects import COMMAND, KEEPING, RUNS
from hydra.kubernetes.nodes import Json
from hydra.kubernetes.pod_status import status

BEGINS_WITHIN_S: Final = 300.0
"""How long a command may take to begin: an image of some hundred MB may have to be pulled."""
_NEVER_BEGUN: Final = ("StartError", "ContainerCannotRun")
"""Reasons of a container whose first process could not be started."""
_WAIT_S: Final = {"node": 60.0, "image": 30.0}
"""How long a Pod may wait for a node or an image once the cluster reports a problem, in s."""


def has_begun(pod: Json) -> bool:
    """Whether the command runs, or has run."""
    state = _state(pod, COMMAND)
    ended = state.get("terminated")
    return "running" in state or (ended is not None and ended.get("reason") not in _NEVER_BEGUN)


def is_kept(pod: Json) -> bool:
    """Whether the run directory can be fetched now or soon."""
    return "terminated" not in _state(pod, KEEPING)


def kept_s(pod: Json) -> int:
    """How long the run directory is kept after the command's end, in s."""
    keeping = next(each for each in pod["spec"]["containers"] if each["name"] == KEEPING)
    return int(keeping["command"][-1])


def has_ended(pod: Json) -> bool:
    """Whether the command has ended."""
    return "terminated" in _state(pod, COMMAND)


def why_not_begun(pod: Json | None, events: Sequence[Json], waited_s: float, namespace: str) -> tuple[str, str]:
    """What prevents a command from beginning, and what to try; ("", "") while it may still begin.

    Args:
        pod: the command's Pod; None if there is none yet.
        events: warnings about the Job and the Pod.
        waited_s: the time since the Job was created, in s.
        namespace: the namespace of Job and Pod.
    """
    late = waited_s > BEGINS_WITHIN_S
    if pod is None:
        refused = next((e for e in reversed(events) if e.get("reason") == "FailedCreate"), None)
        if refused is not None:
            message = str(refused.get("message", "")).partition(": ")[2]
            failure = api_failure(403, "Forbidden", message, doing="create pods", namespace=namespace)
            return failure.what, failure.remedy
        return ("the run's Job has made no Pod", "look at the cluster's controller manager") if late else ("", "")
    found = status(pod)
    if found.hopeless or found.state in ("failed", "lost", "killed"):
        return found.detail, ""
    if found.detail and waited_s > _WAIT_S.get(found.waits_for, BEGINS_WITHIN_S):
        if "Insufficient" in found.detail:
            what = found.detail.partition("; ")[0]
            return what, "add nodes, end other Pods, or lower controller_cpus and controller_mem in [kubernetes]"
        return found.detail, ""
    return (
        (not_started(events) or found.detail or "the command has not begun", "look at the events of the run's Pod")
        if late
        else ("", "")
    )


def end_reason(pod: Json) -> tuple[str, str]:
    """What ended a command that left no exit code of its own, and what to try."""
    if _state(pod, COMMAND).get("terminated", {}).get("reason") == "OOMKilled":
        return "the command needed more memory than its Pod may have", "raise controller_mem in [kubernetes]"
    # The text after the colon is the command's last lines, which its log has shown.
    return status(pod).detail.partition(":")[0], ""


def _state(pod: Json, container: str) -> Json:
    found = pod.get("status", {}).get("containerStatuses", ())
    return next((each.get("state", {}) for each in found if each["name"] == container), {})


OUTPUT: Final = "=== output ==="
"""The line before the command's standard output, which ``pod_scripts/job_command.py`` writes to the log."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")


@dataclass(slots=True)
class LogReader:
    """Reads a log with timestamps; after a broken connection it continues from the last timestamp.

    Args:
        run: the run's name.
        out: the run directory on this machine, which replaces the Pod's in the text.

    Attributes:
        since: the time of the last whole line, as the API takes it; "" before the first.
        is_output: whether the lines now are the command's standard output.
    """

    run: str
    out: str
    since: str = ""
    is_output: bool = False
    _seen: int = 0
    _again: int = field(default=0, repr=False)

    def reconnected(self) -> None:
        """Records that the log is read again from ``since`` on."""
        self._again = self._seen

    def line(self, text: str) -> str | None:
        """The text to show for a line; None if the line is not shown."""
        time, _, message = text.partition(" ")
        if not _TIME.match(time):
            return text  # a message of the node, which has no time
        if time < self.since:
            return None
        if time == self.since and self._again:
            # Several lines can have the same time: those that were shown before are skipped.
            self._again -= 1
            return None
        self._seen = self._seen + 1 if time == self.since else 1
        self.since = time
        self._again = 0
        if message == OUTPUT and not self.is_output:
            self.is_output = True
            return None
        return message.replace(f"{RUNS}/{self.run}", self.out)
