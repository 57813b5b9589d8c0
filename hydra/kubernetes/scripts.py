"""The scripts that run inside Pods, as text: constants of this package, kept as modules for the tools. Pure."""

from __future__ import annotations

import pkgutil
from functools import cache


@cache
def source(name: str) -> str:
    """The source of ``hydra.kubernetes.pod_scripts.NAME``."""
    text = pkgutil.get_data("hydra.kubernetes.pod_scripts", f"{name}.py")
    assert text is not None, name  # noqa: S101  # our own loader has it
    return text.decode()
