"""In which order alternatives are measured that take turns. Pure."""

from __future__ import annotations

from random import Random


def orders(alternatives: int, blocks: int, seed: int) -> list[tuple[int, ...]]:
    """Who is measured when: for each block every alternative once, by its number.

    As many blocks in a row as there are alternatives are the rotations of one random order, in random order: each
    alternative stands in each place as often as the others, so that what the first of a block suffers everybody
    suffers, and no order keeps time with anything that happens regularly.

    Args:
        alternatives: how many.
        blocks: how many.
        seed: of the randomness.
    """
    random = Random(seed)  # noqa: S311  # nothing here is secret
    found: list[tuple[int, ...]] = []
    while len(found) < blocks:
        first = random.sample(range(alternatives), alternatives)
        rotations = [tuple(first[turn:] + first[:turn]) for turn in range(alternatives)]
        found += random.sample(rotations, alternatives)
    return found[:blocks]
