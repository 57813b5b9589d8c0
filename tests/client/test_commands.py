from __future__ import annotations

from collections.abc import Iterable

from hydra.client.relayed_replies import RESEND_EVERY_NS, CommandReplies
from hydra.model import SharedSettings
from hydra.wire.messages import Configure, Finish, HostClock, Start, Stop


def configure(epoch: int = 1, *, number: int = 1, ids: tuple[int, ...] = ()) -> Configure:
    settings = SharedSettings(burst=1)
    return Configure(ids=list(ids), epoch=epoch, number=number, settings=settings, publishers=[], probe=True)


def start(epoch: int = 1) -> Start:
    return Start(epoch=epoch, number=2, start_at_ns=1, stop_at_ns=2, clock=HostClock(0, 0))


def configured(*clients: int, answered: Iterable[int] = ()) -> CommandReplies:
    """These clients have got a ``configure``, and some have answered."""
    commands = CommandReplies("subscriber")
    commands.give(configure(), clients, 0)
    commands.answered(Configure, 1, answered)
    return commands


def test_who_was_told_the_same_and_has_answered_is_not_told_again() -> None:
    commands = CommandReplies("subscriber")
    given = commands.give(configure(), [1, 2, 3], 0)
    assert (given.recipients, given.fresh, given.answered) == ([1, 2, 3], [1, 2, 3], [])
    commands.answered(Configure, 1, [2])
    given = commands.give(configure(ids=(1, 2)), [1, 2], 5)
    assert (given.recipients, given.fresh, given.answered) == ([1], [], [2])
    given = commands.give(configure(), [4], 5)
    assert (given.recipients, given.fresh) == ([4], [4])


def test_another_command_of_the_same_kind_makes_the_answers_void() -> None:
    commands = configured(1, 2, answered=[1, 2])
    given = commands.give(configure(number=5), [1], 0)
    assert (given.recipients, given.fresh, given.answered) == ([1], [1], [])
    assert commands.waits(Configure, 1)
    assert not commands.waits(Configure, 2)
    # A late answer to the first one is none to the second.
    assert commands.answered(Configure, 1, [1, 2]) == [2]
    assert commands.waits(Configure, 1)
    # And so does the first one, repeated to the client that got another one since.
    given = commands.give(configure(), [1, 2], 0)
    assert (given.fresh, given.answered) == ([1], [2])


def test_what_is_not_answered_is_said_again_every_2_s() -> None:
    commands = CommandReplies("subscriber")
    commands.give(configure(), [1, 2, 3], 100)
    commands.give(start(), [3], 200)
    commands.give(start(), [4], 200)
    commands.answered(Configure, 1, [1])
    due_ns = 100 + RESEND_EVERY_NS
    assert commands.next_ns() == due_ns
    assert commands.resends(due_ns - 1) == []
    assert commands.resends(due_ns) == [(configure(), [2, 3])]
    assert commands.resends(due_ns + 100) == [(start(), [3])]
    commands.left([3])
    assert commands.resends(due_ns + RESEND_EVERY_NS) == [(configure(), [2])]
    commands.answered(Configure, 1, [2])
    assert commands.next_ns() is None


def test_what_the_controller_says_again_puts_the_next_repetition_off() -> None:
    commands = configured(1)
    commands.give(configure(), [1], 1000)
    assert commands.next_ns() == 1000 + RESEND_EVERY_NS


def test_commands_of_different_kinds_are_answered_apart() -> None:
    commands = CommandReplies("publisher")
    for command in (
        configure(),
        start(),
        Stop(epoch=1, number=3, stop_at_ns=2),
        Finish(epoch=1, number=4, publishers=[], drain_max_s=1),
    ):
        commands.give(command, [1], 0)
    commands.answered(Start, 2, [1])
    assert [commands.awaited(kind) for kind in (Configure, Start, Stop, Finish)] == [True, False, True, False]
    # (An answer to a command that the client has not had does not count.)
    commands.answered(Stop, 3, [7])
    assert commands.awaited(Stop)


def test_another_epoch() -> None:
    commands = CommandReplies("subscriber")
    commands.give(configure(5), [1], 0)
    for other in (start(4), configure(4), start(6)):
        given = commands.give(other, [1], 0)
        assert (given.recipients, given.fresh, given.answered) == ([1], [], [])
    assert commands.epoch == 5
    assert commands.resends(RESEND_EVERY_NS) == [(configure(5), [1])]
    commands.give(configure(6), [1], 0)
    assert (commands.epoch, commands.resends(RESEND_EVERY_NS)) == (6, [(configure(6), [1])])


def test_whoever_replaces_a_client_has_been_told_nothing() -> None:
    commands = configured(1, 2, answered=[1])
    commands.left([1, 2])
    assert not commands.awaited(Configure)
    assert commands.give(configure(), [1, 2], 0).fresh == [1, 2]


def test_what_a_client_does_not_heed_is_told_and_not_said_again() -> None:
    """A stop that a publisher gets again once it has started would end its window."""
    commands = CommandReplies("publisher")
    stop = Stop(epoch=1, number=3, stop_at_ns=2)
    finish = Finish(epoch=1, number=4, publishers=[], drain_max_s=1)
    commands.give(configure(), [1], 0)
    commands.answered(Configure, 1, [1])
    for command in (stop, finish):
        assert commands.give(command, [1], 0).recipients == [1]
    assert commands.give(start(), [2], 0).recipients == [2]
    assert commands.next_ns() is None
    commands.give(start(), [1], 0)
    assert commands.give(stop, [1], 0).fresh == [1]
    assert commands.awaited(Stop)
