"""Where messages go, their keys and their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.golden_vectors.common import Case, Ranges

WORD: Final = 2**64
SPARSE: Final = [0, 1, 2, 3, 64, 1000, 65_535, 65_536, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1]
RANKED: Final = [0, 1, 2, 63, 64, 65, 1000, 65_535, 65_536, 65_537, 131_071, 131_072, 150_000]


def mixed(z: int) -> int:
    """Every bit depends on every other."""
    z %= WORD
    z = (z ^ z // 2**30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z // 2**27) * 0x94D049BB133111EB % WORD
    return z ^ z // 2**31


def base(seed: int, publisher: int, purpose: int) -> int:
    """Where the numbers of a purpose begin."""
    return mixed(mixed(seed + purpose * 0xD1B54A32D192ED03) + publisher * 0x8CB92BA72F3D8DD7)


def draw(start: int, n: int) -> int:
    """Number n of those that begin there."""
    return mixed(start + n * 0x9E3779B97F4A7C15)


def chosen(number: int, count: int, table: Ranges) -> int:
    """The index that a number chooses."""
    slot = number // 2**32 * count // 2**32
    if not table or number % 2**32 < table[slot][0]:
        return slot
    return table[slot][1]


def shuffled(seed: int, client: int, topics: int, per_client: int) -> list[int]:
    """The topics of a client."""
    them, start = list(range(topics)), base(seed, client, 5)
    for i in range(per_client):
        j = i + draw(start, i) // 2**32 * (topics - i) // 2**32
        them[i], them[j] = them[j], them[i]
    return sorted(them[: per_client or topics])


def traffic(
    *,
    seed: int = 1,
    publisher: int = 0,
    topics: int = 1,
    topic_table: Ranges | None = None,
    keys: int = 0,
    key_table: Ranges | None = None,
    sizes: Ranges | None = None,
    size_table: Ranges | None = None,
    per_client: int = 0,
    clients: Sequence[int] = (),
    ranked: bool = False,
) -> Case:
    """Topic, key (-1: none) and size (-1: not from a table) of some messages; of clients their topics.

    ``ranks``: for the first client, of some n: whether message n is one of its own, and how many are among the messages
    below n. ``own``: for some ranks, the n of its own message with that rank.
    """
    topic_table, key_table, sizes, size_table = topic_table or [], key_table or [], sizes or [], size_table or []
    bases = [base(seed, publisher, purpose) for purpose in range(1, 6)]

    def topic(n: int) -> int:
        return chosen(draw(bases[0], n), topics, topic_table)

    def size(n: int) -> int:
        if not sizes:
            return -1
        low, high = sizes[chosen(draw(bases[2], n), len(sizes), size_table)]
        return low + draw(bases[3], n) // 2**32 * (high - low + 1) // 2**32

    messages = [*range(40), *SPARSE[4:]]
    others = [[client, shuffled(seed, client, topics, per_client)] for client in clients]
    ranks: list[list[int]] = []
    own: list[list[int]] = []
    if ranked:
        its = set(shuffled(seed, clients[0], topics, per_client))
        first = [n for n in range(RANKED[-1] + 1) if topic(n) in its]
        ranks = [[n, int(n in set(first)), sum(m < n for m in first)] for n in RANKED]
        own = [[rank, first[rank]] for rank in (0, 1, 2, len(first) // 2, len(first) - 2, len(first) - 1)]
    return {
        "seed": seed,
        "publisher": publisher,
        "topics": topics,
        "topic_table": topic_table,
        "keys": keys,
        "key_table": key_table,
        "sizes": sizes,
        "size_table": size_table,
        "topics_per_client": per_client,
        "bases": bases,
        "messages": [
            [n, topic(n), chosen(draw(bases[1], n), keys, key_table) if keys else -1, size(n)] for n in messages
        ],
        "clients": others,
        "ranks": ranks,
        "own": own,
    }


def traffics() -> dict[str, Case]:
    """By name."""
    # Tables by hand: slots that are always themselves, that are never, and that are sometimes.
    uneven = [[0, 0], [2**31, 0], [0, 0], [2**32 - 1, 0], [12_345_678, 1]]
    ten = [[0, 0], [2**31, 0], [2**30, 0], [3 * 2**30, 1], *([2**32 - 1, 2] for _ in range(5)), [0, 3]]
    return {
        "one-topic": traffic(clients=[0, 5]),
        "even": traffic(topics=10, per_client=3, clients=[0, 1, 2, 2**31 - 1]),
        "uneven": traffic(
            seed=2**63 - 1, publisher=4, topics=5, topic_table=uneven, per_client=2, clients=[7], ranked=True
        ),
        "rare": traffic(seed=3, publisher=2, topics=1000, per_client=10, clients=[123_456, 1], ranked=True),
        "all-topics-of-a-client": traffic(topics=3, per_client=3, clients=[9]),
        "one-of-two": traffic(seed=0, publisher=2**32 - 1, topics=2, per_client=1, clients=range(8), ranked=True),
        "keys": traffic(keys=10_000, publisher=1),
        "uneven-keys-and-topics": traffic(topics=4, keys=10, key_table=ten, publisher=3),
        "sizes": traffic(sizes=[[24, 256], [256, 4096], [4096, 65_536]], size_table=[[0, 0], [2**31, 0], [2**30, 0]]),
        "one-range-of-sizes": traffic(sizes=[[100, 100]], seed=12),
        "everything": traffic(
            seed=77,
            publisher=9,
            topics=10,
            topic_table=ten,
            keys=5,
            key_table=uneven,
            sizes=[[24, 24], [1_000_000, 2_000_000]],
            per_client=4,
            clients=[3, 4],
            ranked=True,
        ),
    }
