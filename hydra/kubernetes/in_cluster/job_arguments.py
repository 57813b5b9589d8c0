"""The words of a command, and the files that they name, as they are in a Pod that runs it. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hydra.errors import UsageError

MASTER: Final = "k8s://in-cluster"
"""What ``--master`` is for a command that runs in a Pod of the cluster."""
RUNS: Final = "/runs"
"""Where run directories are made in the Pod."""
FILES: Final = "/etc/hydra/files"
"""Where the shipped files are in the Pod."""

_HERE_ONLY: Final = ("--master", "--engine", "--advertise", "--out", "--config")
"""Flags whose values hold on this machine only: the Pod gets its own, or none."""
_REMOTE: Final = ("--payload-file",)
"""Flags that name files of the hosts on which groups run."""
_FILE: Final = "-file"
"""How the names of other flags end that name files."""
_SET: Final = "--set"
_NUMBER: Final = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?", re.IGNORECASE)
_HOST: Final = re.compile(r"^\w+://(?:[^/@]*@)?\[?([\w.:-]*?)\]?(?::\d+)?(?:/.*)?$")
_ODD: Final = re.compile(r"[^\w.-]")


@dataclass(frozen=True, slots=True)
class Words:
    """A command in the Pod.

    Attributes:
        arguments: behind ``hydra``.
        files: the path in the Pod of each local file that it reads.
    """

    arguments: tuple[str, ...]
    files: Mapping[str, str]


def rewritten(arguments: Sequence[str], run: str, config: str, is_file: Callable[[str], bool]) -> Words:
    """The command as it runs in the Pod.

    Every word that names a file is replaced by the path of its copy: an argument, the value of a flag, or that of
    ``--set KEY=FILE``. Words without a dot and a slash are names, and numbers are numbers, whatever files there are;
    unless flag or key say by their names that it is a file.

    Args:
        arguments: as they were typed behind ``hydra``.
        run: the run's name.
        config: the cluster file that holds here.
        is_file: whether a path names a file of this machine.

    Raises:
        UsageError: a flag cannot be obeyed in the cluster.
    """
    command, *rest = arguments
    shipped = _Shipped(is_file)
    kept: list[str] = []
    positional: list[str] = []
    words = iter(rest)
    for word in words:
        flag, equals, value = word.partition("=")
        if word == "--":
            positional = [word, *map(shipped.path, words)]
        elif not word.startswith("--"):
            kept.append(shipped.path(word))
        elif flag == "--in-cluster":
            continue
        elif flag in _HERE_ONLY:
            _ = equals or next(words, "")
        elif flag == "--resume":
            raise UsageError("--resume goes on with a run of this machine", "leave out --in-cluster")
        elif flag in ("--prometheus", "--otlp", _SET, *_REMOTE):
            given = value if equals else next(words, "")
            _refuse_here(flag, given)
            kept += [flag, shipped.assigned(given) if flag == _SET else given]
        elif flag.endswith(_FILE):
            kept += [flag, shipped.path(value if equals else next(words, ""), surely=True)]
        else:
            kept.append(f"{flag}={shipped.path(value)}" if equals else word)
    own = ["--master", MASTER, "--config", shipped.named(config), "--out", f"{RUNS}/{run}"]
    return Words((command, *kept, *own, *positional), shipped.files)


def config_among(arguments: Sequence[str]) -> str:
    """The cluster file that a command names; "": none. The last one counts."""
    named = ""
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        if word == "--":
            break
        if word == "--config":
            named = following
        elif word.startswith("--config="):
            named = word.partition("=")[2]
    return named


def with_files(text: str, is_file: Callable[[str], bool], number: int) -> tuple[str, Mapping[str, str]]:
    """A scenario's text that names copies in the Pod instead of local files, and these files.

    Keys that are called ``file`` or ``…_file`` name files of the controller; ``payload_file`` is one of the
    publishers' hosts.

    Args:
        text: TOML.
        is_file: as for :func:`rewritten`.
        number: of the first of them: no two files of a command have the same.

    Returns:
        The text, and the path in the Pod of each local file.

    Raises:
        UsageError: a path is written in a way that cannot be replaced.
    """
    shipped = _Shipped(is_file, number)
    for key, path in _named_in(tomllib.loads(text)):
        if not (_names_a_file(key) and is_file(path)):
            continue
        copy = shipped.named(path)
        written = rf"""(?<![\w-])({key.rpartition(".")[2]}["']?\s*=\s*)(["']){re.escape(path)}\2"""
        text = re.sub(written, rf"\g<1>\g<2>{copy}\g<2>", text)
        if (key, path) in _named_in(tomllib.loads(text)):
            raise UsageError(f"the file of {key} cannot be shipped to the cluster", f"write it as {key} = '{path}'")
    return text, shipped.files


class _Shipped:
    def __init__(self, is_file: Callable[[str], bool], number: int = 0) -> None:
        self._is_file, self._number = is_file, number
        self.files: dict[str, str] = {}

    def path(self, word: str, *, surely: bool = False) -> str:
        """The word, or the path of the copy of the file that it names; ``surely``: it names a file if there is one."""
        looks = surely or (not _NUMBER.fullmatch(word) and ("." in word or "/" in word))
        return self.named(word) if looks and self._is_file(word) else word

    def named(self, path: str) -> str:
        """The path of a file's copy."""
        if path not in self.files:
            self.files[path] = f"{FILES}/{self._number + len(self.files)}/{_ODD.sub('_', path.rpartition('/')[2])}"
        return self.files[path]

    def assigned(self, text: str) -> str:
        """The same for KEY=VALUE."""
        key, equals, value = text.partition("=")
        plain = value.strip().strip("\"'")
        if not equals or _last(key.strip()) == "payload_file":
            return text
        path = self.path(plain, surely=_names_a_file(key.strip()))
        return text if path == plain else f"{key}={path}"


def _refuse_here(flag: str, value: str) -> None:
    """Refuses addresses that nobody means in a Pod: its own loopback."""
    if flag == "--prometheus":
        host = value.rpartition(":")[0].strip("[]") or "localhost"
        remedy = f"write {flag} 0.0.0.0:{value.rpartition(':')[2]}, and scrape the Pod hydra-…-controller"
    elif flag == "--otlp":
        host, remedy = _HOST.sub(r"\1", value), "name the receiver as Pods reach it"
    else:
        return
    if host == "localhost" or host.startswith("127.") or host == "::1":
        raise UsageError(f"{flag} {value} is the Pod itself where the command runs in the cluster", remedy)


def _named_in(table: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a table with its dotted key."""
    for name, value in table.items():
        key = f"{inside}.{name}" if inside else name
        if isinstance(value, Mapping):
            yield from _named_in(value, key)
        elif isinstance(value, str):
            yield key, value


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _names_a_file(key: str) -> bool:
    name = _last(key)
    return name == "file" or (name.endswith("_file") and name != "payload_file")
