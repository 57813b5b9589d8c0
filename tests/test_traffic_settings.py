"""Topics, keys and sizes in a scenario: their forms, and what is refused by name before anything starts."""

from __future__ import annotations

import pytest

from hydra.config.scenario import resolve
from hydra.errors import RefusedKeyError
from hydra.model import Settings
from hydra.model.settings import size_ranges, sizes_text

SIZES: list[list[float]] = [[24, 256, 70], [256, 4096, 25.5], [4096, 65_536, 5]]
TEXT = "24-256:70,256-4096:25.5,4096-65536:5"


def test_ranges_of_sizes_are_lists_in_a_file_and_a_text_elsewhere() -> None:
    assert sizes_text(SIZES) == TEXT
    assert size_ranges(TEXT) == [tuple(each) for each in SIZES]
    assert resolve("zmqfixed", {"settings.message_sizes": SIZES}).scenario.settings.message_sizes == TEXT
    varied = resolve("zmqfixed", {"sweep.vary": {"message_sizes": [SIZES, "24-24:1"]}}).scenario
    assert varied.values_of("message_sizes") == (TEXT, "24-24:1")
    settings = Settings(message_sizes="24-26:3,100-100:1")
    assert (settings.largest_bytes, settings.mean_bytes) == (100, 43.75)


def test_ranges_of_sizes_that_the_user_gives_replace_the_size_of_the_file() -> None:
    assert resolve("zmqfixed").scenario.settings.message_size == 128
    assert resolve("zmqfixed", {"settings.message_sizes": TEXT}).scenario.settings.message_size == 24


def test_a_row_with_fewer_topics_than_a_subscriber_may_have_gives_it_all() -> None:
    scenario = resolve("zmqfixed", {"sweep.vary.topics": [1, 100], "settings.topics_per_client": 10}).scenario
    assert [
        Settings(topics=n, topics_per_client=10).chosen_topics for n in scenario.values_of("topics") if type(n) is int
    ] == [1, 10]


@pytest.mark.parametrize(
    ("scenario", "given", "refused"),
    [
        ("zmqfixed", {"topics": 0}, "settings.topics: must be 1 to 10000"),
        ("zmqfixed", {"topics": 4, "topics_per_client": 5}, "topics_per_client: 5 topics .* more than"),
        ("zmqfixed", {"topics": 4, "topics_per_client": 2, "wildcard": True}, "wildcard: "),
        ("zmqfixed", {"keys": 3}, "keys: messages of system zmq have no keys"),
        ("kafka-fixed", {"topics": 3, "wildcard": True}, "wildcard: "),
        ("kafka-fixed", {"topics": 3, "group": "g"}, "topics: members of a consumer group"),
        ("kafka-fixed", {"sweep.vary.topics": [1, 3], "group": "g"}, "sweep.vary.topics: members"),
        ("kafka-fixed", {"topics": 3, "read": "stored"}, "topics: subscribers that read stored"),
        ("kafka-fixed", {"topics": 3, "topics_per_client": 1, "acks": "0"}, "only the growth"),
        ("kafka-fixed", {"topics": 5000, "kafka.partitions": 3}, "15000, above the limit of 10000"),
        ("kafka-fixed", {"client": "kafka-tool", "messages": 9, "topics": 3}, "kafka-tool sends to one"),
        ("mqtt-fixed", {"topics": 3, "shared": True}, "topics: members"),
        ("zmqfixed", {"message_sizes": SIZES, "message_size": 30}, "stands in place of message_size"),
        ("zmqfixed", {"message_sizes": "24-30:1", "sweep.vary.payload": ["zeros", "json"]}, "sweep.vary.payload"),
        ("zmqfixed", {"sweep.vary": {"message_sizes": ["24-30:1"], "message_size": [30]}}, "sweep.vary.message_size: "),
        ("zmqfixed", {"message_sizes": "23-30:1"}, "must rise within 24"),
        ("zmqfixed", {"message_sizes": "30-29:1"}, "must rise within 24"),
        ("zmqfixed", {"message_sizes": "24-30:0"}, "a weight in message_sizes must be above 0"),
        ("zmqfixed", {"message_sizes": [[24, 30]]}, "message_sizes: message_sizes must be a list like"),
        ("zmqfixed", {"message_sizes": "many"}, "message_sizes must be like"),
        ("zmqfixed", {"sweep.vary.publishers": [0, 2]}, "sweep.vary.publishers: must be whole numbers from 1"),
        ("zmqfixed", {"sweep.vary.publishers": [2, 2]}, "sweep.vary.publishers: a value stands twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(scenario: str, given: dict[str, object], refused: str) -> None:
    """A key without a table is one of [settings]."""
    changes = {key if "." in key or key == "client" else f"settings.{key}": value for key, value in given.items()}
    with pytest.raises(RefusedKeyError, match=refused):
        resolve(scenario, changes)
