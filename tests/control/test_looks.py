"""Which relay is asked for the kernel's files of another host, and what counts as its answer."""

from __future__ import annotations

from hydra.control.watch_assignment import KernelTextRequests
from hydra.wire.messages import KernelTexts, Look

SECOND = 1_000_000_000
OWN, A, B = ("own", "t"), ("a", "t"), ("b", "t")


def looks() -> KernelTextRequests:
    requests = KernelTextRequests(OWN)
    for identity, host in {b"o": OWN, b"a1": A, b"a2": A, b"b": B}.items():
        requests.joined(identity, host)
    return requests


def answer(number: int, text: str = "1") -> KernelTexts:
    return KernelTexts(ids=[1], seq=1, number=number, time_ns=5, texts={"/proc/x": text})


def test_one_relay_of_each_other_host_is_asked_and_another_one_after_2_s() -> None:
    it = looks()
    number = it.ask(it.hosts(), ["/proc/x"], 9, 0)
    look = Look(number=number, patterns=["/proc/x"], most_bytes=9)
    assert it.due(0) == [(b"a1", look), (b"b", look)]
    assert it.due(SECOND) == []
    it.heard(b"b", answer(number))
    assert it.due(2 * SECOND) == [(b"a2", look)]
    it.left(b"a1")
    assert it.due(4 * SECOND) == [(b"a2", look)]
    assert not it.answered(number)
    it.heard(b"a2", answer(number))
    assert it.answered(number)
    assert it.end(number).keys() == {A, B}
    it.joined(b"a3", A)
    it.ask([A], [], 1, 0)
    assert [identity for identity, _ in it.due(0)] == [b"a2"]  # a3 may be in a container that sees other processes


def test_the_first_answer_counts_and_those_to_ended_questions_and_of_strangers_do_not() -> None:
    it = looks()
    first, second = it.ask([A, B], [], 1, 0), it.ask([A, B], [], 1, 0)
    it.heard(b"b", answer(second, "1"))
    it.heard(b"b", answer(second, "2"))
    it.heard(b"stranger", answer(second))
    it.heard(b"o", answer(second))
    assert it.end(first) == {}
    it.heard(b"a1", answer(first))
    assert it.end(second) == {B: answer(second, "1")}


def test_a_host_without_a_relay_is_waited_for_no_longer() -> None:
    it = looks()
    number = it.ask([A, B], [], 1, 0)
    it.heard(b"b", answer(number))
    it.left(b"a1")
    it.left(b"a2")
    it.left(b"a2")
    assert it.answered(number)
    assert it.hosts() == [B]
    assert it.due(0) == []
