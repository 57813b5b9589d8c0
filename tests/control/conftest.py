"""A roster that some have joined."""

from __future__ import annotations

import pytest

from hydra.control.roster import Roster
from hydra.wire.messages import encode
from tests.control.rosters import EPOCH, hello, joined


@pytest.fixture
def roster() -> Roster:
    """Expects 1, 2, 3 of group g, 7 of publishers' group p and 9 of a third; 1, packed 2 with 3, and 7 have joined."""
    it = Roster()
    it.expect("g", [1, 2, 3])
    it.expect("p", [7])
    it.expect("other", [9])
    it.begin(EPOCH)
    assert it.receive(b"relay", encode(hello([1, 2, 3])))
    assert it.receive(b"relay", encode(joined([1], 2)))
    assert it.receive(b"relay", encode(joined([2, 3], 3, pid=102)))
    assert it.receive(b"pub", encode(hello([7], group="p", role="publisher", pid=60)))
    assert it.receive(b"pub", encode(joined([7])))
    assert not it.refused
    return it
