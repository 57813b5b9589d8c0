"""Clients' ids as bitmaps: what messages and arrays make of them."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from hydra.control.id_bitmaps import array, bitmap, decode_ids, encode_ids, runs, span
from hydra.wire import compact_encoding as id_runs

ANY = st.sets(st.one_of(st.integers(0, 40), st.integers(2**32 - 20, 2**32 - 1), st.integers(0, 2**32 - 1)))


@settings(max_examples=20)
@given(ANY)
def test_they_are_written_as_lists_of_ids_are(ids: set[int]) -> None:
    clients = BitMap(sorted(ids))
    assert encode_ids(clients) == id_runs.encode_ids(sorted(ids))
    assert decode_ids(encode_ids(clients), 2**32) == clients
    assert array(clients).tolist() == sorted(ids)


@settings(max_examples=20)
@given(ANY)
def test_runs_are_as_long_as_can_be(ids: set[int]) -> None:
    found = runs(BitMap(ids))
    assert BitMap().union(*(span(first, last + 1) for first, last in found)) == BitMap(ids)
    assert all(b - a > 1 for (_, a), (b, _) in pairwise(found))


def test_a_million_ids_in_a_row_take_no_memory() -> None:
    tracemalloc.start()
    clients = decode_ids([(0, 999_999)], 1_000_000)
    assert encode_ids(clients) == [(0, 999_999)]
    assert bitmap(range(1_000_000)) == clients
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("items", [[3, 2], [1, 1], [(1, 3), 3], [(3, 1)]])
def test_ids_that_do_not_rise_are_refused(items: id_runs.Items) -> None:
    with pytest.raises(ValueError, match="do not rise"):
        decode_ids(items, 10)


def test_more_ids_than_may_be_are_refused() -> None:
    assert decode_ids([(1, 9), 11], 10) == span(1, 10) | BitMap([11])
    with pytest.raises(ValueError, match="more than 10 ids"):
        decode_ids([(1, 10), 11], 10)


def test_a_range_of_nobody_and_one_with_gaps() -> None:
    assert bitmap(range(5, 5)) == bitmap(range(5, 2)) == BitMap()
    assert bitmap(range(0, 7, 3)) == BitMap([0, 3, 6])
