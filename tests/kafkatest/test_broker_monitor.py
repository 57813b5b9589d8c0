"""A broker that has ended is distinguished from a slow one."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import ItemsView

import pytest

from hydra.kafkatest import broker_liveness as module
from hydra.kafkatest.broker_liveness import SILENT_AFTER_S, BrokerMonitor, Silence
from hydra.kafkatest.nodes import host_and_port
from hydra.kafkatest.topics import Topics
from tests.suite.waiting import SOON_S, wait_until

A, B = "a:9092", "b:9092"
ALL_WELL, A_SILENT = {A: True, B: True}, {A: False, B: True}


@pytest.mark.parametrize(
    ("series", "now", "ended"),
    [
        ([], 100.0, ""),
        ([(1.0, ALL_WELL)], 100.0, ""),
        ([(1.0, ALL_WELL), (2.0, A_SILENT)], 1.0 + SILENT_AFTER_S - 0.1, ""),
        ([(1.0, ALL_WELL), (2.0, A_SILENT)], 1.0 + SILENT_AFTER_S, A),
        # Heard again in between: it counts from there.
        ([(1.0, ALL_WELL), (2.0, A_SILENT), (5.0, ALL_WELL), (6.0, A_SILENT)], 8.0, ""),
        # Another broker leads in its place.
        ([(1.0, ALL_WELL), (2.0, A_SILENT), (4.0, {B: True})], 100.0, ""),
        # Never heard at all: it counts from the beginning.
        ([(1.0, {A: False, B: False})], SILENT_AFTER_S, f"{A}, {B}"),
    ],
)
def test_a_leader_is_gone_when_it_was_silent_for_long(
    series: list[tuple[float, dict[str, bool]]], now: float, ended: str
) -> None:
    silence = Silence(0.0)
    for time_s, answered in series:
        silence.note(answered, time_s)
    assert silence.silent_leaders(now) == ended


def test_a_silence_may_be_asked_for_while_it_is_noted() -> None:
    silence, reported = Silence(0.0), list[str]()

    class Asking(UserDict[str, bool]):
        """Another thread asks whenever this one looks at the answers."""

        def items(self) -> ItemsView[str, bool]:
            reported.append(silence.silent_leaders(100.0))
            return super().items()

    silence.note(A_SILENT, 1.0)
    silence.note(Asking({B: True}), 2.0)
    assert set(reported) == {A}
    assert silence.silent_leaders(100.0) == ""


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("localhost", ("localhost", 9092)),
        ("127.0.0.1:1234", ("127.0.0.1", 1234)),
        ("[::1]", ("::1", 9092)),
        ("[::1]:1234", ("::1", 1234)),
        ("::1:1234", ("::1", 1234)),  # as librdkafka prints a leader
    ],
)
def test_an_address_without_a_port_has_the_one_of_kafka(address: str, where: tuple[str, int]) -> None:
    assert host_and_port(address) == where


class Unanswered(Topics):
    """A cluster that answers no question: each fails with the given error."""

    def __init__(self, bootstrap: str, fails: Exception) -> None:
        super().__init__(bootstrap, {}, "")
        self.questions = threading.Semaphore(0)
        self._fails = fails

    def leaders(self, topic: str, timeout_s: float) -> frozenset[str]:
        self.questions.release()
        raise self._fails


@pytest.mark.tier("test")
@pytest.mark.parametrize("bootstrap", ["localhost", "localhost, 127.0.0.1:9", f"{'a' * 64}:9092"])
def test_a_watch_goes_on_whatever_the_address_is(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    topics = Unanswered(bootstrap, TimeoutError())
    watch = BrokerMonitor(topics, "t")
    try:
        # The third question is asked after the addresses were tried twice.
        assert all(topics.questions.acquire(timeout=SOON_S) for _ in range(3))
        assert watch.failure() == ""
    finally:
        watch.close()


def test_a_watch_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    watch = BrokerMonitor(Unanswered("h:1", ZeroDivisionError("a defect")), "t")

    def has_failed() -> bool:
        try:
            return bool(watch.failure())
        except ZeroDivisionError as e:
            return str(e) == "a defect"

    wait_until(has_failed, "its failure")
    watch.close()
