"""Which shared library a process has really loaded, and its version."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import psutil


def loaded(pid: int, name: str) -> str:
    """The path of the one library whose file is called ``name`` something, as this process has it in memory."""
    files = {Path(m.path) for m in psutil.Process(pid).memory_maps()}
    (path,) = [f for f in files if re.match(rf"{name}[.-]", f.name) and ".so" in f.name]
    return str(path)


def libzmq_version(pid: int) -> str:
    """What the libzmq of this process answers when it is asked."""
    numbers = [ctypes.c_int() for _ in range(3)]
    ctypes.CDLL(loaded(pid, "libzmq")).zmq_version(*map(ctypes.byref, numbers))
    return ".".join(str(n.value) for n in numbers)


def librdkafka_version(pid: int) -> str:
    """What the librdkafka of this process answers when it is asked."""
    ask = ctypes.CDLL(loaded(pid, "librdkafka")).rd_kafka_version_str
    ask.restype = ctypes.c_char_p
    return str(ask().decode())
