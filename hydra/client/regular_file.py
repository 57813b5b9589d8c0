"""Opening of the files that users name: scenarios, passwords, certificates, payloads."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def opened(path: str | Path) -> BinaryIO:
    """Opens a regular file to read.

    Nothing else will do: Hydra reads a file again for each of its uses, which finds a pipe empty, and opening a pipe
    would wait for its other end.

    Raises:
        OSError: the file cannot be opened, or it is a pipe or a device.
    """
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file
