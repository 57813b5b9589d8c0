"""Who listens to whom, where each subscriber has one publisher. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hydra.wire.arrays import Ints


def publisher_of(subscribers: Ints, publishers: Sequence[int]) -> Ints:
    """The publisher of each of these subscribers: in turn, by their ids.

    None has more than one subscriber more than another where the ids are consecutive, and nobody changes the publisher
    when subscribers are added.

    Args:
        subscribers: their ids.
        publishers: those of the step, at least one.
    """
    return np.asarray(publishers, np.int64)[subscribers % len(publishers)]
