"""The exceptions that Hydra raises on purpose, with their exit codes and remedies."""

from __future__ import annotations

import re
import reprlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Final

Key = tuple[str | int, ...]
"""The path of a key in a file."""

UNKNOWN_KEY: Final = "unknown key"
"""What is wrong with a key that a table does not have."""

_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")

EXIT_GOOD: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INCOMPLETE: Final = 3
EXIT_INTERRUPTED: Final = 130
EXIT_UNREAD: Final = 141
INTERRUPTED_EARLY: Final = "interrupted before the first step ended: nothing was measured"
"""What a user reads about an interrupt before a run has a directory."""
EXIT_CODES: Final[Mapping[int, str]] = {
    EXIT_GOOD: "good",
    EXIT_FAILED: "the run failed",
    EXIT_USAGE: "usage or configuration",
    EXIT_INCOMPLETE: "finished, but a row failed or was skipped; a search found that no rate holds, or found no "
    "answer; subscribers died or became silent although no event asked for it; a `--fail-if` held; a row is not clean "
    "and `--strict` was given; `compare` had nothing to compare; or the answer is not yes: `slo` (does not hold, or "
    "unknown), `check` (does not fit)",
    EXIT_INTERRUPTED: "interrupted",
    EXIT_UNREAD: "the program that read the output, such as `head`, ended first: nothing more was printed",
}
"""The meaning of each exit code, in Markdown; ``scripts/doc_tables.py`` writes it into README."""


def without_number(text: str) -> str:
    """A text without what Python writes before the kernel's words for an error: ``[Errno 2]``."""
    return _NUMBER.sub("", text)


class HydraError(Exception):
    """An error that the user has to know.

    ``what`` describes the problem and its place; ``remedy`` describes what to try. The command line prints both on
    one line and exits with ``exit_code``.
    """

    exit_code = EXIT_FAILED

    def __init__(self, what: str, remedy: str = "") -> None:
        what = without_number(what)
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


class Terminated(KeyboardInterrupt):  # the name has no "Error", because this is none
    """SIGTERM, SIGQUIT, or a closed terminal: the user wants this process to end, and nothing else.

    A run on this machine ends with the process, as with Ctrl-C; a run on a cluster continues.
    """


class UsageError(HydraError):
    """A flag, a file or a value that the user gave cannot be used."""

    exit_code = EXIT_USAGE


class ConfigError(UsageError):
    """A configuration or scenario file is missing, malformed or invalid."""


class RefusedKeyError(ConfigError):
    """A key cannot have the value that a file or a flag gives it.

    Args:
        label: the file; "" if it is unknown.
        key: the dotted key; "" is the whole file.
        reason: what is wrong with the value.
        remedy: what to try.
        causes: the replaced keys that gave the rejected values.
    """

    def __init__(self, label: str, key: str, reason: str, remedy: str = "", causes: tuple[str, ...] = ()) -> None:
        super().__init__(": ".join(filter(None, (label, key, reason))), remedy)
        self.key, self.reason, self.causes = key, reason, causes

    def naming(self, flag: str, flags: Mapping[str, str]) -> ConfigError:
        """The same error, which names the flag that replaced the key, and the flags of other keys.

        Args:
            flag: the flag that replaced the key.
            flags: the flag of each key, by the last part of the key.
        """

        def with_flag(name: re.Match[str]) -> str:
            other = flags.get(name[0], flag)
            return name[0] if flag == other else other

        if self.reason == UNKNOWN_KEY:  # the remedy lists keys
            flags = {}
        texts = [re.sub(r"(?<![\w.'\"/-])\w+(?![\w'\"/]|\.\w)", with_flag, text) for text in (self.reason, self.remedy)]
        return ConfigError(f"{flag}: {texts[0]}", texts[1])


class PlacementError(UsageError):
    """A group of the scenario fits on no agent; the text names the constraint or the resource."""


class DoesNotFitError(HydraError):
    """Clients or servers need more than this machine has; the row is skipped with this reason."""

    exit_code = EXIT_INCOMPLETE


class MissingDependencyError(UsageError):
    """A program or package that this command needs is not installed."""


class ClusterError(HydraError):
    """The cluster could not launch something, or lost it."""


class ServerError(HydraError):
    """A server of the system under test did not start, disconnected, or rejected a request."""


class ReadinessError(HydraError):
    """Clients did not become ready before the deadline; the text names the missing clients."""


def pip_install(*requirements: str) -> str:
    """The command that installs packages beside this Hydra."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements])


class RunDirectoryError(UsageError):
    """The run directory cannot be used: it exists already, is not writable, or holds no run."""


class UnreadableRunError(RunDirectoryError):
    """A run exists but cannot be read; ``brief`` is the reason without the run's path."""

    def __init__(self, what: str, brief: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.brief = brief


class StepError(HydraError):
    """A step cannot be measured; its row is kept with this reason, and the run continues."""


class RowSkippedError(HydraError):
    """The user skips the row that is being measured; the run continues with the next row."""


class RefusedError(Exception):
    """A key is wrong, or its value; the code that reads the file adds the file's name.

    Args:
        key: the key's path; () is the whole file.
        what: what is wrong.
        remedy: what to try.
        others: the paths of the keys whose values are wrong together with this one, or in this table.
    """

    def __init__(self, key: Iterable[str | int], what: str, remedy: str = "", others: Iterable[Key] = ()) -> None:
        super().__init__(what)
        self.key, self.what, self.remedy, self.others = tuple(key), what, remedy, tuple(others)

    @property
    def dotted(self) -> str:
        """The key with dots between its parts."""
        return ".".join(map(str, self.key))


def shown(value: object) -> str:
    """A wrong value as text for an error. The content of a table or a list is not shown, because it may be a secret."""
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else reprlib.repr(value)
