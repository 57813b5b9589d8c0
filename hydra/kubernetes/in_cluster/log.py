"""The log of a command in the cluster, line by line, whatever happens to the connection. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from hydra.kubernetes.in_cluster.objects import RUNS

OUTPUT: Final = "=== output ==="
"""The line after which comes what the command has written to its standard output (``pod_scripts/job_command.py``)."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")


@dataclass(slots=True)
class Log:
    """Reads a log with timestamps, which may be asked for again from the last one on.

    Args:
        run: the run's name.
        out: its directory here, which the text names instead of the Pod's.

    Attributes:
        since: the time of the last whole line, as the API takes it; "" before the first.
        is_output: whether lines are of the command's standard output by now.
    """

    run: str
    out: str
    since: str = ""
    is_output: bool = False
    _seen: int = 0
    _again: int = field(default=0, repr=False)

    def reconnected(self) -> None:
        """The log is read anew, from ``since`` on."""
        self._again = self._seen

    def line(self, text: str) -> str | None:
        """What is to be shown of a line; None: nothing."""
        time, _, said = text.partition(" ")
        if not _TIME.match(time):
            return text  # the node speaks for itself
        if time < self.since:
            return None
        if time == self.since and self._again:
            # Many lines can have one time: those of it that were there before are not shown again.
            self._again -= 1
            return None
        self._seen = self._seen + 1 if time == self.since else 1
        self.since = time
        self._again = 0
        if said == OUTPUT and not self.is_output:
            self.is_output = True
            return None
        return said.replace(f"{RUNS}/{self.run}", self.out)
