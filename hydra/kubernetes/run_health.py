"""Whether a run can continue in its cluster, and the message about what it leaves there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydra.events.value_formatting import counted
from hydra.kubernetes import api_errors
from hydra.kubernetes.pods import RunObjects


class RunHealth:
    """Whether a run can continue.

    Attributes:
        fatal: why nothing more can be launched, and what to try; ("", "") while it can.
    """

    def __init__(self, family: RunObjects) -> None:
        self.fatal = ("", "")
        self._family = family
        self._removed = False
        self._unknown = False

    def refusal(self, message: Mapping[str, Any], doing: str) -> api_errors.ApiFailure:
        """Why the API server did not carry out a request, by the driver's message."""
        status, reason, text = message["status"], message["reason"], message["message"]
        return api_errors.api_failure(status, reason, text, doing=doing, namespace=self._family.namespace)

    def lose_owner(self) -> None:
        """Records that the Job that owns the run's objects does not exist any more."""
        self._removed = True
        self.fatal = (
            f"the run was removed from namespace {self._family.namespace}: by hydra kill, with the namespace, "
            "or because the Pod that watches this machine did not reach it for 20 s",
            "begin again with --resume",
        )

    def refused(self, refusal: api_errors.ApiFailure, *, making: bool) -> None:
        """Records a failure, which may end the run; ``making`` is whether the request was to create an object."""
        if refusal.kind in ("terminating", "namespace"):
            self._removed = True
            self.fatal = (refusal.what, refusal.remedy)
        elif making and refusal.kind == "credentials":
            # The driver has read the credentials again and again for a minute.
            self._unknown = True
            self.fatal = (
                refusal.what,
                f"{refusal.remedy}, and continue with --resume; {self._goes}",
            )

    def left(self, stopped: Mapping[str, Any]) -> str:
        """The message about what the removal has left, by the driver's last message; "" if there is none to show."""
        count, run, lab = stopped["left"], self._family.run, self._family.namespace
        if count >= 0:
            # If the run was removed by another process, that process or the cluster waits for the Pods.
            pods = counted(count, "Pod is", "Pods are")
            remaining = count and not self._removed
            return f"{pods} still in namespace {lab}; see hydra ps, and hydra kill {run}" if remaining else ""
        refused = self.refusal(stopped, "delete what belongs to the run")
        return "" if self._unknown and refused.kind == "credentials" else f"{refused.what}; {self._goes}"

    @property
    def _goes(self) -> str:
        return (
            "the cluster removes the run when the Pod that watches this machine ends: see "
            f"hydra ps; hydra kill {self._family.run} removes the run now"
        )
