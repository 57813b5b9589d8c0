"""Threads that tests leave behind: whoever opens a system or what it asks its servers with closes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from hydra.system.worker_thread import THREAD
from tests.suite.waiting import SOON_S


@pytest.fixture(scope="module", autouse=True)
def _threads_end() -> Iterator[None]:
    """A module's tests leave none that waits for questions to servers."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + SOON_S
    left = [each for each in threading.enumerate() if each.name == THREAD and each not in before]
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert [thread for thread in left if thread.is_alive()] == [], "nobody closed what asks with these threads"
