"""The script of the init containers of a command in the cluster: waits until the command's files exist.

The script's arguments are one of the files, how many seconds to wait, and the exit code if the file does not appear.
The files are those of a Secret that Hydra creates after the Job: the creating process may have been killed in between.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path


def main() -> int:
    """The exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the first process of a container ignores it otherwise
    file, within_s = Path(sys.argv[1]), float(sys.argv[2])
    deadline = time.monotonic() + within_s
    while not file.exists():
        if time.monotonic() > deadline:
            sys.stderr.write(
                f"the group's files did not appear within {within_s:g} s: the process that started it has ended\n"
            )
            return int(sys.argv[3])
        time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
