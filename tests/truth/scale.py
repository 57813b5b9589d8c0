"""How much is tried: a little in the usual tests, everything in ``make soak`` (HYDRA_TRUTH=whole)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

WHOLE: Final = os.environ.get("HYDRA_TRUTH", "") == "whole"


def cases(small: Sequence[T], more: Sequence[T]) -> Sequence[T]:
    """The small ones, and the others if everything is to be tried."""
    return [*small, *more] if WHOLE else small
