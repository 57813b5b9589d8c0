"""Whether a run can go on in its cluster, and what to say of what it leaves there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydra.kubernetes import api_errors
from hydra.kubernetes.pods import RunObjects


class RunHealth:
    """How a run stands.

    Attributes:
        fatal: why nothing more can be launched, and what to try; ("", "") while it can.
    """

    def __init__(self, family: RunObjects) -> None:
        self.fatal = ("", "")
        self._family = family
        self._removed = False
        self._unknown = False

    def refusal(self, message: Mapping[str, Any], doing: str) -> api_errors.ApiFailure:
        """Why the API server did not do what it was asked, by the driver's message."""
        status, reason, said = message["status"], message["reason"], message["message"]
        return api_errors.api_failure(status, reason, said, doing=doing, namespace=self._family.namespace)

    def owner_gone(self) -> None:
        """The Job is not there to which everything belongs."""
        self._removed = True
        self.fatal = (
            f"the run was removed from namespace {self._family.namespace}: by hydra kill, with the namespace, "
            "or because its keeper did not reach this machine for 20 s",
            "begin again with --resume",
        )

    def refused(self, refusal: api_errors.ApiFailure, *, making: bool) -> None:
        """Takes note of a refusal, which may be the end of all: of something that was to be made, or of a question."""
        if refusal.kind in ("terminating", "namespace"):
            self._removed = True
            self.fatal = (refusal.what, refusal.remedy)
        elif making and refusal.kind == "credentials":
            # The driver has read them anew for a minute.
            self._unknown = True
            self.fatal = (
                refusal.what,
                f"{refusal.remedy}, and go on with --resume; what is there of the run {self._goes}",
            )

    def left(self, stopped: Mapping[str, Any]) -> str:
        """What to say of what the removal has left, by the driver's last word; "" if nothing or if it has been said."""
        count, run, lab = stopped["left"], self._family.run, self._family.namespace
        if count >= 0:
            # What somebody else has removed he waits for himself, or the cluster does.
            pods = "1 Pod is" if count == 1 else f"{count} Pods are"
            there = count and not self._removed
            return f"{pods} still in namespace {lab}; see hydra ps, and hydra kill {run}" if there else ""
        refused = self.refusal(stopped, "delete what belongs to the run")
        return "" if self._unknown and refused.kind == "credentials" else f"{refused.what}; it {self._goes}"

    @property
    def _goes(self) -> str:
        return f"goes by itself as its keeper ends: hydra ps tells, hydra kill {self._family.run} removes it at once"
