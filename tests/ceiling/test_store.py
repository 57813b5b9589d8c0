"""What is kept of ceilings: of this machine, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.errors import UsageError
from hydra.measure.verdict import Ceiling
from hydra.store import ceiling_cache

SLOW, FAST = Ceiling("python", "publisher", 1, 24, 100.0), Ceiling("python", "publisher", 1, 24, 200.0)
OTHER = Ceiling("native", "subscriber", 4, 24, 300.0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hydra"


def test_one_that_is_measured_again_is_replaced() -> None:
    assert ceiling_cache.load() == []
    ceiling_cache.add([SLOW, OTHER])
    ceiling_cache.add([FAST])
    assert ceiling_cache.load() == [OTHER, FAST]


def test_those_of_another_machine_say_nothing_and_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(ceiling_cache, "machine", lambda: {"processor": "another"})
        ceiling_cache.add([SLOW])
        assert ceiling_cache.load() == [SLOW]
    assert ceiling_cache.load() == []
    ceiling_cache.add([OTHER])
    assert ceiling_cache.load() == [OTHER]


@pytest.mark.parametrize("text", ["", "{", '{"machine": {}, "ceilings": [{"pps": 1}]}'])
def test_a_damaged_file_is_none(cache: Path, text: str) -> None:
    cache.mkdir()
    ceiling_cache.path().write_text(text)
    assert ceiling_cache.load() == []
    ceiling_cache.add([SLOW])
    assert ceiling_cache.load() == [SLOW]


def test_a_cache_that_is_no_folder_is_refused(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        ceiling_cache.add([SLOW])
