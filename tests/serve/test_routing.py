"""What a request line asks for; nothing asks for a path."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from hydra.serve import routing
from hydra.serve.routing import BadRequest, ComparisonPage, Redirect, ReportPage, RunListPage, route


@pytest.mark.parametrize(
    ("target", "requests"),
    [
        ("/", RunListPage()),
        ("/?reload=1", RunListPage()),
        ("/in/exp/", RunListPage("exp")),
        ("/run/a/", ReportPage("a")),
        ("/run/a", Redirect("/run/a/")),
        ("/run/a%20b%3F/", ReportPage("a b?")),
        ("/run/exp/part/", ReportPage("exp/part")),
        ("/run/exp/part", Redirect("/run/exp/part/")),
        ("/run/exp/part/report.html", Redirect("/run/exp/part/")),
        ("/run/a/run.db", Redirect("/run/a/run.db/")),  # which is no run
        ("/run/a/table.md", routing.RunFile("a", "table.md")),
        ("/run/exp/part/rows.json", routing.RunFile("exp/part", "rows.json")),
        ("/assets/style.css", routing.Asset("style.css")),
        ("/assets/plotly-3.1.0.min.js", routing.Asset("plotly-3.1.0.min.js")),
        ("/compare?run=a&run=b", ComparisonPage(("a", "b"))),
        ("/compare?run=a&run=a", ComparisonPage(("a",))),
        ("/compare?run=both", ComparisonPage(("both",))),
        ("/compare?run=exp/x&run=exp/y", ComparisonPage(("exp/x", "exp/y"))),
    ],
)
def test_what_a_request_asks_for(target: str, requests: routing.PageRequest) -> None:
    assert route(target) == requests


@pytest.mark.parametrize(
    "target",
    [
        *("/nowhere", "/run/", "/run//", "/run", "/run/a/b/c/", "/run/a/b/c/table.md", "/run/../", "/run/%2e%2e/"),
        *("/run/a/../../etc/passwd", "/run/a/%2e%2e/table.md", "/run/..%2f..%2fetc/table.md", "/run/%2fetc/table.md"),
        *("/run/a%00b/", "/in/", "/in/../", "/in/a/b/", "/in/%2e%2e/", "/assets/../style.css"),
        *("/assets/%2e%2e%2fmade.py", "/assets/plotly-1/../../x.min.js", "/assets/report.html"),
        *("/compare?run=../../etc", "/compare?run=a&run=/etc/passwd", "/compare?run=a&run=.."),
        *("/compare?run=a/b/c&run=d", "//evil.example/", "/favicon.ico"),
    ],
)
def test_what_is_not_there(target: str) -> None:
    requests = route(target)
    assert isinstance(requests, BadRequest)
    assert requests.status is HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("target", ["*", "http://evil.example/", "", "/compare", "/compare?" + "run=a&" * 30])
def test_a_request_that_makes_no_sense_is_refused(target: str) -> None:
    requests = route(target)
    assert isinstance(requests, BadRequest)
    assert requests.status is HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("run", ["a", "exp/part", "ä b&c?d=e#f%g", "<script>", "\udcff\udcfe", "a+b", "report.html"])
def test_every_name_finds_its_way_back(run: str) -> None:
    assert route(routing.run_url(run)) == ReportPage(run)
    assert route(routing.comparing_url((run, "other"))) == ComparisonPage((run, "other"))
    folder = run.partition("/")[0]
    assert route(routing.listing_url(folder)) == RunListPage(folder)
