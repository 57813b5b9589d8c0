"""What tests of the Kubernetes engine rely on: nodes, the Pod network, policies and users of the rig."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes import images
from tests.kubernetes.accounts import Account
from tests.kubernetes.api import ApiError
from tests.kubernetes.pods import namespace, pod, status_of
from tests.kubernetes.rig import Rig

pytestmark = pytest.mark.tier("all")

LISTENS = "import socket; s = socket.create_server(('', 7000)); c, _ = s.accept(); c.sendall(b'hello')"
ASKS_POD = "import socket, sys; print(socket.create_connection((sys.argv[1], 7000), 10).recv(9))"
ASKS_MACHINE = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).status)"
ASKS_API = """import os, ssl, urllib.request as r
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/api"
request = r.Request(url, headers={"Authorization": "Bearer " + open(folder + "token").read()})
print(r.urlopen(request, context=ssl.create_default_context(cafile=folder + "ca.crt"), timeout=10).status)
"""
RUNS_HYDRA = "hydra --version && hydra-client --help >/dev/null && java --version && nats-server --version && id -u"


@pytest.fixture(scope="module")
def space(rig: Rig) -> Iterator[str]:
    with namespace(rig.api()) as name:
        yield name


@pytest.fixture(scope="module")
def pods(rig: Rig, space: str) -> Iterator[str]:
    """The path of a few Pods, which were all started at once."""
    path = f"/api/v1/namespaces/{space}/pods"
    handler = http.server.SimpleHTTPRequestHandler
    with http.server.ThreadingHTTPServer((rig.place.gateway, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{rig.place.gateway}:{server.server_port}/"
        for body in (
            pod("listens", images.PYTHON, ["python3", "-c", LISTENS], nodeSelector={"group": "cpu4-mem16"}),
            pod("asks-machine", images.PYTHON, ["python3", "-c", ASKS_MACHINE, url]),
            pod("asks-api", images.PYTHON, ["python3", "-c", ASKS_API], enableServiceLinks=False),
            pod("hydra", rig.image, ["sh", "-c", RUNS_HYDRA]),
        ):
            rig.api().create(path, body)
        yield path
        server.shutdown()


def ended(rig: Rig, path: str) -> list[str]:
    """The output of a Pod until its end."""
    status: dict[str, Any] = status_of(rig.api(), path, "Succeeded", "Failed")
    log: str = rig.api().get(f"{path}/log")
    assert status["phase"] == "Succeeded", log
    return log.splitlines()


def test_all_nodes_are_ready_and_carry_the_labels_of_the_published_scenarios(rig: Rig) -> None:
    found = {each["metadata"]["name"]: each["metadata"]["labels"]["group"] for each in rig.api().items("/api/v1/nodes")}
    assert found == {"node1": "cpu4-mem16", "node2": "cpu16-mem60"}
    assert rig.ready() == ["node1", "node2"]


def test_the_control_plane_gets_a_processor_before_hydra_and_hydra_before_the_nodes(rig: Rig) -> None:
    def nice(role: str) -> int:
        (pid,) = rig.pids(role)
        return os.getpriority(os.PRIO_PROCESS, pid)

    nodes = {nice(role) for role in ("containerd1", "kubelet1", "containerd2", "kubelet2")}
    control = {nice(role) for role in ("etcd", "apiserver", "controller-manager", "scheduler")}
    assert max(control) < 0 < min(nodes)


def test_restricted_pods_run_where_they_are_told_and_reach_each_other_across_nodes(rig: Rig, pods: str) -> None:
    address = status_of(rig.api(), f"{pods}/listens", "Running")["podIP"]
    present = {"nodeSelector": {"group": "cpu16-mem60"}}
    rig.api().create(pods, pod("asks-pod", images.PYTHON, ["python3", "-c", ASKS_POD, address], **present))
    assert ended(rig, f"{pods}/asks-pod") == ["b'hello'"]
    nodes = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in rig.api().items(pods)}
    assert (nodes["listens"], nodes["asks-pod"]) == ("node1", "node2")


def test_pods_reach_this_machine(rig: Rig, pods: str) -> None:
    assert ended(rig, f"{pods}/asks-machine") == ["200"]


def test_a_pod_calls_the_api_with_the_token_of_its_service_account(rig: Rig, pods: str) -> None:
    assert ended(rig, f"{pods}/asks-api") == ["200"]


def test_the_image_of_this_tree_runs_hydra_its_native_client_and_servers(rig: Rig, pods: str) -> None:
    assert ended(rig, f"{pods}/hydra")[-1] == "10001"


def test_pod_security_refuses_what_is_not_restricted(rig: Rig, pods: str) -> None:
    loose = pod("loose", images.PYTHON, ["true"])
    del loose["spec"]["securityContext"]
    with pytest.raises(ApiError, match="violates PodSecurity"):
        rig.api().create(pods, loose)


def test_a_user_has_no_rights_and_the_log_tells_what_was_asked(rig: Rig, pods: str, space: str) -> None:
    with pytest.raises(ApiError, match="403"):
        rig.api("hydra").get(pods)
    requests = [each for each in rig.audited("hydra") if each["objectRef"].get("namespace") == space]
    assert [(each["verb"], each["objectRef"]["resource"]) for each in requests] == [("list", "pods")]
    assert requests[0]["responseStatus"]["code"] == 403


def test_an_account_has_the_rights_that_it_is_granted(rig: Rig, pods: str, space: str) -> None:
    account = Account(rig, space, "reader")
    with pytest.raises(ApiError, match="403"):
        account.api().get(pods)
    account.may("reads-pods", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    assert account.api().items(pods)
    with pytest.raises(ApiError, match="403"):
        account.api().get(f"{pods}/hydra")
