from __future__ import annotations

from hydra.client.relayed_replies import GATHERED_WITHIN_NS, ReplyAggregator


def never(_: str) -> bool:
    return False


def test_what_is_alike_waits_for_a_moment_and_goes_together() -> None:
    gathering: ReplyAggregator[str] = ReplyAggregator()
    gathering.add("a", [3], 100)
    gathering.add("b", [1], 200)
    gathering.add("a", [1, 2], 300)
    assert gathering.next_ns() == 100 + GATHERED_WITHIN_NS
    assert gathering.take(99 + GATHERED_WITHIN_NS, never) == []
    assert gathering.take(100 + GATHERED_WITHIN_NS, never) == [("a", [1, 2, 3])]
    assert gathering.next_ns() == 200 + GATHERED_WITHIN_NS
    gathering.add("a", [4], 400)
    assert gathering.take(2 * GATHERED_WITHIN_NS, never) == [("b", [1]), ("a", [4])]
    assert gathering.next_ns() is None


def test_what_nobody_else_will_say_does_not_wait() -> None:
    gathering: ReplyAggregator[str] = ReplyAggregator()
    gathering.add("a", [1], 0)
    gathering.add("b", [2], 0)
    assert gathering.take(0, lambda text: text == "b") == [("b", [2])]
    gathering.clear()
    assert gathering.next_ns() is None
