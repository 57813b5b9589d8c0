from __future__ import annotations

from hydra.client.relayed_replies import GATHERED_WITHIN_NS, RESEND_EVERY_NS, PendingRegistrations

SOON, AGAIN = GATHERED_WITHIN_NS, RESEND_EVERY_NS


def telling(*clients: int) -> PendingRegistrations:
    """The registrations of these clients were sent once."""
    joining = PendingRegistrations()
    joining.add(clients, 0)
    joining.take(0, complete=True)
    return joining


def test_those_that_come_together_are_told_of_together() -> None:
    joining = PendingRegistrations()
    joining.add([2], 0)
    joining.add([1], 5)
    assert joining.next_ns() == SOON
    assert joining.take(SOON - 1, complete=False) == []
    assert joining.take(SOON, complete=False) == [1, 2]
    joining.add([3], SOON)
    assert joining.take(SOON, complete=True) == [3]


def test_they_are_told_of_again_until_a_welcome_names_them() -> None:
    joining = telling(1, 2, 3)
    assert joining.next_ns() == AGAIN
    joining.named([2])
    assert joining.take(AGAIN, complete=False) == [1, 3]
    joining.left([3])
    assert joining.take(2 * AGAIN, complete=False) == [1]
    joining.named([1])
    assert joining.next_ns() is None


def test_those_that_keep_coming_do_not_put_off_the_repetition() -> None:
    joining = PendingRegistrations()
    for client in range(300):
        joining.add([client], client * SOON)
        joining.take((client + 1) * SOON, complete=False)
    messages = [joining.take(now, complete=False) for now in range(300 * SOON, 300 * SOON + AGAIN, SOON)]
    assert sorted(client for clients in messages for client in clients) == list(range(300))


def test_a_replacement_is_somebody_else() -> None:
    joining = telling(1)
    joining.add([1], 10)
    joining.named([1])
    assert joining.take(10 + SOON, complete=False) == [1]


def test_a_welcome_for_a_predecessor_is_not_the_successors() -> None:
    joining = telling(1)
    joining.left([1])
    joining.add([1], 1)
    joining.take(1, complete=True)
    joining.named([1])
    assert not joining.is_named(1)
    assert joining.take(1 + AGAIN, complete=False) == [1]
    joining.named([1])
    assert joining.is_named(1)
    assert joining.next_ns() is None
    joining.left([1])
    assert not joining.is_named(1)
