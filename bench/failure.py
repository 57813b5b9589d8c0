"""Why a measurement failed, in one line that a reader without this machine understands."""

from __future__ import annotations

import re
import subprocess
from typing import Final

from hydra.errors import HydraError

FAILURES: Final = (
    ArithmeticError,
    HydraError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
    subprocess.SubprocessError,
)
"""What a measurement raises: it ends its line, and not the others."""
_WARNING: Final = "warning: "
_RAISED: Final = "RuntimeError: "
"""How the last line of a Python program begins that could not measure."""
_DONE: Final = "done in "
"""The last line of a finished run, which may have failed rows."""
_PATH: Final = re.compile(r"(?<![\w./])/(?:[^\s/'\":,;()\[\]]+/)+([^\s/'\":,;()\[\]]*)")


def reason(error: Exception) -> str:
    """What an error of a measurement means, without folders of this machine."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"took longer than {error.timeout:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        text = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else error.stderr
        return complaint(text or "") or f"exit code {error.returncode}"
    # The text of a KeyError is the key alone.
    kind = f"{type(error).__name__}: " if isinstance(error, LookupError) else ""
    return f"{kind}{complaint(str(error))}" or type(error).__name__


def complaint(output: str) -> str:
    """The line of a command's standard error that names the error; "" if there is no line.

    It is the last line, and of a run of ``hydra`` that finished with a failed row, its first warning.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return ""
    warnings = [line for line in lines if line.startswith(_WARNING)]
    line = warnings[0] if warnings and lines[-1].startswith(_DONE) else lines[-1]
    return _PATH.sub(r"\1", line.removeprefix(_WARNING).removeprefix(_RAISED))
