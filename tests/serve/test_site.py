"""What the page answers, without a socket and without a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from http import HTTPStatus
from pathlib import Path
from unittest.mock import Mock

import pytest

from hydra.errors import HydraError, UsageError
from hydra.report.experiment_folder import ExperimentRecord, PartRecord, write_record
from hydra.report.run_catalog import entry
from hydra.serve import overview
from hydra.serve.page_cache import CachedPage, PageCache
from hydra.serve.request_handler import HttpResponse, Site
from hydra.serve.routing import run_url
from tests.jupyter.runs import FIXED, make
from tests.serve.folder import ODD, fill

HERE = ["localhost:8000"]


class RecordedRequests(PageCache):
    """Records the requests instead of making pages."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.requests: list[tuple[str, list[str]]] = []
        self.raises: HydraError | None = None

    def page(self, kind: str, runs: Sequence[Path]) -> CachedPage:
        self.requests.append((kind, [str(run) for run in runs]))
        if self.raises:
            raise self.raises
        return CachedPage("<body><main>the page</main></body>", "f" * 32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def made(tmp_path_factory: pytest.TempPathFactory) -> RecordedRequests:
    return RecordedRequests(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def site(folder: Path, made: RecordedRequests) -> Site:
    return Site(folder, made)


@pytest.fixture(scope="module")
def listed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the list."""
    return text(Site(folder, RecordedRequests(tmp_path_factory.mktemp("cache"))).answer("/", HERE))


def text(answer: HttpResponse, status: HTTPStatus = HTTPStatus.OK) -> str:
    assert answer.status == status, answer.body.decode()
    return answer.body.decode()


class Rows:
    """The text of each row of the table, every link of the page, and what each box stands for."""

    def __init__(self, html: str) -> None:
        self.rows = [unescape(re.sub("<[^>]*>", " ", row)) for row in re.split("<tr[^>]*>", html)[1:]]
        self.links = [unescape(link) for link in re.findall('<a [^>]*href="([^"]*)"', html)]
        self.boxes = [unescape(box) for box in re.findall('<input [^>]*value="([^"]*)"', html)]


def test_the_list_tells_of_every_run_newest_first_and_of_damaged_ones_why(listed: str) -> None:
    seen = Rows(listed)
    rows = seen.rows[1:]
    names = ["search", "fixed", ODD, "both", "damaged"]
    assert [name for row, name in zip(rows, names, strict=True) if row.strip().startswith(name)] == names
    setup = "1 publisher → 30, 60 subscribers · 24 B · pyzmq · steps of 10 s"
    first = rf"zmqrate +zmq +{setup} +pyzmq +30 to 60 .*carried .*/s.*limited by.*2026-02-03 04:05.*finished"
    assert re.search(first, rows[0], re.DOTALL)
    assert "unfinished" in rows[2]
    assert "unreadable" in rows[4]
    assert "not a database" in rows[4]
    assert seen.boxes == ["search", "fixed", ODD, "both"]


def test_nothing_that_a_run_says_becomes_part_of_the_page(listed: str) -> None:
    assert "<script" not in listed
    assert "<b>ä" not in listed


def test_every_link_of_the_list_leads_somewhere(listed: str, site: Site, made: RecordedRequests) -> None:
    links = [link for link in Rows(listed).links if not link.startswith("#")]
    assert len(links) == 5
    for link in links:
        text(site.answer(link, HERE))
    assert [kind for kind, _ in made.requests] == ["report"] * 3 + ["comparison"]


def test_runs_that_were_measured_together_are_a_list_of_their_own(site: Site) -> None:
    html = text(site.answer("/in/both/", HERE))
    assert Rows(html).boxes == ["both/y", "both/x"]
    assert "All runs" in html


def test_an_experiment_has_a_report_and_its_parts_have_theirs(tmp_path: Path, made: RecordedRequests) -> None:
    record = ExperimentRecord("growth", "it grows", "somebody, 2014", 1.0, {}, {}, "hydra x", "2026-01-01", "finished")
    record.parts.append(PartRecord("part", "finished"))
    make(tmp_path / "exp" / "part", FIXED)
    (tmp_path / "exp" / "part" / "table.md").write_text("a table")
    write_record(tmp_path / "exp", record)
    site = Site(tmp_path, made)
    listed = Rows(text(site.answer("/", HERE)))
    assert (listed.boxes, listed.links[1:]) == ([], ["/run/exp/", "/in/exp/"])
    assert Rows(text(site.answer("/in/exp/", HERE))).boxes == ["exp/part"]
    assert "Runs of exp" in text(site.answer("/run/exp/part/", HERE))
    # To these the page of the experiment links.
    assert text(site.answer("/run/exp/part/table.md", HERE)) == "a table"
    assert site.answer("/run/exp/part/report.html", HERE).headers()["Location"] == "/run/exp/part/"


def test_a_report_and_a_comparison_have_a_way_back_above_them(site: Site, made: RecordedRequests, folder: Path) -> None:
    assert "<main>\n<link" in text(site.answer(run_url("fixed"), HERE))
    page = text(site.answer("/compare?run=fixed&run=search", HERE))
    assert "Base: <strong>fixed</strong>" in page
    assert 'href="/compare?run=search&amp;run=fixed"' in page
    assert made.requests == [
        ("report", [str(folder / "fixed")]),
        ("comparison", [str(folder / "fixed"), str(folder / "search")]),
    ]


def test_scripts_run_only_with_the_nonce_of_the_page_and_nothing_comes_from_elsewhere(site: Site) -> None:
    policy = site.answer(run_url("fixed"), HERE).headers()["Content-Security-Policy"]
    assert f"script-src 'nonce-{'f' * 32}';" in policy
    for target in ("/", run_url("fixed"), "/nowhere"):
        headers = site.answer(target, HERE).headers()
        assert headers["Content-Security-Policy"].startswith("default-src 'none';")
        assert "http" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert "script-src" not in site.answer("/", HERE).headers()["Content-Security-Policy"]


@pytest.mark.parametrize("hosts", [[], ["evil.example"], ["evil.example:8000"], ["localhost", "localhost"]])
def test_a_page_elsewhere_that_names_itself_as_this_machine_reads_nothing(site: Site, hosts: list[str]) -> None:
    assert "Table of runs" not in text(site.answer("/", hosts), HTTPStatus.MISDIRECTED_REQUEST)


NOWHERE = ("/run/no-such/", "/run/damaged/x/", "/run/fixed/x/", "/in/no-such/", "/compare?run=no-such")


@pytest.mark.parametrize("target", [*NOWHERE, "/run/fixed/table.md"])
def test_what_is_not_in_the_list_is_not_there(site: Site, made: RecordedRequests, target: str) -> None:
    assert "There is no " in text(site.answer(target, HERE), HTTPStatus.NOT_FOUND)
    assert made.requests == []


def test_files_of_a_run_are_shown_and_links_out_of_it_are_not(tmp_path: Path, made: RecordedRequests) -> None:
    run = make(tmp_path / "runs" / "run", FIXED)
    (run / "table.md").write_text("<b>a table</b>")
    (tmp_path / "secret").write_text("secret")
    (run / "table.csv").symlink_to(tmp_path / "secret")
    site = Site(tmp_path / "runs", made)
    answer = site.answer("/run/run/table.md", HERE)
    assert (answer.body, answer.type) == (b"<b>a table</b>", "text/plain; charset=utf-8")
    assert b"secret" not in site.answer("/run/run/table.csv", HERE).body


@pytest.mark.parametrize(
    ("error", "status"),
    [(UsageError("these have nothing in common", "name others"), 422), (HydraError("a cell failed"), 500)],
)
def test_why_there_is_no_page_stands_on_it(site: Site, made: RecordedRequests, error: HydraError, status: int) -> None:
    made.raises = error
    answer = site.answer("/compare?run=fixed&run=search", HERE)
    assert str(error) in text(answer, HTTPStatus(status))


def test_a_run_that_changed_is_read_again_and_no_other(
    tmp_path: Path, made: RecordedRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(wraps=entry)
    monkeypatch.setattr(overview, "entry", read)

    def names_read() -> str:
        return "".join(sorted(call.args[0].name for call in read.call_args_list))

    for name in ("a", "b"):
        make(tmp_path / name, FIXED)
    site = Site(tmp_path, made)
    site.answer("/", HERE)
    site.answer("/", HERE)
    assert names_read() == "ab"
    (tmp_path / "b" / "run.db").unlink()
    make(tmp_path / "b", FIXED, steps=1, ended=None)
    assert "unfinished" in text(site.answer("/", HERE))
    assert names_read() == "abb"
    # Nor by the next server.
    assert Site(tmp_path, made).answer("/", HERE).body == site.answer("/", HERE).body
    assert names_read() == "abb"
    (kept,) = made.folder.glob("list-*.json")
    kept.write_text('{"a": "of another version"}')
    assert Site(tmp_path, made).answer("/", HERE).body == site.answer("/", HERE).body
    assert names_read() == "aabbb"


def test_an_empty_folder_says_what_to_do(tmp_path: Path, made: RecordedRequests) -> None:
    page = text(Site(tmp_path, made).answer("/", HERE))
    assert "0 runs" in page
    assert "<form" not in page
