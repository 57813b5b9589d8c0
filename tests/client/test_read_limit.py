"""A slow reader reaches its limit although it is late, and never reads more."""

from __future__ import annotations

import math

import pytest

from hydra.client.read_limit import ReadLimit

SECOND_NS = 1_000_000_000


def read_in(rate: float, length_s: int, *, late_ns: int, idle_s: int = 0) -> list[int]:
    """When each message is read that always waits, by a reader that is late by this time whenever it has waited."""
    limit, now_ns, reads = ReadLimit(rate, 0), idle_s * SECOND_NS, []
    while now_ns < (idle_s + length_s) * SECOND_NS:
        if allowed := limit.allowance(now_ns):
            reads += [now_ns] * allowed
            limit.read(now_ns, allowed)
        now_ns += math.ceil(limit.wait_s(now_ns) * 1e9) + late_ns
    return reads


@pytest.mark.parametrize(("rate", "late_ns"), [(1.0, 400_000_000), (10.0, 40_000_000), (100.0, 4_000_000), (5000, 1)])
def test_a_reader_that_is_late_by_less_than_half_a_message_reaches_its_limit(rate: float, late_ns: int) -> None:
    assert len(read_in(rate, 10, late_ns=late_ns)) in (10 * rate, 10 * rate + 1)


@pytest.mark.parametrize(("rate", "most"), [(0.5, 1), (1.0, 2), (10.0, 11), (100.0, 110), (19.5, 21)])
def test_in_the_second_after_a_silence_it_reads_the_limit_and_one_read(rate: float, most: int) -> None:
    reads = read_in(rate, 5, late_ns=0, idle_s=5)
    assert max(sum(begin <= at <= begin + SECOND_NS for at in reads) for begin in set(reads)) == most
    assert reads.count(reads[0]) <= math.ceil(max(1, rate / 10))
