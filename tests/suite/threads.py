"""Threads that tests leave behind: the test that starts one, or opens what has one, ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.suite.waiting import wait_until


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    """A test leaves no thread that was not there before it; what it shares with others is there before."""
    before = set(threading.enumerate())
    yield
    wait_until(
        lambda: before.issuperset(threading.enumerate()), "the threads of this test to end", saw=threading.enumerate
    )
