"""How much is tried: a little in the usual tests, everything in ``make soak`` (HYDRA_TRUTH=whole)."""

from __future__ import annotations

import os
from typing import Final, TypeVar

T = TypeVar("T")

WHOLE: Final = os.environ.get("HYDRA_TRUTH", "") == "whole"


def cases(small: list[T], more: list[T]) -> list[T]:
    """The small ones, and the others if everything is to be tried."""
    return [*small, *more] if WHOLE else small
