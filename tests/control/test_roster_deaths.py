"""The roster: deaths, replacements, and clients that have moved."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.control.roster import PeerWelcome, ProcessExit, Roster
from hydra.wire.messages import encode
from tests.control.rosters import child_exit, hello, joined, state


def moved(roster: Roster, client: int, pid: int) -> None:
    """The client is in another group now."""
    roster.forget([client])
    roster.expect("next", [client])
    roster.receive(b"elsewhere", encode(hello([client], group="next")))
    roster.receive(b"elsewhere", encode(joined([client], 2, 0, pid)))


def test_a_client_that_comes_again_from_a_packed_process_tells_that_all_of_it_is_gone(roster: Roster) -> None:
    assert roster.receive(b"relay", encode(joined([2], 4, 1, 777))) == PeerWelcome(BitMap([2]), BitMap())
    assert roster.present() == BitMap([1, 2, 7])
    assert roster.take_exits() == [ProcessExit([2, 3], 102, None, replaced=True, present=True)]
    assert list(roster.identities([1, 2, 3])) == [(b"relay", BitMap([1, 2]))]
    assert roster.process(2) == BitMap([2])
    assert roster.incarnation(2) == 1


def test_a_replacement_takes_over(roster: Roster) -> None:
    assert roster.receive(b"relay", encode(joined([1], 4, 1, 777)))
    assert roster.incarnation(1) == 1
    # Its predecessor is dead, even without a message; a later message about that does not concern the successor.
    assert roster.take_exits() == [ProcessExit([1], 101, None, replaced=True, present=True)]
    for seq in (5, 6):
        roster.receive(b"relay", child_exit([1], seq, 101))
    assert 1 in roster.present()
    # How it came about is news, once.
    assert roster.take_exits() == [ProcessExit([1], 101, -9, replaced=True, present=False)]
    # An ended process does not return.
    roster.receive(b"relay", encode(joined([1], 7)))
    assert roster.refused == {"duplicate_hello": 1}
    assert roster.incarnation(1) == 1


def test_a_death_that_is_told_again_is_one_death(roster: Roster) -> None:
    for seq in (4, 5):
        roster.receive(b"relay", child_exit([1], seq, 101, replaced=False))
    assert roster.take_exits() == [ProcessExit([1], 101, -9, replaced=False, present=True)]
    # Its successor's is another one, which had not joined.
    roster.receive(b"relay", child_exit([1], 6, 102, 1, replaced=False, after=1))
    assert roster.take_exits() == [ProcessExit([1], 102, 1, replaced=False, present=False)]


def test_a_death_removes_the_client(roster: Roster) -> None:
    roster.receive(b"relay", child_exit([1], 4, 101, 1, after=2))
    assert roster.present() == BitMap([2, 3, 7])
    assert list(roster.identities([1])) == []
    assert roster.incarnation(1) == 3
    with pytest.raises(KeyError):
        roster.hello(1)
    # A repeated message had been on its way.
    roster.receive(b"relay", encode(joined([1], 5)))
    assert roster.refused == {"duplicate_hello": 1}
    assert roster.present() == BitMap([2, 3, 7])


def test_the_end_of_a_dismissed_client_is_no_news(roster: Roster) -> None:
    roster.forget([1])
    roster.receive(b"relay", child_exit([1], 4, 101, 0, replaced=False))
    assert roster.take_exits() == []
    assert not roster.refused
    # For one that ended by itself it is.
    roster.receive(b"relay", child_exit([2, 3], 5, 102, 0, replaced=False))
    assert roster.take_exits() == [ProcessExit([2, 3], 102, 0, replaced=False, present=True)]


@pytest.mark.parametrize("pid", [101, 777], ids=["the one that was replaced", "one that said nothing"])
def test_a_death_of_an_earlier_process_does_not_touch_the_present_one(roster: Roster, pid: int) -> None:
    roster.disconnect([1])
    roster.receive(b"relay", encode(joined([1], 4, 1, 888)))
    roster.receive(b"relay", child_exit([1], 5, pid))
    assert 1 in roster.present()
    assert roster.take_exits() == [ProcessExit([1], pid, -9, replaced=True, present=False)]


def test_who_is_being_ended_does_not_count_as_there_once_more(roster: Roster) -> None:
    roster.disconnect([1])
    assert roster.present() == BitMap([2, 3, 7])
    # Its relay had not heard of its welcome.
    roster.receive(b"relay", encode(joined([1], 4)))
    assert roster.refused == {"duplicate_hello": 1}
    assert roster.present() == BitMap([2, 3, 7])


@pytest.mark.parametrize("pid", [101, 888], ids=["the old pid", "the new one's, on another host"])
def test_a_group_does_not_speak_for_a_client_that_another_group_has_by_now(roster: Roster, pid: int) -> None:
    moved(roster, 1, 888)
    roster.receive(b"relay", child_exit([1], 4, pid, 4, replaced=False))
    assert roster.hello(1).group == "next"
    assert list(roster.identities([1, 2])) == [(b"relay", BitMap([2])), (b"elsewhere", BitMap([1]))]
    assert roster.take_exits() == []
    # For the others it does.
    roster.receive(b"relay", child_exit([2, 3], 5, 102, 4, replaced=False))
    assert roster.take_exits() == [ProcessExit([2, 3], 102, 4, replaced=False, present=True)]


def test_a_client_that_is_expected_elsewhere_has_left_its_group(roster: Roster) -> None:
    roster.expect("next", [1])
    assert roster.present() == BitMap([2, 3, 7])
    assert roster.receive(b"relay", encode(joined([1], 4))) == PeerWelcome(None, BitMap([1]))


def test_an_exit_that_names_one_client_of_a_packed_process_leaves_the_others_reachable(roster: Roster) -> None:
    roster.receive(b"relay", child_exit([2], 4, 102))
    assert roster.present() == BitMap([1, 3, 7])
    assert dict(roster.identities([3])) == {b"relay": BitMap([3])}


def test_a_packed_process_that_is_gone_takes_no_client_with_it_that_has_moved(roster: Roster) -> None:
    moved(roster, 3, 102)
    roster.receive(b"relay", encode(joined([2], 4, 1, 777)))
    assert roster.take_exits() == [ProcessExit([2], 102, None, replaced=True, present=True)]
    assert roster.hello(3).group == "next"


def test_forgetting_clients_forgets_their_relay_with_the_last(roster: Roster) -> None:
    roster.forget([1, 2])
    assert roster.present() == BitMap([3, 7])
    assert roster.everyone() == [b"relay", b"pub"]
    roster.forget(roster.present())
    assert roster.present() == BitMap()
    assert roster.everyone() == []
    assert roster.relay("g") is None
    roster.receive(b"new", encode(hello([1])))
    assert roster.refused == {"unexpected_hello": 1}
    # Its messages about its clients' ends are late, and allowed.
    before = state(roster)
    for frame in (child_exit([1], 4, 101, 0, replaced=False), encode(joined([1], 5)), b"nonsense"):
        assert roster.receive(b"relay", frame) is None
    assert roster.refused == {"unexpected_hello": 1}
    assert state(roster) == before
