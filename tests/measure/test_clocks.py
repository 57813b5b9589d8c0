"""By how much a latency may be wrong: the sum of what both clocks may be wrong by, and of no pair on one host."""

from __future__ import annotations

import pytest

from hydra.measure.latency import latency_bound_ns
from hydra.model import AgentClock

CONTROLLERS = AgentClock(0, 0, 0, 0, same_host=True, jumps=0)
NEAR = AgentClock(-5_000_000_000, 20_000, 30_000, 50_000, same_host=False, jumps=0)
FAR = AgentClock(7_000_000_000, -3_000, 120_000, 200_000, same_host=False, jumps=1)
CLOCKS = {"here": CONTROLLERS, "beside": CONTROLLERS, "near": NEAR, "at near's": NEAR, "far": FAR}


@pytest.mark.parametrize(
    ("senders", "receivers", "bound_ns"),
    [
        (["here"], ["here"], 0),
        (["here"], ["beside"], 0),
        (["far"], ["far"], 0),
        (["near"], ["at near's"], 0),  # two agents of one host have one clock
        (["here"], ["near"], 30_000),
        (["near"], ["here"], 30_000),
        (["near"], ["far"], 150_000),
        (["here"], ["here", "near", "far"], 120_000),
        (["near", "far"], ["near", "far"], 150_000),
        ([], ["far"], 0),
        # A clock that is not known leaves it unknown.
        (["here"], ["unheard of"], None),
        ([None], ["here"], None),
        ([None], [None], None),
        (["here"], ["near", "unheard of"], None),
    ],
)
def test_it_is_the_largest_sum_of_a_pair_on_different_hosts(
    senders: list[str | None], receivers: list[str | None], bound_ns: int | None
) -> None:
    assert latency_bound_ns(senders, receivers, CLOCKS) == bound_ns


def test_clients_of_one_agent_need_no_clock() -> None:
    assert latency_bound_ns(["a"], ["a"], {}) == 0
