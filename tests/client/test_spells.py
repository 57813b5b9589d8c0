"""Subscribers that are slow or disconnected for a while."""

from __future__ import annotations

from hydra.client.subscriber_state import NO_LIMIT, Impairments
from hydra.wire.messages import Impairment

SECOND_NS = 1_000_000_000


def test_one_that_is_gone_leaves_once_and_comes_back_once() -> None:
    impairments = Impairments([Impairment("gone", 1.0, 3.0)])
    assert impairments.at(0) == ""
    assert impairments.allowance(0) == (NO_LIMIT, 1.0)
    assert impairments.at(SECOND_NS) == "leave"
    assert impairments.at(SECOND_NS + 1) == ""
    assert impairments.allowance(2 * SECOND_NS) == (0, 1.0)
    assert impairments.at(3 * SECOND_NS) == "return"
    assert impairments.at(3 * SECOND_NS + 1) == ""


def test_a_slow_one_reads_so_many_from_the_begin_of_its_spell_on() -> None:
    impairments = Impairments([Impairment("slow", 2.0, 4.0, rate=10.0)])
    impairments.read(SECOND_NS, 500)  # before it
    assert impairments.at(2 * SECOND_NS) == ""
    assert impairments.allowance(2 * SECOND_NS) == (1, 2.0)
    impairments.read(2 * SECOND_NS, 1)
    assert impairments.allowance(2 * SECOND_NS) == (0, 0.1)
    assert impairments.allowance(3 * SECOND_NS) == (1, 1.0)  # what it did not use is lost
    impairments.at(4 * SECOND_NS)
    assert impairments.allowance(4 * SECOND_NS)[0] == NO_LIMIT


def test_one_spell_may_follow_another() -> None:
    impairments = Impairments(
        [Impairment("gone", 1.0, 2.0), Impairment("gone", 2.0, 3.0), Impairment("slow", 3.0, 4.0, rate=1.0)]
    )
    assert impairments.at(SECOND_NS) == "leave"
    assert impairments.at(2 * SECOND_NS) == ""
    assert impairments.at(3 * SECOND_NS) == "return"
    assert not Impairments([])
