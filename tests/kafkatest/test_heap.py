"""What brokers that share a machine are given, and when they do not fit."""

from __future__ import annotations

import pytest

from hydra.kafkatest.heap import heap_mb, memory_bytes, options, shortage


@pytest.mark.parametrize(("brokers", "heap"), [(1, 1024), (3, 1024), (4, 768), (6, 512), (9, 320), (40, 256)])
def test_heaps_shrink_with_the_number_of_brokers_on_a_machine(brokers: int, heap: int) -> None:
    assert heap_mb(brokers) == heap
    assert options(brokers) == [f"-Xms{heap // 2}m", f"-Xmx{heap}m"]


def test_nine_brokers_fit_into_six_gigabytes() -> None:
    assert 9 * memory_bytes(9) <= 6e9
    assert shortage(9, 6_000_000_000) == ""


def test_brokers_that_do_not_fit_are_told_with_the_arithmetic() -> None:
    text = shortage(9, 4_000_000_000)
    assert "9 brokers × (320 MB heap + 260 MB) = 5.5 GB" in text
    assert "page cache" in text
    assert "4.0 GB of memory are free" in text
