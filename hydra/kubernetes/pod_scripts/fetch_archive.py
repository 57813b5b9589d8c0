"""Fetches the archive for agents and unpacks it, as the init container of a group whose image has no Hydra.

Environment: HYDRA_ARCHIVE_URL, which is a secret and is never printed, and HYDRA_ARCHIVE_SHA256. The argument, if there
is one, is the folder to unpack into instead of /hydra. If it fails, it prints one line on stderr and exits with 78.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

WITHIN_S = 60.0
SILENCE_S = 10.0
PAUSE_S = 1.0
PIECE = 1 << 18
REFUSALS = (400, 401, 403, 404, 410)
"""Status codes that another try does not change."""
DISK = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOENT, errno.ENOSPC, errno.EPERM, errno.EROFS)


class FetchError(Exception):
    """The archive cannot be installed; the text gives the reason and a remedy."""


def download(url: str, file: Path, deadline: float) -> str:
    """Writes what is at the URL into the file and returns its digest."""
    digest = hashlib.sha256()
    timeout = max(0.1, min(SILENCE_S, deadline - time.monotonic()))
    with urllib.request.urlopen(url, timeout=timeout) as answer, file.open("wb") as out:  # noqa: S310  # the run's own
        length, size = answer.headers.get("Content-Length"), 0
        while True:
            piece = answer.read(PIECE)
            if not piece:
                break
            digest.update(piece)
            out.write(piece)
            size += len(piece)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{size} bytes arrived in time, of {length or 'an unknown number'}")
    if length is not None and size != int(length):
        raise ConnectionError(f"cut off after {size} of {length} bytes")
    return digest.hexdigest()


def reason(error: Exception) -> str:
    """What went wrong, in a text that never contains the URL."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers {error.code} {http.client.responses.get(error.code, '')}".rstrip()
    if isinstance(error, urllib.error.URLError):
        return reason(error.reason) if isinstance(error.reason, Exception) else "its URL cannot be used"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"no archive comes ({type(error).__name__})"


def is_final(error: Exception) -> bool:
    """Whether another try would fail too."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in REFUSALS
    if isinstance(error, urllib.error.URLError):
        return not isinstance(error.reason, OSError)
    if isinstance(error, OSError):
        return error.errno in DISK
    return isinstance(error, (ValueError, http.client.InvalidURL))


def fetched(url: str, file: Path) -> str:
    """Downloads until it succeeds or the time is over, and returns the digest."""
    try:
        host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2] or "nowhere"
    except ValueError:
        host = "nowhere"
    begun, tries = time.monotonic(), 0
    while True:
        tries += 1
        try:
            return download(url, file, begun + WITHIN_S)
        except (OSError, ValueError, http.client.HTTPException) as error:
            passed = time.monotonic() - begun
            if isinstance(error, OSError) and error.errno in DISK:
                raise FetchError(
                    f"the archive cannot be kept here: {reason(error)}; is the node's disk full?"
                ) from None
            if is_final(error) or passed + PAUSE_S > WITHIN_S:
                raise FetchError(
                    f"the archive cannot be fetched from {host}: {reason(error)} "
                    f"(tries: {tries}, within {passed:.0f} s); Pods must reach that address: "
                    "--advertise names another one of the controller, --artifact a copy elsewhere"
                ) from None
        time.sleep(PAUSE_S)


def install(url: str, expected: str, folder: Path) -> None:
    """Fetches the archive, compares its digest, and unpacks it into the folder."""
    if not url or not expected:
        raise FetchError("HYDRA_ARCHIVE_URL and HYDRA_ARCHIVE_SHA256 are not set: was the run's Secret deleted?")
    file = folder / ".archive"
    found = fetched(url, file)
    if found != expected:
        raise FetchError(
            f"another archive is served (sha256 {found[:12]}) than the run needs ({expected[:12]}): "
            "make the copy that you serve again (hydra artifact)"
        )
    try:
        with tarfile.open(str(file)) as tar:
            # Old Pythons have no filters; later ones warn if a caller names no filter.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(str(folder))  # noqa: S202  # the digest proves the origin
        file.unlink()
    except (OSError, tarfile.TarError) as error:
        raise FetchError(f"the archive cannot be unpacked in {folder}: {error}; is the node's disk full?") from None


def main() -> int:
    """Exit code 0, or 78 after a line on stderr."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/hydra")
    try:
        install(os.environ.get("HYDRA_ARCHIVE_URL", ""), os.environ.get("HYDRA_ARCHIVE_SHA256", ""), folder)
    except FetchError as failure:
        sys.stderr.write(f"hydra: {failure}\n")
        return 78
    return 0


if __name__ == "__main__":
    sys.exit(main())
