"""Stores reports and comparisons in the user's cache; each is made once, until its runs change."""

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
from hydra.serve.overview import code, stamp
from hydra.serve.page_worker import ROOM, command
from hydra.store.run_folders import write_whole

_MOST: Final = 200
"""The maximum number of stored pages."""
_NONCE: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page, and the nonce that its scripts carry."""

    html: str
    nonce: str


class PageCache:
    """Makes pages, one at a time, and stores them.

    Args:
        folder: the folder of the cache; it is made if it does not exist.

    Raises:
        UsageError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._one: Final = threading.Lock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as e:
            raise UsageError(f"cannot write {folder}: {e.strerror or e}", "set XDG_CACHE_HOME") from e

    def page(self, kind: str, runs: Sequence[Path]) -> CachedPage:
        """The page of these runs in their current state; it is made if it is not stored.

        Raises:
            UsageError: these runs have no such page.
            HydraError: the page cannot be made.
        """
        place, state = _names(kind, runs)
        if (found := self._kept(place, state)) is not None:
            return found
        with self._one:
            # Another thread may have made the page meanwhile.
            if (found := self._kept(place, state)) is not None:
                return found
            for earlier in self.folder.glob(f"{place}-*.html"):
                earlier.unlink(missing_ok=True)
            nonce = secrets.token_hex(16)
            html = _made(command(os.getpid(), kind, self.folder, nonce, [run.absolute() for run in runs]))
            write_whole(self.folder / f"{place}-{state}-{nonce}.html", html, ROOM)
            self._forget()
            return CachedPage(html, nonce)

    def _kept(self, place: str, state: str) -> CachedPage | None:
        for file in self.folder.glob(f"{place}-{state}-*.html"):
            nonce = file.stem.rpartition("-")[2]
            if _NONCE.fullmatch(nonce):
                with contextlib.suppress(FileNotFoundError):
                    return CachedPage(file.read_text(encoding="utf-8"), nonce)
        return None

    def _forget(self) -> None:
        """Removes the oldest pages if there are more than the maximum."""
        files = sorted(self.folder.glob("*.html"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in files[_MOST:]:
            file.unlink(missing_ok=True)


def _names(kind: str, runs: Sequence[Path]) -> tuple[str, str]:
    """Two hashes: of the page's kind and runs, and of the state of these runs, Hydra's code and plotly."""
    place = sha256(kind.encode())
    for run in runs:
        place.update(b"\0" + os.fsencode(run.resolve()))
    state = sha256(f"{stamp(runs)} {code()} {version('plotly')}".encode())
    return place.hexdigest()[:16], state.hexdigest()[:16]


def _made(words: Sequence[str]) -> str:
    """The output of the program that makes a page."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        last = (lines or [f"the page could not be made (exit code {done.returncode})"])[-1]
        raise (UsageError if done.returncode == EXIT_USAGE else HydraError)(last)
    return done.stdout.decode()
