"""Answers requests: from the target and the ``Host`` header to status, headers and body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from hydra.errors import HydraError, UsageError
from hydra.serve import html_pages
from hydra.serve.overview import Overview
from hydra.serve.page_cache import CachedPage, PageCache
from hydra.serve.page_worker import COMPARISON, REPORT
from hydra.serve.routing import (
    STYLE,
    Asset,
    BadRequest,
    ComparisonPage,
    PageRequest,
    Redirect,
    ReportPage,
    RunFile,
    RunListPage,
    names_this_machine,
    route,
)

METHODS: Final = ("GET", "HEAD")
_HTML: Final = "text/html; charset=utf-8"
_TEXT: Final = "text/plain; charset=utf-8"
_STYLES: Final = (Path(__file__).parents[1] / "jupyter" / STYLE, Path(__file__).with_name(STYLE))
_CLOSED: Final = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; img-src 'self' data: blob:; "
_PLAIN_POLICY: Final = f"{_CLOSED}style-src 'self'; form-action 'self'"
"""The Content-Security-Policy of pages without a script."""
_YEAR_S: Final = 31_536_000


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The answer to a GET."""

    status: HTTPStatus
    body: bytes
    type: str = _HTML
    policy: str = _PLAIN_POLICY
    more: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """All headers of the answer, in order."""
        return {
            "Content-Type": self.type,
            "Content-Length": str(len(self.body)),
            "Content-Security-Policy": self.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
            **self.more,
        }


class Site:
    """Shows the runs of a folder as pages.

    Args:
        folder: the folder of the runs.
        made: the cache of pages.
    """

    def __init__(self, folder: Path, made: PageCache) -> None:
        self._folder: Final = folder
        self._made: Final = made
        self._overview: Final = Overview(folder, made.folder)

    def answer(self, target: str, hosts: Sequence[str]) -> HttpResponse:
        """The answer to a GET.

        Args:
            target: path and query, as they were sent.
            hosts: the ``Host`` headers; a valid request has one.
        """
        if len(hosts) != 1 or not names_this_machine(hosts[0]):
            what = "Ask for this page under the address that hydra serve printed: it is for this machine alone."
            return refused(HTTPStatus.MISDIRECTED_REQUEST, what)
        request = route(target)
        try:
            return self._shown(request)
        except UsageError as e:
            return refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(e))
        except (HydraError, OSError) as e:
            return refused(HTTPStatus.INTERNAL_SERVER_ERROR, str(e))

    def _shown(self, request: PageRequest) -> HttpResponse:
        match request:
            case BadRequest(status, what):
                return refused(status, what)
            case Redirect(to):
                return HttpResponse(HTTPStatus.MOVED_PERMANENTLY, b"", more={"Location": to})
            case Asset(name):
                return self._asset(name)
            case RunListPage(within):
                return self._listing(within)
            case ReportPage(run):
                if not self._overview.holds(run):
                    return _no_run(run)
                return _framed(self._made.page(REPORT, [self._folder / run]), html_pages.above_report(run))
            case RunFile(run, name):
                return self._file(run, name)
            case ComparisonPage(runs):
                if missing := [run for run in runs if not self._overview.holds(run)]:
                    return _no_run(missing[0])
                made = self._made.page(COMPARISON, [self._folder / run for run in runs])
                return _framed(made, html_pages.above_comparison(runs))

    def _listing(self, within: str) -> HttpResponse:
        if within and not self._overview.holds(within):
            return _no_run(within)
        shown = html_pages.run_list_page(str(self._folder / within), within, self._overview.entries(within))
        return HttpResponse(HTTPStatus.OK, shown.encode("utf-8", "replace"))

    def _file(self, run: str, name: str) -> HttpResponse:
        file = self._folder / run / name
        # A symbolic link could lead out of the folder.
        if not self._overview.holds(run) or not file.is_file() or file.is_symlink():
            return _no_run(f"{run}/{name}")
        return HttpResponse(HTTPStatus.OK, file.read_bytes(), _TEXT)

    def _asset(self, name: str) -> HttpResponse:
        if name == STYLE:
            return HttpResponse(
                HTTPStatus.OK, b"".join(file.read_bytes() for file in _STYLES), "text/css; charset=utf-8"
            )
        file = self._made.folder / name
        if not file.is_file():
            return refused(HTTPStatus.NOT_FOUND, "Open the page again: a file that it needs was deleted.")
        kept = {"Cache-Control": f"private, max-age={_YEAR_S}, immutable"}
        return HttpResponse(HTTPStatus.OK, file.read_bytes(), "text/javascript; charset=utf-8", more=kept)


def refused(status: HTTPStatus, what: str, more: Mapping[str, str] | None = None) -> HttpResponse:
    """The answer that reports why a page cannot be shown."""
    return HttpResponse(status, html_pages.refusal_page(status, status.phrase, what).encode(), more=more or {})


def _no_run(name: str) -> HttpResponse:
    return refused(HTTPStatus.NOT_FOUND, f"There is no {name}: it may have been moved since the list was made.")


def _framed(made: CachedPage, above: str) -> HttpResponse:
    """A report or comparison with the links above it."""
    # plotly.js sets styles of elements, and makes images of plots as blobs.
    policy = f"{_CLOSED}script-src 'nonce-{made.nonce}'; style-src 'self' 'unsafe-inline'; form-action 'none'"
    html = made.html.replace("<main>", f"<main>\n{above}", 1)
    return HttpResponse(HTTPStatus.OK, html.encode(), policy=policy)
