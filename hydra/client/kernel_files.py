"""Reads files of the kernel for a record of the machine: those that match patterns, each up to a number of bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from glob import has_magic, iglob
from pathlib import Path
from typing import Final

from hydra.wire.messages import MAX_TEXT_BYTES, KernelTexts, Look

_FOLDERS: Final = ("/proc/", "/sys/")


def is_readable(pattern: str) -> bool:
    """Whether a pattern names files of the kernel only."""
    return pattern.startswith(_FOLDERS) and ".." not in pattern.split("/")


def read_texts(
    patterns: Iterable[str], most_bytes: int, root: Path = Path("/"), skipped: Container[str] = ()
) -> dict[str, str]:
    """The beginning of each file that matches a pattern, by its path; "" for a file that cannot be read.

    Args:
        patterns: paths below ``/proc`` and ``/sys``, in which ``*``, ``?`` and ``[…]`` stand for a part of a name;
            others match nothing.
        most_bytes: the most bytes of each file.
        root: the folder that contains ``proc`` and ``sys``.
        skipped: paths that are not read.
    """
    folder = str(root).rstrip("/")
    found: dict[str, str] = {}
    for path in _matches(patterns, root):
        if path not in skipped and path not in found and (text := _beginning(folder + path, most_bytes)) is not None:
            found[path] = text
    return found


def _matches(patterns: Iterable[str], root: Path) -> Iterator[str]:
    """The paths that match; a path without a pattern's signs stands for itself."""
    for pattern in filter(is_readable, patterns):
        # (Paths of thousands of processes would take longer than names.)
        names = sorted(iglob(pattern[1:], root_dir=root)) if has_magic(pattern) else [pattern[1:]]  # noqa: PTH207
        yield from (f"/{name}" for name in names)


def _beginning(path: str, most_bytes: int) -> str | None:
    """The text at the beginning of a file; None if there is no such file, because a process has ended for example."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return None
    except OSError:
        return ""
    try:
        return os.read(file, most_bytes).decode(errors="replace")
    except ProcessLookupError:
        return None
    except OSError:
        # Drivers reject reading what they do not know, such as the speed of a link that is down.
        return ""
    finally:
        os.close(file)


def texts_for(look: Look, ids: Sequence[int]) -> KernelTexts:
    """The answer to ``look``; files that do not fit into a message are left out.

    Args:
        look: the command.
        ids: the clients of the sender's group.
    """
    time_ns = time.monotonic_ns()
    texts: dict[str, str] = {}
    left, complete = MAX_TEXT_BYTES, True
    for path in sorted(set(_matches(look.patterns, Path("/")))):
        if (text := _beginning(path, look.most_bytes)) is None:
            continue
        left -= len(path) + len(text.encode())
        if left < 0:
            complete = False
            break
        texts[path] = text
    return KernelTexts(ids=list(ids), seq=1, number=look.number, time_ns=time_ns, texts=texts, complete=complete)
