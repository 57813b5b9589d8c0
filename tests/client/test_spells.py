"""Subscribers that are slow or disconnected for a while."""

from __future__ import annotations

from hydra.client.subscriber_state import NO_LIMIT, Impairments
from hydra.wire.messages import Impairment

SECOND_NS = 1_000_000_000


def test_one_that_is_gone_leaves_once_and_comes_back_once() -> None:
    spells = Impairments([Impairment("gone", 1.0, 3.0)])
    assert spells.at(0) == ""
    assert spells.allowance(0) == (NO_LIMIT, 1.0)
    assert spells.at(SECOND_NS) == "leave"
    assert spells.at(SECOND_NS + 1) == ""
    assert spells.allowance(2 * SECOND_NS) == (0, 1.0)
    assert spells.at(3 * SECOND_NS) == "return"
    assert spells.at(3 * SECOND_NS + 1) == ""


def test_a_slow_one_reads_so_many_from_the_begin_of_its_spell_on() -> None:
    spells = Impairments([Impairment("slow", 2.0, 4.0, rate=10.0)])
    spells.read(SECOND_NS, 500)  # before it
    assert spells.at(2 * SECOND_NS) == ""
    assert spells.allowance(2 * SECOND_NS) == (1, 2.0)
    spells.read(2 * SECOND_NS, 1)
    assert spells.allowance(2 * SECOND_NS) == (0, 0.1)
    assert spells.allowance(3 * SECOND_NS) == (1, 1.0)  # what it did not use is lost
    spells.at(4 * SECOND_NS)
    assert spells.allowance(4 * SECOND_NS)[0] == NO_LIMIT


def test_one_spell_may_follow_another() -> None:
    spells = Impairments(
        [Impairment("gone", 1.0, 2.0), Impairment("gone", 2.0, 3.0), Impairment("slow", 3.0, 4.0, rate=1.0)]
    )
    assert spells.at(SECOND_NS) == "leave"
    assert spells.at(2 * SECOND_NS) == ""
    assert spells.at(3 * SECOND_NS) == "return"
    assert not Impairments([])
