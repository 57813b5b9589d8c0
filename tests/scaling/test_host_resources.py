"""The host resource that ends first: fitted from steps whose use of hosts is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hydra.analysis.costs import HostUse
from hydra.analysis.host_resources import HOST_CPU, HOST_MEMORY, HOST_NETWORK, HostEnds, host_ends
from hydra.analysis.scaling_models import fit
from tests.scaling.known_steps import COUNTS, step

pytestmark = pytest.mark.tier("test")  # each fit takes a third of a second


def ends(
    cpu: Callable[[int], float], memory: Callable[[int], float] = lambda _: 0.3, noise: float = 0.02, seed: int = 1
) -> HostEnds:
    """The facts of steps about a host of 4 cores and 8 GB that uses these shares at a count."""
    rng = np.random.default_rng(seed)
    steps = []
    for clients in COUNTS:
        used = {HOST_CPU: HostUse("h", cpu(clients) * rng.lognormal(0, noise), 4.0)}
        used[HOST_MEMORY] = HostUse("h", memory(clients) * rng.lognormal(0, noise), 8e9)
        steps.append(replace(step(clients), hosts=used))
    law = fit([(each.clients, each.throughput) for each in steps], [1000])
    return host_ends(steps, law, {HOST_NETWORK: "no speed"})


@pytest.mark.parametrize("seed", range(2))
def test_the_end_of_a_resource_lies_in_its_interval(seed: int) -> None:
    """0.92 of the CPU is used at 1,500 subscribers."""
    found = ends(lambda n: 0.02 + 0.0006 * n, seed=seed)
    assert found.first is not None
    assert found.first.resource.name == HOST_CPU
    assert found.first.ends.low < 1500 < (found.first.ends.high or 0)
    assert found.first.extrapolated
    (_, memory) = found.known
    assert (memory.resource.name, memory.ends.estimate, memory.ends.high) == (HOST_MEMORY, None, None)


def test_two_resources_whose_intervals_overlap_may_both_be_first() -> None:
    found = ends(lambda n: 0.0006 * n, lambda n: 0.04 + 0.0006 * n, noise=0.05)
    assert found.first is not None
    assert {found.first.resource.name, *(end.resource.name for end in found.perhaps_first)} == {HOST_CPU, HOST_MEMORY}


def test_a_resource_that_ended_in_a_measured_step_is_no_extrapolation() -> None:
    found = ends(lambda n: min(0.02 + 0.003 * n, 0.97))
    assert found.first is not None
    assert found.first.ends.estimate is not None
    assert 200 < found.first.ends.estimate < 500
    assert not found.first.extrapolated


def test_too_few_counts_make_a_resource_unknown() -> None:
    law = fit([(clients, 10.0 * clients) for clients in COUNTS], [1000])
    few = [replace(step(n), hosts={HOST_CPU: HostUse("h", 0.1, 4.0)} if n < 100 else {}) for n in COUNTS]
    found = host_ends(few, law, {})
    assert (found.known, found.first) == ((), None)
    assert found.unknown[HOST_CPU] == "fewer than 6 subscriber counts show its use"
