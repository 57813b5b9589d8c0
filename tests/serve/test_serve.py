"""``hydra serve`` as a user has it: the command, the requests of strangers, and the pages in a browser."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from hydra.errors import EXIT_USAGE
from tests.integration.command import Hydra, hydra
from tests.jupyter.browser import Browser, browser
from tests.jupyter.runs import FIXED, make
from tests.serve.folder import contents, fill
from tests.suite.waiting import LONG_S, SOON_S, wait_until

__all__ = ["browser"]

pytestmark = pytest.mark.tier("test")


@contextmanager
def serving(folder: Path, cache: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command and the address that it printed; Ctrl-C has ended it, quietly, at the end."""
    with subprocess.Popen(
        [*Hydra, "serve", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split(" ")[0]
        finally:
            process.send_signal(signal.SIGINT)
            _, text = process.communicate(timeout=SOON_S)
    assert (process.returncode, text) == (0, "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def address(folder: Path, cache: Path) -> Iterator[str]:
    before = contents(folder)
    with serving(folder, cache) as (_, where):
        yield where
    assert contents(folder) == before, "something was written into a run"


def place_of(address: str) -> tuple[str, int]:
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    return host, int(port)


def ask(address: str, method: str, target: str, **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
    with closing(http.client.HTTPConnection(*place_of(address), timeout=LONG_S)) as connection:
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_nothing_can_be_changed(address: str, method: str) -> None:
    status, _, headers = ask(address, method, "/")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_its_body(address: str) -> None:
    (status, whole, headers), (same, none, its) = (ask(address, method, "/") for method in ("GET", "HEAD"))
    assert (status, same, none) == (200, 200, b"")
    assert headers["Content-Length"] == its["Content-Length"] == str(len(whole))


def test_a_request_under_another_name_is_refused(address: str) -> None:
    status, body, _ = ask(address, "GET", "/", Host="evil.example:80")
    assert status == 421
    assert b"Table of runs" not in body


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /../../../../etc/passwd HTTP/1.1",
        b"GET /run/..%2f..%2f..%2fetc/table.md HTTP/1.1",
        b"GET //etc/passwd HTTP/1.1",
        b"GET /run/fixed/../../../etc/passwd HTTP/1.1",
        b"GET \xff\xfe/\x01 HTTP/1.1",
        b"GET / HTTP/9.9",
        b"GET http://evil.example/ HTTP/1.1",
        b"nonsense",
        b"GET " + b"/a" * 40_000 + b" HTTP/1.1",
    ],
    ids=lambda line: line[:30].decode("latin-1").encode("unicode_escape").decode(),
)
def test_a_request_that_leads_nowhere_is_answered_and_shows_nothing(address: str, request_line: bytes) -> None:
    with socket.create_connection(place_of(address), timeout=SOON_S) as connection:
        connection.sendall(request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while read := connection.recv(65536):
            answer += read
    assert b"root:" not in answer
    assert b" 200 " not in answer.split(b"\r\n")[0]
    assert b"<h1>" in answer
    assert b"Table of runs" not in answer


@pytest.mark.tier("all")
def test_the_list_shows_itself_whole_and_every_control_is_reached_by_keyboard(address: str, browser: Browser) -> None:
    assert browser.faults(address, 400) == []
    page = browser.see(address)
    page.check(address)
    assert "not a database" in page.text
    walk = browser.walk(address)
    # A way to the content, the table that can be scrolled, four boxes, five links, the button.
    assert len(walk.controls) == 1 + 1 + 4 + 5 + 1, walk.controls
    assert (walk.missed, walk.unseen, walk.unnamed) == ([], [], [])


@pytest.mark.tier("all")
def test_a_report_is_made_once_and_its_plots_are_drawn_under_the_policy(address: str, browser: Browser) -> None:
    where = f"{address}run/search/"
    page = browser.see(where)
    page.check(address)
    assert len(page.plots) == 5
    assert all(plot["traces"] == plot["expected"] for plot in page.plots)
    assert "All runs" in page.text
    assert ask(address, "GET", "/run/search/")[1] == ask(address, "GET", "/run/search/")[1], "it was made anew"
    walk = browser.walk(where)
    assert (walk.missed, walk.unseen, walk.unnamed) == ([], [], [])


@pytest.mark.tier("all")
def test_a_comparison_lays_the_runs_upon_each_other(address: str, browser: Browser) -> None:
    page = browser.see(f"{address}compare?run=both")
    page.check(address)
    assert len(page.plots) == 2  # one repeat has no interval
    assert "y against x" in page.text


@pytest.mark.tier("all")
def test_runs_that_cannot_be_compared_are_told_why(address: str) -> None:
    status, body, _ = ask(address, "GET", "/compare?run=fixed")
    assert status == 422
    assert b"fewer than two runs" in body


@pytest.mark.tier("all")
def test_what_the_policy_forbids_is_noticed(address: str, browser: Browser, cache: Path) -> None:
    """The checks of errors above are worth something: a script without the nonce is an error."""
    assert ask(address, "GET", "/run/search/")[0] == 200
    (cached,) = (page for page in cache.rglob("*.html") if "<title>Hydra: search<" in page.read_text())
    cached.write_text(cached.read_text().replace("<main>", "<main><script>1</script>", 1))
    assert any("Content Security Policy" in error for error in browser.see(f"{address}run/search/").errors)


@pytest.mark.tier("all")
def test_ctrl_c_ends_a_report_that_is_being_made(tmp_path: Path) -> None:
    make(tmp_path / "runs" / "run", FIXED)
    with (
        serving(tmp_path / "runs", tmp_path / "cache") as (process, address),
        socket.create_connection(place_of(address)) as connection,
    ):
        connection.sendall(b"GET /run/run/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        me = psutil.Process(process.pid)
        making = wait_until(me.children, "what makes it", LONG_S)
        process.send_signal(signal.SIGINT)
        process.wait(SOON_S)
    wait_until(lambda: not any(child.is_running() for child in making), "the end of what made it")
    assert [path.name for path in (tmp_path / "runs" / "run").iterdir()] == ["run.db"]
    assert list((tmp_path / "cache").rglob("*.html")) == []


def test_a_port_that_is_taken_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("--port", taken.getsockname()[1])
        errors = hydra("serve", tmp_path, *words, expect=EXIT_USAGE, XDG_CACHE_HOME=str(tmp_path / "cache")).stderr
    assert "cannot listen on port" in errors
    assert len(errors.splitlines()) == 1
