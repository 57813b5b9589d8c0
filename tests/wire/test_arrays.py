"""Sums over many clients, and runs of different lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.wire.arrays import indices_of_runs, offsets, sorted_ids, sums, total

NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50)


@settings(max_examples=25)
@given(NUMBERS)
def test_a_total_is_exact_also_beyond_64_bits(values: list[int]) -> None:
    assert total(np.array(values, np.int64)) == sum(values)


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 2**62 // 5), max_size=5), max_size=20))
def test_the_sum_of_each_run_is_exact_whatever_all_of_them_add_up_to(runs: list[list[int]]) -> None:
    items = np.array([x for run in runs for x in run], np.int64)
    assert sums(items, np.array([len(run) for run in runs], np.int64)).tolist() == [sum(run) for run in runs]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 4), max_size=20))
def test_runs_are_picked_in_any_order(lengths: list[int]) -> None:
    begins = offsets(np.array(lengths, np.int64))
    assert begins.tolist() == [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    picked = [n for n in range(len(lengths)) if n % 3 != 1][::-1]
    expected = [item for n in picked for item in range(begins[n], begins[n + 1])]
    assert indices_of_runs(begins, np.array(picked, np.int64)).tolist() == expected


@pytest.mark.parametrize("ids", [{3, 1}, [3, 1], range(3, 0, -2), frozenset((1, 3))])
def test_ids_in_order(ids: set[int]) -> None:
    assert sorted_ids(ids).tolist() == [1, 3]
