"""What is read of a kubeconfig before anybody is asked, and what it is read anew for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hydra.cluster.kubernetes import streams
from hydra.cluster.kubernetes.access import IN_CLUSTER, Api, ApiError, check_context, context_of
from hydra.errors import HydraError, UsageError

Json = dict[str, Any]

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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [b",
        "[]",
        "contexts: 3",
        "contexts: []",
        "current-context: lab",
        "\x00",
        "contexts: [{}]\ncurrent-context: x",
    ],
)
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
                # So it answers whoever says nothing of who he is.
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
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


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
    said = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": "TOKEN"}})
    script = f"sed \"s/TOKEN/$(cat '{folder / 'token'}')/\" <<END\n{said}\nEND"
    return {"exec": {"apiVersion": version, "command": "sh", "args": ["-e", "-c", script], "interactiveMode": "Never"}}


BY = pytest.mark.parametrize("by", [by_token, by_file, by_plugin])


@pytest.fixture
def api(kubeconfig: Path, server: Server, by: Callable[[Path], Json]) -> tuple[Api, Callable[[str], None]]:
    """The API, and what gives it another token."""

    def give(token: str) -> None:
        (kubeconfig.parent / "token").write_text(token)
        text = GOOD.replace("https://127.0.0.1:1", f"http://127.0.0.1:{server.http.server_port}")
        kubeconfig.write_text(text.replace("{token: t}", json.dumps(by(kubeconfig.parent))))

    give("first")
    return Api("lab"), give


PODS = "/api/v1/namespaces/tests/pods"


@BY
def test_a_token_is_read_anew_when_it_has_ended_and_nobody_notices(
    api: tuple[Api, Callable[[str], None]], server: Server
) -> None:
    asked, give = api
    asked.call("GET", PODS)
    server.token = "second"
    give("second")
    assert asked.call("GET", PODS)["kind"] == "PodList"
    server.token = "third"
    give("third")
    assert "PodList" in "".join(asked.lines(PODS, {}, 5.0))
    assert server.refused == 2
    server.token = "fourth"
    give("fourth")
    # Nobody answers as a container would; but it is known who asks.
    with pytest.raises(ApiError) as refused:
        list(streams.execute(asked, "tests", "pod", "container", ["true"]))
    assert (refused.value.status, server.refused) == (200, 3)


@BY
def test_a_token_that_nobody_renews_is_told_until_somebody_does(
    api: tuple[Api, Callable[[str], None]], server: Server
) -> None:
    asked, give = api
    asked.call("GET", PODS)
    server.token = "second"
    for _ in range(2):
        with pytest.raises(ApiError, match="Unauthorized") as refused:
            asked.call("GET", PODS)
        assert refused.value.status == 401
    give("second")
    assert asked.call("GET", PODS)["kind"] == "PodList"


@BY
def test_what_is_read_while_it_is_written_is_no_reason_to_end(
    api: tuple[Api, Callable[[str], None]], server: Server, kubeconfig: Path
) -> None:
    asked, give = api
    server.token = "second"
    (kubeconfig.parent / "token").unlink()
    kubeconfig.write_text("clusters: [{")
    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            asked.call("GET", PODS)
        assert refused.value.status == 401
    give("second")
    assert asked.call("GET", PODS)["kind"] == "PodList"


@pytest.mark.parametrize("by", [by_plugin])
def test_a_plugin_that_fails_for_a_while_is_asked_again(
    api: tuple[Api, Callable[[str], None]], server: Server, kubeconfig: Path
) -> None:
    asked, give = api
    server.token = "second"
    (kubeconfig.parent / "token").unlink()  # the kubeconfig is good, and gives no credentials
    with pytest.raises(ApiError) as refused:
        asked.call("GET", PODS)
    assert refused.value.status == 401
    give("second")
    assert asked.call("GET", PODS)["kind"] == "PodList"
