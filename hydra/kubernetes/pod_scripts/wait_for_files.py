"""An init container of a command in the cluster: lets it begin once its files are there, and ends where none come.

Its arguments are one of the files, for how many seconds it waits, and its exit code where that is too late. The files
are of a Secret that is made behind the Job: whoever was to make it may have been killed in between.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path


def main() -> int:
    """The exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # without it the first process of a container ignores it
    file, within_s = Path(sys.argv[1]), float(sys.argv[2])
    deadline = time.monotonic() + within_s
    while not file.exists():
        if time.monotonic() > deadline:
            sys.stderr.write(f"its files have not come within {within_s:g} s: whoever started it has gone\n")
            return int(sys.argv[3])
        time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
