"""Makes the folders of ``KINDS`` in tests/golden: what goes in and must come out.

Every client is held to them. The answers come from plain models (fractions, lists and sets of numbers) that know
nothing of how Python's or C++'s code does it. ``python -m tests.golden_vectors`` writes the files again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tests.golden_vectors.acks import acknowledgements
from tests.golden_vectors.batch import batches
from tests.golden_vectors.clock import clocks
from tests.golden_vectors.common import Case
from tests.golden_vectors.histogram import histograms
from tests.golden_vectors.lag import lags
from tests.golden_vectors.ledger import ledgers
from tests.golden_vectors.load import loads
from tests.golden_vectors.pacer import pacers
from tests.golden_vectors.payload import payloads
from tests.golden_vectors.readlimit import read_limits
from tests.golden_vectors.traffic import traffics

KINDS: Final[dict[str, Callable[[], dict[str, Case]]]] = {
    "clock": clocks,
    "pacer": pacers,
    "load": loads,
    "ledger": ledgers,
    "lag": lags,
    "readlimit": read_limits,
    "histogram": histograms,
    "acks": acknowledgements,
    "payload": payloads,
    "batch": batches,
    "traffic": traffics,
}


def text(case: Case) -> str:
    """As it stands in its file."""
    return json.dumps(case, separators=(",", ":")) + "\n"
