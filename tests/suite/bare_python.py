"""A Python as an agent has it: the interpreter of the tests, with the standard library and no package."""

from __future__ import annotations

import sys
from pathlib import Path

NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"


def bare_python(folder: Path) -> Path:
    """Makes a virtual environment without packages, once; returns its folder for ``PATH``.

    What the installation beneath it has in its own ``site-packages`` cannot be imported.
    """
    interpreter, programs = Path(sys.executable).resolve(), folder / "bin"
    if not programs.exists():  # agents of one host share it
        programs.mkdir(parents=True)
        (folder / "pyvenv.cfg").write_text(f"home = {interpreter.parent}\ninclude-system-site-packages = false\n")
        (programs / NAME).symlink_to(interpreter)
    return programs
