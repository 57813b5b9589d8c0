"""Pages are made once, until their runs change; the process that makes them reports its errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hydra.errors import HydraError, UsageError
from hydra.serve import page_cache
from hydra.serve.page_cache import PageCache

pytestmark = pytest.mark.tier("test")

Program = Callable[[str], None]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """Has pages made by this text, which prints them."""

    def by(text: str) -> None:
        def command(_parent: int, _kind: str, _cache: Path, _nonce: str, _runs: list[Path]) -> list[str]:
            return [sys.executable, "-Sc", f"import os, sys\n{text}"]

        monkeypatch.setattr(page_cache, "command", command)

    by("print(os.getpid())")
    return by


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.db").write_text("a")
    return folder


@pytest.fixture
def pages(tmp_path: Path, program: Program) -> PageCache:
    return PageCache(tmp_path / "cache" / "pages")


def test_a_page_is_made_once_also_by_another_server(pages: PageCache, run: Path) -> None:
    first = pages.page("report", [run])
    assert pages.page("report", [run]) == first
    assert PageCache(pages.folder).page("report", [run]) == first
    assert len(first.nonce) == 32


@pytest.mark.parametrize("changed", ["run.db", "run.db-wal", "experiment.json", "part/run.db"])
def test_it_is_made_anew_when_its_run_changes_and_the_earlier_one_goes(
    pages: PageCache, run: Path, changed: str
) -> None:
    first = pages.page("report", [run])
    (run / changed).parent.mkdir(exist_ok=True)
    (run / changed).write_text("bc")
    os.utime(run / changed, ns=(1, 1))
    second = pages.page("report", [run])
    assert (second.html != first.html, second.nonce != first.nonce) == (True, True)
    assert len(list(pages.folder.glob("*.html"))) == 1


def test_what_a_reader_leaves_for_a_moment_is_no_change(pages: PageCache, run: Path) -> None:
    first = pages.page("report", [run])
    (run / "run.db-wal").touch()
    (run / "run.db-shm").write_text("x")
    assert pages.page("report", [run]) == first


def test_the_order_of_runs_and_the_kind_are_other_pages(pages: PageCache, run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    requests = [("report", [run]), ("comparison", [run, other]), ("comparison", [other, run])]
    assert len({pages.page(kind, runs).html for kind, runs in requests}) == 3


def test_old_pages_are_forgotten(pages: PageCache, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_MOST", 2)
    for name in ("a", "b", "c"):
        pages.page("report", [tmp_path / name])
    assert len(list(pages.folder.glob("*.html"))) == 2


@pytest.mark.parametrize(
    ("text", "error", "output"),
    [
        ("sys.stderr.write('a warning\\nthey differ\\n'); sys.exit(2)", UsageError, "they differ"),
        ("sys.stderr.write('it failed\\n'); sys.exit(1)", HydraError, "it failed"),
        ("os.kill(os.getpid(), 9)", HydraError, "exit code -9"),
    ],
)
def test_why_a_page_could_not_be_made_is_said(
    pages: PageCache, run: Path, program: Program, text: str, error: type[HydraError], output: str
) -> None:
    program(text)
    with pytest.raises(error, match=output) as raised:
        pages.page("report", [run])
    assert "warning" not in str(raised.value)
    assert list(pages.folder.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="XDG_CACHE_HOME"):
        PageCache(tmp_path / "file" / "pages")
