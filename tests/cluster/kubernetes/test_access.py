"""What is read of a kubeconfig before the first request, and why it is read again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hydra.errors import HydraError, UsageError
from hydra.kubernetes import api_streams
from hydra.kubernetes.api_client import IN_CLUSTER, Api, ApiError, check_context, context_of
from tests.cluster.kubernetes.objects import Json
from tests.suite.waiting import SOON_S

pytestmark = pytest.mark.tier("test")

GOOD = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: lab, context: {cluster: c, user: u, namespace: tests}}, {name: bare, context: {cluster: c, user: u}}]
current-context: lab
"""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    path.write_text(GOOD)
    # The client has read the variable when it was imported.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


@pytest.mark.parametrize(
    ("master", "context"), [("k8s://lab", "lab"), ("k8s://", ""), ("kubernetes", ""), ("k8s://in-cluster", IN_CLUSTER)]
)
def test_a_master_names_a_context(master: str, context: str) -> None:
    assert context_of(master) == context


@pytest.mark.parametrize(("context", "namespace"), [("", "tests"), ("lab", "tests"), ("bare", "default")])
def test_a_context_has_a_namespace(kubeconfig: Path, context: str, namespace: str) -> None:
    check_context(context)
    assert Api(context).namespace == namespace


def test_a_context_that_is_not_there_is_told_with_those_that_are(kubeconfig: Path) -> None:
    with pytest.raises(UsageError, match="no context 'moon'; it has: lab, bare"):
        check_context("moon")


WITHOUT_CONTEXT = ["contexts: 3", "contexts: []", "current-context: x", "contexts: [{}]\ncurrent-context: x"]


@pytest.mark.parametrize("text", ["", "a: [b", "[]", "\0", *WITHOUT_CONTEXT])
def test_a_kubeconfig_that_is_none_is_one_line(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text)
    with pytest.raises(HydraError) as refused:
        Api("")
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code in (1, 2)


def test_a_controller_that_is_no_pod_is_told_so() -> None:
    with pytest.raises(UsageError, match=r"no cluster to ask: .*--in-cluster makes"):
        Api(IN_CLUSTER)


# --- a token that ends ------------------------------------------------------------------------------------------------


class Server:
    """An API server that knows one token at a time."""

    def __init__(self) -> None:
        self.token, self.refused = "first", 0
        it = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                given = self.headers.get("Authorization")
                known = given == f"Bearer {it.token}"
                it.refused += not known
                # So it answers requests without an identity.
                stranger = 'pods is forbidden: User "system:anonymous" cannot list resource "pods"'
                message = "" if known else "Unauthorized" if given else stranger
                text = json.dumps({"kind": "PodList" if known else "Status", "message": message}).encode() + b"\n"
                self.send_response(200 if known else 401 if given else 403)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    it = Server()
    yield it
    it.http.shutdown()
    it.http.server_close()


def by_token(folder: Path) -> Json:
    return {"token": (folder / "token").read_text()}


def by_file(folder: Path) -> Json:
    return {"tokenFile": str(folder / "token")}


def by_plugin(folder: Path) -> Json:
    version = "client.authentication.k8s.io/v1"
    text = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": "TOKEN"}})
    script = f"sed \"s/TOKEN/$(cat '{folder / 'token'}')/\" <<END\n{text}\nEND"
    return {"exec": {"apiVersion": version, "command": "sh", "args": ["-e", "-c", script], "interactiveMode": "Never"}}


PODS = "/api/v1/namespaces/tests/pods"


class RenewableToken:
    """The API, asked with a token that a user may renew."""

    def __init__(self, kubeconfig: Path, port: int, by: Callable[[Path], Json]) -> None:
        self.folder, self._kubeconfig, self._by = kubeconfig.parent, kubeconfig, by
        self._text = GOOD.replace("https://127.0.0.1:1", f"http://127.0.0.1:{port}")
        self.renew("first")
        self.api = Api("lab")

    def renew(self, token: str) -> None:
        (self.folder / "token").write_text(token)
        self._kubeconfig.write_text(self._text.replace("{token: t}", json.dumps(self._by(self.folder))))

    def is_answered(self) -> bool:
        return bool(self.api.call("GET", PODS)["kind"] == "PodList")

    def is_unknown(self, expected: str) -> bool:
        with pytest.raises(ApiError, match=expected) as refused:
            self.api.call("GET", PODS)
        return refused.value.status == 401


@pytest.fixture
def asked(kubeconfig: Path, server: Server, by: Callable[[Path], Json]) -> RenewableToken:
    return RenewableToken(kubeconfig, server.http.server_port, by)


@pytest.mark.parametrize("by", [by_token, by_file, by_plugin])
def test_a_token_is_read_anew_when_it_has_ended_and_nobody_notices(asked: RenewableToken, server: Server) -> None:
    assert asked.is_answered()
    server.token = "second"
    asked.renew("second")
    assert asked.is_answered()
    server.token = "third"
    asked.renew("third")
    assert "PodList" in "".join(asked.api.lines(PODS, {}, SOON_S))
    assert server.refused == 2
    server.token = "fourth"
    asked.renew("fourth")
    # There is no container to answer, but the user of the request is known.
    with pytest.raises(ApiError) as refused:
        list(api_streams.execute(asked.api, "tests", "pod", "container", ["true"]))
    assert (refused.value.status, server.refused) == (200, 3)


def no_change(_: RenewableToken) -> None:
    """No process renews it."""


def half_written(requests: RenewableToken) -> None:
    (requests.folder / "token").unlink()
    (requests.folder / "config").write_text("clusters: [{")


def no_credentials(requests: RenewableToken) -> None:
    (requests.folder / "token").unlink()  # the kubeconfig is good, and its plugin fails


@pytest.mark.parametrize(
    ("by", "meanwhile", "expected"),
    [
        *((by, no_change, "Unauthorized") for by in (by_token, by_file, by_plugin)),
        *((by, half_written, "the kubeconfig is none") for by in (by_token, by_file, by_plugin)),
        (by_plugin, no_credentials, "anonymous|Unauthorized|credentials"),
    ],
)
def test_who_is_not_known_is_told_so_until_the_token_is_renewed(
    asked: RenewableToken, server: Server, meanwhile: Callable[[RenewableToken], None], expected: str
) -> None:
    assert asked.is_answered()
    server.token = "second"
    meanwhile(asked)
    assert asked.is_unknown(expected)
    assert asked.is_unknown(expected)
    asked.renew("second")
    assert asked.is_answered()
