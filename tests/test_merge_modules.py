"""The texts that scripts/merge_modules.py makes; what it makes of the house, the rest of the tests see."""

from __future__ import annotations

import pytest

from scripts.merge_modules import Merge, UnclearError, merged, renamed_globals

ONE = '''"""One.

What one knows.
"""

from __future__ import annotations

from hydra.a import whole
from hydra.a.whole import LEAST as AT_LEAST

_WAIT_S = 1.0


def one(last: int) -> str:
    return f"{whole.last(AT_LEAST)} of {last}"


FIRST = whole.two()
'''
TWO = '''"""Two."""

from __future__ import annotations

from math import inf

# Beyond is nothing.
LEAST = -inf
_WAIT_S = 1.0


def two() -> float:
    return LEAST


def last(of: float) -> float:
    return of
'''
WHOLE = '''"""Both.

What one knows.
"""

from __future__ import annotations

from math import inf

# Beyond is nothing.
LEAST = -inf
_WAIT_S = 1.0


def two() -> float:
    return LEAST


def last(of: float) -> float:
    return of


def one(latest: int) -> str:
    return f"{last(LEAST)} of {latest}"


FIRST = two()
'''


def whole(*texts: str) -> str:
    names = ["hydra.a.one", "hydra.a.two"]
    return merged(Merge("hydra.a.whole", names, "Both.", {}, {}, {}), texts, {})


def test_what_is_needed_at_import_goes_first_and_nothing_is_imported_from_the_module_itself() -> None:
    one = ONE.replace("last: int", "latest: int").replace("{last}", "{latest}")
    assert "".join(whole(one, TWO).split()) == "".join(WHOLE.split())


def test_a_name_that_is_another_one_within_a_function_is_refused() -> None:
    with pytest.raises(UnclearError, match="last is something else there"):
        whole(ONE, TWO)


def test_two_definitions_of_a_name_are_refused_unless_they_are_alike() -> None:
    one, two = '"""One."""\n\nX = 1\n', '"""Two."""\n\nX = 2\n'
    with pytest.raises(UnclearError, match=r"X is hydra\.a\.one in hydra\.a\.one and hydra\.a\.two in hydra\.a\.two"):
        whole(one, two)
    assert whole(one, one).count("X = 1") == 1


def test_a_global_name_is_renamed_where_it_is_that_one() -> None:
    text = 'def f(x: int) -> str:\n    return f"{x} {y}"\n\n\nx = y = 1\ng = [x for x in (x,)]\n'
    assert renamed_globals(text, {"x": "z"}) == (
        'def f(x: int) -> str:\n    return f"{x} {y}"\n\n\nz = y = 1\ng = [x for x in (z,)]\n'
    )
