"""The native program under test."""

from __future__ import annotations

import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

from hydra.native.build import find

needs_native = pytest.mark.skipif(find() is None, reason="the native client is not built")


@cache
def native_client(kind: str) -> str | None:
    """Its command line; None where it is not built, or without clients of this kind.

    ``HYDRA_NATIVE_CLIENT`` names another one than the installed: tox's build with sanitizers.
    """
    given = os.environ.get("HYDRA_NATIVE_CLIENT")
    if (program := Path(given) if given else find()) is None:
        return None
    output = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return shlex.quote(str(program)) if kind in output else None
