"""Every exception that Hydra raises on purpose, each with its exit code and its remedy."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable

Key = tuple[str | int, ...]
"""The path of a key in a file."""

EXIT_GOOD = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_INTERRUPTED = 130


class HydraError(Exception):
    """Something the user has to know.

    ``what`` says what is wrong and where; ``remedy`` says what to try. The command line prints both on
    one line and exits with ``exit_code``.
    """

    exit_code = EXIT_FAILED

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


class Terminated(KeyboardInterrupt):  # it is no error
    """SIGTERM, or a closed terminal: whoever runs this command wants this process to end, and no more than that.

    A run on this machine ends with it, as by Ctrl-C; one that goes on elsewhere is not touched.
    """


class UsageError(HydraError):
    """A flag, a file or a value that the user gave cannot be used."""

    exit_code = EXIT_USAGE


class ConfigError(UsageError):
    """A configuration or scenario file is missing, malformed or impossible."""


class RefusedKeyError(ConfigError):
    """A key cannot have its value: a file's, or one that replaces it.

    Args:
        label: the file; "": it is not known any more.
        keys: the dotted key, by its own name and by the one that its user wrote; "" is the whole file.
        reason: what is wrong with it.
        remedy: what to try.

    Attributes:
        causes: where a whole table is refused, the keys in it but for whose replacement it would not have been.
    """

    def __init__(self, label: str, keys: tuple[str, ...], reason: str, remedy: str = "") -> None:
        super().__init__(": ".join(filter(None, (label, keys[-1], reason))), remedy)
        self.keys, self.reason = keys, reason
        self.causes: tuple[str, ...] = ()

    def said_of(self, flag: str) -> ConfigError:
        """The same, said of the flag that has replaced the key."""
        return ConfigError(f"{flag}: {self.reason}", self.remedy)


class PlacementError(UsageError):
    """Some group of the scenario fits on no agent; the text names the constraint or the resource."""


class DoesNotFitError(HydraError):
    """A client count, or what servers need, is more than this machine has; a row is skipped with the reason."""

    exit_code = EXIT_INCOMPLETE


class MissingDependencyError(UsageError):
    """A program or package that this command needs is not installed."""


class ClusterError(HydraError):
    """The cluster could not launch, or lost, what was asked of it."""


class ServerError(HydraError):
    """A server of the system under test did not come up, went away, or refused."""


class ReadinessError(HydraError):
    """Clients did not become ready before the deadline; the text names who is missing."""


class RunDirectoryError(UsageError):
    """The run directory cannot be used: it exists, is not writable, or holds no run."""


class UnreadableRunError(RunDirectoryError):
    """A run is there and cannot be read; ``brief`` says why for a reader who knows which run it is."""

    def __init__(self, what: str, brief: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.brief = brief


class StepError(HydraError):
    """One step cannot be measured; its row is kept with this reason and the run goes on."""


class RowSkippedError(HydraError):
    """The user wants no more of the row that is being measured; the run goes on with the next one."""


class RefusedError(Exception):
    """A key (by its path) is wrong; whoever reads the file names it.

    Args:
        key: its path; () is the whole file.
        what: what is wrong with it.
        remedy: what to try.
    """

    def __init__(self, key: Iterable[str | int], what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.key, self.what, self.remedy = tuple(key), what, remedy

    @property
    def dotted(self) -> str:
        """The key with dots between its parts."""
        return ".".join(map(str, self.key))


def shown(value: object) -> str:
    """A wrong value in a text. What stands in a table or a list is not repeated: it may be a secret."""
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else reprlib.repr(value)
