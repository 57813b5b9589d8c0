"""The picture in docs/architecture.md agrees with the imports."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "package_graph.py"))


@pytest.mark.tier("test")  # it parses all of Hydra
def test_the_page_shows_the_present_packages() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert SCRIPT["renewed"](page) == page, "run scripts/package_graph.py"


def test_a_package_uses_what_it_imports(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "attic").mkdir(parents=True)
    (root / "model.py").write_text("")
    (root / "cellar").mkdir()
    (root / "cellar" / "__init__.py").write_text("import root.model\nimport os")
    (root / "attic" / "box.py").write_text("from root import cellar\ndef f():\n    from root.attic import lid")
    for system in ("here", "there"):
        (root / system).mkdir()
        (root / system / "spec.py").write_text("from root.attic import box")
    graph = SCRIPT["packages"](root)
    assert graph == {"attic": {"cellar"}, "cellar": {"model"}, "here": {"attic"}, "model": set(), "there": {"attic"}}
    assert SCRIPT["drawn"](graph, root) == {"attic": {"cellar"}, "cellar": set(), "systems and engines": {"attic"}}


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
        SCRIPT["renewed"]("# The root")
