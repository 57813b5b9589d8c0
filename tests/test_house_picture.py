"""The picture in docs/architecture.md is what the imports say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "house_picture.py"))


@pytest.mark.tier("test")  # it parses all of Hydra
def test_the_page_shows_the_house_as_it_is() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert SCRIPT["renewed"](page) == page, "run scripts/house_picture.py"


def test_a_package_uses_what_it_imports(tmp_path: Path) -> None:
    house = tmp_path / "house"
    (house / "attic").mkdir(parents=True)
    (house / "model.py").write_text("")
    (house / "cellar").mkdir()
    (house / "cellar" / "__init__.py").write_text("import house.model\nimport os")
    (house / "attic" / "box.py").write_text("from house import cellar\ndef f():\n    from house.attic import lid")
    for system in ("here", "there"):
        (house / system).mkdir()
        (house / system / "spec.py").write_text("from house.attic import box")
    graph = SCRIPT["packages"](house)
    assert graph == {"attic": {"cellar"}, "cellar": {"model"}, "here": {"attic"}, "model": set(), "there": {"attic"}}
    assert SCRIPT["drawn"](graph, house) == {"attic": {"cellar"}, "cellar": set(), "systems and engines": {"attic"}}


@pytest.mark.parametrize(
    ("graph", "drawn"),
    [
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, {"a": {"b"}, "b": {"c"}, "c": set()}),
        ({"a": {"b", "c"}, "b": set(), "c": set()}, {"a": {"b", "c"}, "b": set(), "c": set()}),
    ],
)
def test_what_follows_from_other_arrows_is_not_drawn(graph: dict[str, set[str]], drawn: dict[str, set[str]]) -> None:
    assert SCRIPT["reduced"](graph) == drawn


def test_a_page_without_a_place_for_the_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="one place"):
        SCRIPT["renewed"]("# The house")
