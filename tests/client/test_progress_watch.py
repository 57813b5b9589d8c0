"""The longest time without an accepted message is known."""

from __future__ import annotations

from hydra.client.progress_watch import ProgressWatch


def test_the_longest_time_without_an_accepted_message_is_known() -> None:
    watch = ProgressWatch(100)
    found = []
    for now_ns, accepted in ((150, 1), (250, 1), (260, 2), (300, 3), (900, 3)):
        watch.look(now_ns, accepted)
        found.append(watch.longest_ns)
    assert found == [50, 100, 110, 110, 600]
