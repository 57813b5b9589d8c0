"""The init container's script, against a server on this machine."""

from __future__ import annotations

import hashlib
import http.server
import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hydra.kubernetes.pod_scripts import fetch_archive
from hydra.kubernetes.pods import source
from tests.suite.waiting import SOON_S

pytestmark = pytest.mark.tier("test")

SECRET = "/c2VjcmV0/hydra.tar"


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, mode, text in (("hydra-run", 0o755, b"#!/bin/sh\n"), ("program.tar.gz", 0o644, b"x" * 300_000)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), mode
            tar.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


ARCHIVE = archive()
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Answers with these codes in turn, then with the archive; 0 hangs up in the middle of it."""

    answers: list[int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{SECRET}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        code = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(code or 200)
        self.send_header("Content-Length", str(len(ARCHIVE)))
        if 300 <= code < 400:
            self.send_header("Location", f"file:///{SECRET}")
        self.end_headers()
        self.wfile.write(ARCHIVE if code else ARCHIVE[:1000])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as serving:
        serving.answers = []
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


Failure = Callable[..., str]


@pytest.fixture
def failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Failure:
    """The one line on stderr of a call that fails."""

    def of(url: str, sha256: str = SHA256, folder: Path = tmp_path) -> str:
        monkeypatch.setenv("HYDRA_ARCHIVE_URL", url)
        monkeypatch.setenv("HYDRA_ARCHIVE_SHA256", sha256)
        monkeypatch.setattr(sys, "argv", ["-c", str(folder)])
        assert fetch_archive.main() == 78
        text, reported = capsys.readouterr()
        assert not text
        assert "c2VjcmV0" not in reported
        assert "pass" not in reported
        assert reported.count("\n") == 1
        return reported

    return of


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_archive, "PAUSE_S", 0.01)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, patient: None) -> None:
    monkeypatch.setattr(fetch_archive, "WITHIN_S", 0.1)


def test_it_fetches_and_unpacks_as_a_script_of_its_own(server: Server, tmp_path: Path) -> None:
    environment = {"HYDRA_ARCHIVE_URL": server.url, "HYDRA_ARCHIVE_SHA256": SHA256}
    words = [sys.executable, "-I", "-c", source("fetch_archive"), str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SOON_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {"hydra-run": 10, "program.tar.gz": 300_000}
    assert (tmp_path / "hydra-run").stat().st_mode & 0o111


@pytest.mark.parametrize("answers", [[503, 500], [0], [429]])
def test_what_may_pass_is_tried_again(server: Server, tmp_path: Path, patient: None, answers: list[int]) -> None:
    server.answers = answers
    fetch_archive.install(server.url, SHA256, tmp_path)
    assert (tmp_path / "hydra-run").exists()


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([503] * 99, "it answers 503 Service Unavailable (tries: "),
        ([302] * 99, "it answers 302 Found (tries: "),
        ([0] * 99, f"of {len(ARCHIVE)}"),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_failures_are_told_without_the_secret(server: Server, failure: Failure, answers: list[int], text: str) -> None:
    assert_failed(server, failure, answers, text)


@pytest.mark.parametrize(("code", "reason"), [(404, "Not Found"), (403, "Forbidden")])
@pytest.mark.usefixtures("patient")
def test_an_answer_that_will_not_change_is_not_asked_for_again(
    server: Server, failure: Failure, code: int, reason: str
) -> None:
    assert_failed(server, failure, [code, 200], f"it answers {code} {reason} (tries: 1,")


def assert_failed(server: Server, failure: Failure, answers: list[int], text: str) -> None:
    server.answers = answers
    line = failure(server.url)
    assert line.startswith(f"hydra: the archive cannot be fetched from 127.0.0.1:{server.server_address[1]}: ")
    assert text in line
    assert "--advertise" in line


@pytest.mark.parametrize(
    ("url", "text"),
    [
        (f"http://127.0.0.1:1{SECRET}", "from 127.0.0.1:1: Connection refused (tries: "),
        (f"http://no.such.host.invalid{SECRET}", "from no.such.host.invalid: "),
        (f"nonsense{SECRET}", "from nowhere: no archive comes (ValueError) (tries: 1,"),
        (f"http://user:pass@127.0.0.1:port{SECRET}", "from 127.0.0.1:port: no archive comes (InvalidURL) (tries: 1,"),
        (f"http://127.0.0.1:1{SECRET} x", "from 127.0.0.1:1: no archive comes (InvalidURL) (tries: 1,"),
        (f"http://[{SECRET}", "from nowhere: no archive comes (ValueError) (tries: 1,"),
        ("", "HYDRA_ARCHIVE_URL and HYDRA_ARCHIVE_SHA256 are not set"),
    ],
)
def test_urls_that_lead_nowhere(impatient: None, failure: Failure, url: str, text: str) -> None:
    assert text in failure(url)


def test_another_archive_is_refused(server: Server, failure: Failure, tmp_path: Path) -> None:
    line = failure(server.url, sha256="0" * 64)
    assert f"another archive is served (sha256 {SHA256[:12]}) than the run needs (000000000000)" in line
    assert not (tmp_path / "hydra-run").exists()


def test_a_full_disk_is_told_at_once(server: Server, failure: Failure) -> None:
    line = failure(server.url, folder=Path("/proc"))
    assert "the archive cannot be kept here: No such file or directory; is the node's disk full?" in line
