#!/usr/bin/env python3
"""Records ``make demo`` as the picture that README.md shows: ``.venv/bin/python scripts/demo_recording.py``.

What is shown is what was printed, but for the lines that tell, where progress goes to a file, that it goes on. The demo
runs once, for a minute; tables are fitted to the picture's width.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

TREE: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = TREE / "docs" / "images" / "demo.svg"
COLUMNS: Final = 100
_CHUNK: Final = 65_536
_GOES_ON: Final = re.compile(r"^hydra \S+ …(?: \d+ s)?\n", re.MULTILINE)
_FONT_FACE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def recorded(folder: Path) -> str:
    """What the demo prints where tables go to a terminal, and lines of progress to a file.

    Raises:
        CalledProcessError: the demo failed; its output is on standard error.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    command = [TREE / "scripts" / "demo", Path(sys.executable).with_name("hydra"), folder]
    told = bytearray()
    with subprocess.Popen(command, cwd=TREE, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE) as demo:
        os.close(theirs)
        assert demo.stderr is not None  # noqa: S101  # it was asked for
        waiting = {ours, demo.stderr.fileno()}
        while waiting:
            for descriptor in select.select(waiting, [], [])[0]:
                data = _read(descriptor)
                told += data
                sys.stderr.buffer.write(data)
                sys.stderr.flush()
                if not data:
                    waiting.remove(descriptor)
    os.close(ours)
    if demo.returncode != 0:
        raise subprocess.CalledProcessError(demo.returncode, command)
    return told.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that nobody writes to any more
        return b""


def picture(text: str) -> str:
    """The session as SVG, with the fonts of whoever looks at it: none is fetched."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ make demo", style="bold"))
    console.print(Text.from_ansi(text))
    return _FONT_FACE.sub("", console.export_svg(title="make demo", theme=DIMMED_MONOKAI))


if __name__ == "__main__":
    (TREE / "runs").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=TREE / "runs")).relative_to(TREE)
    session = _GOES_ON.sub("", recorded(folder)).replace(str(folder), "runs/demo").replace(f"{TREE}/", "")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(session), encoding="utf-8")
