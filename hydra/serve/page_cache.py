"""The reports and comparisons that were made, in the user's cache: each once, until its runs change."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

from hydra.errors import EXIT_USAGE, HydraError, UsageError
from hydra.serve.fingerprint import code, stamp
from hydra.serve.page_worker import command

_MOST: Final = 200
"""Pages that are kept."""
_END_S: Final = 10.0
_NONCE: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Made:
    """A page, and what its scripts carry."""

    html: str
    nonce: str


class Pages:
    """Makes pages and keeps them; one is made at a time.

    Args:
        folder: of the cache; it is made if there is none.

    Raises:
        UsageError: it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._one: Final = threading.Lock()
        self._child_changes: Final = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._ends = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as e:
            raise UsageError(f"cannot write {folder}: {e.strerror or e}", "set XDG_CACHE_HOME") from e

    def page(self, kind: str, runs: Sequence[Path]) -> Made:
        """A page of these runs as they are now, made if that was not done before.

        Raises:
            UsageError: these runs have no such page.
            HydraError: it cannot be made.
        """
        place, state = _names(kind, runs)
        if (found := self._kept(place, state)) is not None:
            return found
        with self._one:
            # Somebody else may have asked for it meanwhile.
            if (found := self._kept(place, state)) is not None:
                return found
            for earlier in self.folder.glob(f"{place}-*.html"):
                earlier.unlink(missing_ok=True)
            nonce = secrets.token_hex(16)
            file = self.folder / f"{place}-{state}-{nonce}.html"
            self._make(command(os.getpid(), kind, file, nonce, [run.absolute() for run in runs]))
            self._forget()
            return Made(file.read_text(encoding="utf-8"), nonce)

    def close(self) -> None:
        """Ends what is being made; nothing is made any more."""
        with self._child_changes:
            self._ends = True
            child = self._child
        if child is not None:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_END_S)
            child.kill()

    def _kept(self, place: str, state: str) -> Made | None:
        for file in self.folder.glob(f"{place}-{state}-*.html"):
            nonce = file.stem.rpartition("-")[2]
            if _NONCE.fullmatch(nonce):
                with contextlib.suppress(FileNotFoundError):
                    return Made(file.read_text(encoding="utf-8"), nonce)
        return None

    def _make(self, words: Sequence[str]) -> None:
        with self._child_changes:
            if self._ends:
                raise HydraError("the server ends")
            # A session of its own: Ctrl-C in the terminal is the server's, which tells this process once.
            self._child = child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        with child:
            _, said = child.communicate()
        with self._child_changes:
            self._child = None
        if child.returncode != 0:
            last = (said.strip().splitlines() or [f"the page could not be made (exit code {child.returncode})"])[-1]
            raise (UsageError if child.returncode == EXIT_USAGE else HydraError)(last)

    def _forget(self) -> None:
        """Removes the pages that were made first, if there are many."""
        files = sorted(self.folder.glob("*.html"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in files[_MOST:]:
            file.unlink(missing_ok=True)


def _names(kind: str, runs: Sequence[Path]) -> tuple[str, str]:
    """What a page is of, and the state of that: its runs, and the versions of what makes it."""
    place = sha256(kind.encode())
    for run in runs:
        place.update(b"\0" + os.fsencode(run.resolve()))
    state = sha256(f"{stamp(runs)} {code()} {version('plotly')}".encode())
    return place.hexdigest()[:16], state.hexdigest()[:16]
