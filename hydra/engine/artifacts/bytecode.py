"""Compiled modules for agents, which write none themselves: to compile what it imports costs a group most of its start.

The format is that of PEP 552, unchecked: whoever unpacks an archive gives its files other times than they had here.
"""

from __future__ import annotations

import marshal
import struct
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path, PurePosixPath
from typing import Final

_UNCHECKED: Final = struct.pack("<I", 0b01)
"""Flags: the source is known by its hash, and nobody looks whether it is still the same."""


def compiled_name(source: str) -> str:
    """Where Python looks for the compiled form of this source, both as paths with slashes."""
    path = PurePosixPath(source)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def compiled(source: Path) -> bytes | None:
    """The compiled form of a source file; None where it is none of this Python's.

    What was compiled here when it was installed is not compiled again.
    """
    try:
        code = SourceFileLoader(source.stem, str(source)).get_code(source.stem)
    except (SyntaxError, ValueError):
        return None
    return MAGIC_NUMBER + _UNCHECKED + source_hash(source.read_bytes()) + marshal.dumps(code)
